#include "report/figures.h"

#include <algorithm>

#include "format/units.h"
#include "model/components.h"
#include "model/weight_assignment.h"

namespace memwall {
namespace {

struct ShapeFigures {
  Json& json;
  const Cost& cost;

  void linear(const LinearWork& w) const {
    json["out"] = w.out;
    json["in"] = w.in;
    json["format"] = format_name(w.format);
  }
  void operator()(const LinearWork& w) const { linear(w); }
  void operator()(const RouterWork& w) const { linear(w.linear); }
  void operator()(const ExpertWork& w) const {
    linear(w.each);
    json["experts"] = {
        {"total", w.total}, {"per_token", w.per_token}, {"touched", number(cost.experts_touched)}};
  }
  void operator()(const AttentionWork& w) const {
    json["out"] = w.heads * w.d_v;
    json["in"] = w.heads * w.d_k;
    json["format"] = std::string(kv_format_name(w.kv));
    json["heads"] = w.heads;
    json["kv_heads"] = w.kv_heads;
    if (w.window > 0) json["window"] = w.window;
    if (w.chunk > 0) json["chunk"] = w.chunk;
    if (w.top_k > 0) json["top_k"] = w.top_k;
  }
  void operator()(const LatentWork& w) const {
    json["out"] = w.state.heads * w.state.rank;
    json["in"] = w.state.heads * (w.state.rank + w.state.rope);
    json["format"] = std::string(kv_format_name(w.kv));
    json["heads"] = w.state.heads;
    json["kv_heads"] = 1;
    if (w.state.window > 0) json["window"] = w.state.window;
    if (w.state.top_k > 0) json["top_k"] = w.state.top_k;
  }
  void operator()(const IndexerWork& w) const {
    json["out"] = w.state.heads;
    json["in"] = w.state.heads * w.state.width;
    json["format"] = std::string(kv_format_name(w.kv));
    json["heads"] = w.state.heads;
    json["kv_heads"] = 1;
  }
  void operator()(const RecurrentWork& w) const {
    json["out"] = w.state.elements;
    json["in"] = w.state.elements;
    json["format"] = w.state.element_bytes == 4 ? "f32" : "bf16";
  }
  void operator()(const ElementwiseWork& w) const {
    json["out"] = w.rows_per_token * w.width;
    json["in"] = w.rows_per_token * w.width;
    json["format"] = w.weights > 0 ? Json(format_name(w.weight_format)) : Json(nullptr);
  }
  void operator()(const EmbeddingWork& w) const {
    json["out"] = w.rows;
    json["in"] = w.width;
    json["format"] = format_name(w.format);
  }
};

Json unknown_factor(const ExpectedSpeed& expected) {
  return expected.unknown_factor > 1 ? number(expected.unknown_factor) : Json(nullptr);
}

}  // namespace

TimeRange ttft_range_s(const Estimate& estimate) {
  const double tokens = static_cast<double>(estimate.prefill_step->workload.rows());
  const ExpectedSpeed& expected = estimate.prefill->expected;
  return {tokens / expected.high_tokens_per_s, tokens / expected.low_tokens_per_s};
}

Json model_figures(const Model& model) {
  const ParameterCount count = count_parameters(model);
  Json json;
  json["name"] = model.name;
  json["title"] = model.title;
  json["architecture"] = model.architecture;
  json["source"] = model.source;
  json["layers"] = model.layers;
  json["hidden_size"] = model.hidden_size > 0 ? Json(model.hidden_size) : Json(nullptr);
  json["vocab_size"] = model.vocab_size > 0 ? Json(model.vocab_size) : Json(nullptr);
  json["max_context"] = model.max_context > 0 ? Json(model.max_context) : Json(nullptr);
  json["weights"] = weights_label(model);
  json["head_weights"] = format_name(model.head);
  json["kv"] = std::string(kv_format_name(model.kv));
  json["parameters"] = {{"total", count.total}, {"embedding", count.embedding}, {"active", count.active}};
  if (model.published) {
    json["parameters"]["published"] = model.published->parameters;
    json["parameters"]["published_source"] = model.published->source;
    json["parameters"]["published_difference"] = published_difference(model);
    if (model.published->buffers > 0) {
      json["parameters"]["buffers"] = model.published->buffers;
      json["parameters"]["buffers_are"] = model.published->buffers_are;
    }
  }
  json["bytes"] = {{"weights_total", stored_bytes(model)},
                   {"weights_read", read_bytes(model)},
                   {"kv_per_token", kv_bytes_per_token(model)},
                   {"state", state_bytes(model)}};
  for (const Component& c : components_of(model)) {
    json["components"].push_back({{"name", c.name},
                                  {"parameters", c.parameters},
                                  {"stored_bytes", c.stored_bytes},
                                  {"read_bytes", c.read_bytes}});
  }
  for (const Extra& extra : model.extras) {
    json["extras"].push_back({{"what", extra.what},
                              {"tensors", extra.tensors > 0 ? Json(extra.tensors) : Json(nullptr)},
                              {"parameters", extra.parameters > 0 ? Json(extra.parameters) : Json(nullptr)},
                              {"bytes", extra.bytes > 0 ? Json(extra.bytes) : Json(nullptr)}});
  }
  if (model.approximate) json["approximate"] = true;
  return json;
}

Json op_figures(const Op& op, const Cost& cost, const OpPrediction* prediction) {
  Json json;
  json["name"] = op.name;
  json["kind"] = std::string(op_kind_name(op.kind()));
  json["layers"] = op.layers;
  json["count"] = op.count();
  std::visit(ShapeFigures{json, cost}, op.work);
  json["bytes"] = number(cost.bytes());
  json["weight_bytes"] = number(cost.weight_bytes);
  if (op.kind() == OpKind::expert) json["weight_bytes_least"] = number(cost.weight_bytes_least);
  json["kv_bytes"] = number(cost.kv_bytes());
  json["state_bytes"] = number(cost.state_bytes);
  json["activation_bytes"] = number(cost.activation_bytes);
  json["flops"] = number(cost.flops);
  json["intensity"] = number(cost.intensity());
  json["fusible"] = op.fusible;
  if (prediction != nullptr) {
    json["bound"] = std::string(bound_name(prediction->bound));
    json["peak"] = std::string(compute_type_name(prediction->peak.type));
    json["ceiling_us"] = number(prediction->ceiling_s * 1e6);
    if (op.kind() == OpKind::expert)
      json["ceiling_even_routing_us"] = number(prediction->ceiling_even_routing_s * 1e6);
    json["expected_us"] = number(prediction->expected_s * 1e6);
  }
  return json;
}

Json speed_figures(const Speed& speed) {
  return {{"ms_per_step", number(speed.ms_per_step)},
          {"tokens_per_s", number(speed.tokens_per_s)},
          {"tokens_per_s_per_user", number(speed.tokens_per_s_per_user)},
          {"bound", std::string(bound_name(speed.bound))}};
}

Json byte_figures(const Cost& total) {
  return {{"weights", number(total.weight_bytes)},
          {"weights_least", number(total.weight_bytes_least)},
          {"kv", number(total.kv_bytes())},
          {"kv_read", number(total.kv_read_bytes)},
          {"kv_write", number(total.kv_write_bytes)},
          {"state", number(total.state_bytes)},
          {"activations", number(total.activation_bytes)},
          {"total", number(total.bytes())}};
}

Json ops_figures(const Step& step, const Prediction* prediction) {
  Json ops = Json::array();
  for (std::size_t i = 0; i < step.ops->size(); ++i) {
    ops.push_back(
        op_figures((*step.ops)[i], step.costs[i], prediction != nullptr ? &prediction->ops[i] : nullptr));
  }
  return ops;
}

bool has_experts(const Step& step) {
  return std::any_of(step.ops->begin(), step.ops->end(),
                     [](const Op& op) { return op.kind() == OpKind::expert; });
}

Json memory_figures(const MemoryFit& fit) {
  const auto gib = [](std::optional<double> bytes) { return bytes ? number(*bytes / kGiB) : Json(nullptr); };
  const std::optional<bool> fits = fit.fits();
  return {{"required_GiB", gib(fit.required_bytes)},
          {"capacity_GiB", gib(fit.capacity_bytes)},
          {"fits", fits ? Json(*fits) : Json(nullptr)},
          {"headroom_GiB", gib(fit.headroom_bytes())},
          {"tight", fits ? Json(fit.tight()) : Json(nullptr)},
          {"kv_GiB", gib(fit.kv_bytes)},
          {"kv_micro_batch_GiB", gib(fit.kv_micro_batch_bytes)},
          {"kv_full_GiB", gib(fit.kv_full_bytes)}};
}

Json estimate_figures(const Estimate& e, bool with_ops) {
  Json json;
  json["card"] = e.card->name;
  json["model"] = e.model->name;
  json["batch"] = e.step.workload.batch;
  json["context"] = e.step.workload.context;
  json["weights"] = weights_label(*e.model);
  json["head_weights"] = format_name(e.model->head);
  json["kv"] = std::string(kv_format_name(e.model->kv));
  json["tensor_parallel"] = 1;
  if (e.model->approximate) json["approximate"] = true;
  json["bytes"] = byte_figures(e.step.total);
  json["flops"] = number(e.step.total.flops);
  json["intensity"] = number(e.prediction.intensity);
  json["ridge"] = number(e.prediction.ridge);
  json["peak"] = std::string(compute_type_name(e.prediction.peak.type));
  const bool fits = e.memory.fits().value_or(true);
  json["speeds_note"] = fits ? Json(nullptr) : Json(kNotARun);
  json["ceiling"] = speed_figures(e.prediction.ceiling);
  const bool experts = has_experts(e.step);
  if (experts) {
    json["ceiling_even_routing"] = speed_figures(e.prediction.ceiling_even_routing);
    json["routing"] = "even, independent";
  }
  Json expected = speed_figures(e.prediction.expected);
  expected["low_tokens_per_s"] = number(e.prediction.expected.low_tokens_per_s);
  expected["high_tokens_per_s"] = number(e.prediction.expected.high_tokens_per_s);
  expected["provisional"] = e.prediction.expected.provisional;
  expected["unknown_factor"] = unknown_factor(e.prediction.expected);
  json["expected"] = std::move(expected);
  json["memory"] = memory_figures(e.memory);
  if (e.prediction.weights_fit_cache) json["weights_fit_cache"] = true;
  if (e.prefill) {
    const double tokens = static_cast<double>(e.prefill_step->workload.rows());
    const double seconds = e.prefill->expected.ms_per_step / 1e3;
    json["prefill"] = {{"prompt", e.prefill_step->workload.context},
                       {"ttft_ms", number(e.prefill->expected.ms_per_step)},
                       {"low_ttft_ms", number(ttft_range_s(e).low * 1e3)},
                       {"high_ttft_ms", number(ttft_range_s(e).high * 1e3)},
                       {"tokens_per_s", number(tokens / seconds)},
                       {"low_tokens_per_s", number(e.prefill->expected.low_tokens_per_s)},
                       {"high_tokens_per_s", number(e.prefill->expected.high_tokens_per_s)},
                       {"provisional", e.prefill->expected.provisional},
                       {"unknown_factor", unknown_factor(e.prefill->expected)},
                       {"ceiling_ttft_ms", number(e.prefill->ceiling.ms_per_step)},
                       {"ceiling_tokens_per_s", number(e.prefill->ceiling.tokens_per_s)},
                       {"flops", number(e.prefill_step->total.flops)},
                       {"bound", std::string(bound_name(e.prefill->expected.bound))}};
    if (experts)
      json["prefill"]["ceiling_even_routing_ttft_ms"] = number(e.prefill->ceiling_even_routing.ms_per_step);
  }
  if (with_ops) json["ops"] = ops_figures(e.step, &e.prediction);
  return json;
}

Json card_figures(const Card& card) {
  Json json;
  json["name"] = card.name;
  json["title"] = card.title;
  json["aliases"] = card.aliases;
  json["vendor"] = card.vendor;
  json["architecture"] = card.architecture;
  json["bandwidth_GBps"] = number(card.bandwidth_GBps);
  json["capacity_GiB"] = card.capacity_GiB > 0 ? number(card.capacity_GiB) : Json(nullptr);
  json["l2_MiB"] = card.l2_MiB > 0 ? number(card.l2_MiB) : Json(nullptr);
  if (card.interconnect) {
    json["interconnect"] = {{"name", card.interconnect->name}, {"GBps", number(card.interconnect->GBps)}};
  }
  Json peaks = Json::object();
  Json ridges = Json::object();
  for (const auto& [type, figure] : card.peaks) {
    const std::string name(compute_type_name(type));
    peaks[name] = number(figure.tflops);
    ridges[name] = number(figure.tflops * 1e12 / card.bytes_per_s());
  }
  json["peaks_TFLOPs"] = std::move(peaks);
  json["ridge"] = std::move(ridges);
  json["achievable"] = {{"class", card.achievable.class_name},
                        {"provisional", card.achievable.provisional},
                        {"bandwidth_share", number(card.achievable.bandwidth_share)},
                        {"compute_share", number(card.achievable.compute_share)},
                        {"kernel_us", number(card.achievable.kernel_us)},
                        {"spread", number(card.achievable.spread)}};
  if (!card.assumed.empty()) json["assumed"] = card.assumed;
  return json;
}

}  // namespace memwall
