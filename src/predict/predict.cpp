#include "predict/predict.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>

#include "format/checked.h"
#include "format/units.h"

namespace memwall {
namespace {

// The fastest of `types` that the card has.
Peak fastest(const Card& card, std::initializer_list<ComputeType> types) {
  Peak best;
  for (const ComputeType type : types) {
    const auto it = card.peaks.find(type);
    if (it != card.peaks.end() && it->second.tflops * 1e12 > best.flops_per_s) {
      best = {type, it->second.tflops * 1e12};
    }
  }
  if (best.flops_per_s > 0) return best;
  return {ComputeType::f32, card.peaks.at(ComputeType::f32).tflops * 1e12};
}

bool has(const Card& card, ComputeType type) { return card.peaks.count(type) != 0; }

struct PeakOf {
  const Card& card;

  Peak operator()(const LinearWork& w) const { return peak_for(card, w.format); }
  Peak operator()(const RouterWork& w) const { return peak_for(card, w.linear.format); }
  Peak operator()(const ExpertWork& w) const { return peak_for(card, w.each.format); }
  Peak operator()(const AttentionWork& w) const { return peak_for(card, w.kv); }
  Peak operator()(const LatentWork& w) const { return peak_for(card, w.kv); }
  Peak operator()(const IndexerWork& w) const { return peak_for(card, w.kv); }
  Peak operator()(const RecurrentWork&) const { return fastest(card, {ComputeType::bf16, ComputeType::f16}); }
  Peak operator()(const ElementwiseWork&) const {
    return fastest(card, {ComputeType::bf16, ComputeType::f16});
  }
  Peak operator()(const EmbeddingWork&) const { return fastest(card, {ComputeType::bf16, ComputeType::f16}); }
};

bool is_ggml(FormatKind kind) { return kind >= FormatKind::q4_0; }

bool is_ggml(KvFormat format) { return format >= KvFormat::q8_0 && format <= KvFormat::iq4_nl; }

struct MultipliesGgmlBlocks {
  bool operator()(const LinearWork& w) const { return is_ggml(w.format.kind); }
  bool operator()(const RouterWork& w) const { return is_ggml(w.linear.format.kind); }
  bool operator()(const ExpertWork& w) const { return is_ggml(w.each.format.kind); }
  bool operator()(const AttentionWork& w) const { return is_ggml(w.kv); }
  bool operator()(const LatentWork& w) const { return is_ggml(w.kv); }
  bool operator()(const IndexerWork& w) const { return is_ggml(w.kv); }
  bool operator()(const RecurrentWork&) const { return false; }
  bool operator()(const ElementwiseWork&) const { return false; }
  bool operator()(const EmbeddingWork&) const { return false; }
};

// The terms of Hockney's time of one op's copies.
struct ExpectedTerms {
  double memory_s = 0;
  double compute_s = 0;
  double overhead_s = 0;
  double unknown_factor = 1;  // of the rate in compute_s, up and down

  double total() const { return std::max(memory_s, compute_s) + overhead_s; }
  // Where that rate is so many times what it is taken to be.
  double total_at(double rate) const { return std::max(memory_s, compute_s / rate) + overhead_s; }
};

ExpectedTerms expected_terms(const Op& op, const Cost& cost, Peak peak, const Card& card) {
  const Achievable& a = card.achievable;
  // A fused op's activations stay on chip and its launch is its neighbour's; its weights are still read.
  const double bytes = op.fusible ? cost.weight_bytes : cost.bytes();
  ExpectedTerms terms;
  if (multiplies_ggml_blocks(op.work)) {
    peak = fastest(card, {ComputeType::bf16, ComputeType::f16});
    terms.unknown_factor = kGgmlRateFactor;
  }
  terms.memory_s = bytes / (card.bytes_per_s() * a.bandwidth_share);
  terms.compute_s = op.fusible ? 0 : cost.flops / (peak.flops_per_s * a.compute_share);
  const bool launches = !op.fusible && !op.joins_previous;
  terms.overhead_s = launches ? static_cast<double>(op.count()) * a.kernel_us * 1e-6 : 0;
  return terms;
}

}  // namespace

std::string_view bound_name(Bound bound) {
  constexpr std::array<std::string_view, 3> kNames = {"memory", "compute", "overhead"};
  return kNames[static_cast<std::size_t>(bound)];
}

Peak peak_for(const Card& card, Format format) {
  using enum ComputeType;
  // Of weight-only formats.
  const auto widened = [&] {
    return card.quantises_activations ? fastest(card, {int8, bf16, f16}) : fastest(card, {bf16, f16});
  };
  switch (format.kind) {
    case FormatKind::f32:
      return fastest(card, {f32});
    case FormatKind::f16:
      return fastest(card, {f16});
    case FormatKind::bf16:
      return has(card, bf16) ? fastest(card, {bf16}) : fastest(card, {f16});
    case FormatKind::f8_e4m3:
    case FormatKind::f8_e4m3_channel:
    case FormatKind::f8_e4m3_b128:
    case FormatKind::f8_e4m3_b128_e8:
    case FormatKind::mxfp8:
      return has(card, f8) ? fastest(card, {f8}) : fastest(card, {bf16, f16});
    case FormatKind::int8_group:
      // A scale a row leaves the product to the integer units (W8A8); groups are widened first.
      if (format.group == 0 && !format.zero_points) return fastest(card, {int8, bf16, f16});
      return widened();
    case FormatKind::int2_group:
    case FormatKind::int3_group:
    case FormatKind::int4_group:
    case FormatKind::int5_group:
    case FormatKind::int6_group:
    case FormatKind::nf4:
    case FormatKind::nf4_dq:
      return widened();
    case FormatKind::mxfp4:
    case FormatKind::nvfp4:
      return card.quantises_activations ? fastest(card, {f4, int8, f8, bf16, f16})
                                        : fastest(card, {f4, f8, bf16, f16});
    default:
      return fastest(card, {int8, bf16, f16});
  }
}

Peak peak_for(const Card& card, KvFormat format) {
  using enum ComputeType;
  switch (format) {
    case KvFormat::f32:
      return fastest(card, {f32});
    case KvFormat::f16:
      return fastest(card, {f16});
    case KvFormat::f8_e4m3:
    case KvFormat::f8_e5m2:
      return has(card, f8) ? fastest(card, {f8}) : fastest(card, {bf16, f16});
    case KvFormat::bf16:
      return has(card, bf16) ? fastest(card, {bf16}) : fastest(card, {f16});
    case KvFormat::nvfp4:
      return fastest(card, {f4, f8, bf16, f16});
    case KvFormat::int8:
      break;
    // llama.cpp multiplies ggml blocks with 8-bit queries.
    case KvFormat::q8_0:
    case KvFormat::q5_1:
    case KvFormat::q5_0:
    case KvFormat::q4_1:
    case KvFormat::q4_0:
    case KvFormat::iq4_nl:
      return fastest(card, {int8, bf16, f16});
  }
  return card.quantises_activations ? fastest(card, {int8, bf16, f16}) : fastest(card, {bf16, f16});
}

bool multiplies_ggml_blocks(const Work& work) { return std::visit(MultipliesGgmlBlocks{}, work); }

Peak peak_for(const Card& card, const Work& work) { return std::visit(PeakOf{card}, work); }

Speed speed_of(double seconds, double tokens, double users, Bound bound) {
  return {.ms_per_step = seconds * 1e3,
          .tokens_per_s = tokens / seconds,
          .tokens_per_s_per_user = tokens / seconds / users,
          .bound = bound};
}

OpPrediction predict_op(const Op& op, const Cost& cost, const Card& card) {
  OpPrediction prediction;
  prediction.peak = peak_for(card, op.work);
  const double memory_s = cost.least_bytes() / card.bytes_per_s();
  const double compute_s = cost.flops / prediction.peak.flops_per_s;
  prediction.ceiling_s = std::max(memory_s, compute_s);
  prediction.ceiling_even_routing_s = std::max(cost.bytes() / card.bytes_per_s(), compute_s);
  prediction.bound = memory_s >= compute_s ? Bound::memory : Bound::compute;
  prediction.expected_s = expected_terms(op, cost, prediction.peak, card).total();
  return prediction;
}

Prediction predict(const Step& step, const Card& card) {
  Prediction prediction;
  double compute_s = 0;
  double expected_s = 0;
  double slowest_s = 0;  // within what is known of rates
  double fastest_s = 0;
  // Expected time by the term that is the larger in each kernel, and the launches.
  double memory_bound_s = 0;
  double compute_bound_s = 0;
  double overhead_s = 0;
  std::map<ComputeType, double> flops_by_type;
  for (std::size_t i = 0; i < step.ops->size(); ++i) {
    const Op& op = (*step.ops)[i];
    const Cost& cost = step.costs[i];
    prediction.ops.push_back(predict_op(op, cost, card));
    const OpPrediction& p = prediction.ops.back();
    compute_s += cost.flops / p.peak.flops_per_s;
    flops_by_type[p.peak.type] += cost.flops;
    const ExpectedTerms terms = expected_terms(op, cost, p.peak, card);
    expected_s += terms.total();
    slowest_s += terms.total_at(1 / terms.unknown_factor);
    fastest_s += terms.total_at(terms.unknown_factor);
    overhead_s += terms.overhead_s;
    (terms.memory_s >= terms.compute_s ? memory_bound_s : compute_bound_s) +=
        std::max(terms.memory_s, terms.compute_s);
  }
  const auto most = std::max_element(flops_by_type.begin(), flops_by_type.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != flops_by_type.end()) {
    const auto it = card.peaks.find(most->first);
    prediction.peak = {most->first, it->second.tflops * 1e12};
  }
  prediction.ridge = prediction.peak.flops_per_s / card.bytes_per_s();
  const double compulsory = step.total.compulsory_bytes();
  prediction.intensity = compulsory > 0 ? step.total.flops / compulsory : 0;

  const double users = static_cast<double>(step.workload.batch);
  const double tokens = static_cast<double>(step.workload.rows());
  const auto memory_s = [&](double bytes) { return bytes / card.bytes_per_s(); };
  const auto ceiling = [&](double bytes) {
    return speed_of(std::max(memory_s(bytes), compute_s), tokens, users,
                    memory_s(bytes) >= compute_s ? Bound::memory : Bound::compute);
  };
  prediction.ceiling = ceiling(step.total.least_compulsory_bytes());
  prediction.ceiling_even_routing = ceiling(compulsory);

  Bound expected_bound = memory_bound_s >= compute_bound_s ? Bound::memory : Bound::compute;
  if (overhead_s > std::max(memory_bound_s, compute_bound_s)) expected_bound = Bound::overhead;
  // Constants of a class must not promise more than the datasheet allows under the routing they assume.
  const double least_s = std::max(memory_s(compulsory), compute_s);
  for (double* seconds : {&expected_s, &slowest_s, &fastest_s}) *seconds = std::max(*seconds, least_s);
  ExpectedSpeed& expected = prediction.expected;
  static_cast<Speed&>(expected) = speed_of(expected_s, tokens, users, expected_bound);
  const double spread = card.achievable.spread;
  expected.low_tokens_per_s = tokens / slowest_s * (1 - spread);
  expected.high_tokens_per_s =
      std::min(tokens / fastest_s * (1 + spread), prediction.ceiling_even_routing.tokens_per_s);
  if (slowest_s > expected_s) expected.unknown_factor = kGgmlRateFactor;
  expected.provisional = card.achievable.provisional || expected.unknown_factor > 1;
  prediction.weights_fit_cache = card.l2_MiB > 0 && step.total.weight_bytes_least <= card.l2_MiB * kMiB;
  return prediction;
}

MemoryFit memory_fit(const Model& model, const Step& step, const Card& card) {
  MemoryFit fit;
  double largest_activation = 0;
  for (std::size_t i = 0; i < step.ops->size(); ++i) {
    const double one_copy = step.costs[i].activation_bytes / static_cast<double>((*step.ops)[i].count());
    largest_activation = std::max(largest_activation, one_copy);
  }
  const auto sequences = static_cast<double>(step.workload.batch);
  const std::int64_t context = step.workload.context;
  const auto kv = [&](std::int64_t beyond_window) {
    return sequences * static_cast<double>(kv_cache_bytes(model, context, beyond_window));
  };
  fit.kv_bytes = kv(0);
  fit.kv_micro_batch_bytes = kv(kMicroBatch);
  fit.kv_full_bytes = kv(context);
  fit.required_bytes = static_cast<double>(stored_bytes(model)) + fit.kv_bytes +
                       sequences * static_cast<double>(state_bytes(model)) + largest_activation;
  if (card.capacity_GiB > 0) fit.capacity_bytes = card.capacity_GiB * kGiB;
  return fit;
}

std::optional<bool> MemoryFit::fits() const {
  if (!capacity_bytes) return std::nullopt;
  return required_bytes <= *capacity_bytes;
}

std::optional<double> MemoryFit::headroom_bytes() const {
  if (!capacity_bytes) return std::nullopt;
  return *capacity_bytes - required_bytes;
}

bool MemoryFit::tight() const {
  if (!fits().value_or(false)) return false;
  return *headroom_bytes() < kKeptBack * *capacity_bytes ||
         required_bytes - kv_bytes + kv_full_bytes > *capacity_bytes;
}

}  // namespace memwall
