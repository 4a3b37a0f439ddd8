// Attention of a decode step on a GPU: the step's new K and V written into the cache, then attention over it.
// A prompt's attention is not measured.
#include "cuda/attention.h"

#include <algorithm>
#include <cmath>

#include "bench/cpu_cache.h"
#include "cuda/cache.h"
#include "cuda/operands.h"
#include "format/checked.h"
#include "kernels/cuda/latent.h"

namespace memwall::cuda {
namespace {

// What a launch works on. A cache holds the tokens that later steps can reach, no others.
struct Plan {
  Plan(const AttentionTask& task, const GpuProperties& gpu) {
    const AttentionWork& work = task.work;
    const std::int64_t context = task.workload.context;
    shape = {*kv_element(work.kv),
             task.workload.batch,
             work.heads,
             work.kv_heads,
             work.d_k,
             work.d_v,
             tokens_kept(work, context),
             effective_context(work, context)};
    sparse = work.top_k > 0 && shape.read < shape.held;
    way = attention_way(shape, gpu.arch);
    if (way == AttentionWay::staged) staged = staged_launch(shape, false, gpu.multiprocessors);
    if (way == AttentionWay::registers || way == AttentionWay::plain)
      launch = attention_launch(shape, gpu.arch, gpu.multiprocessors);
    activation = activation_type(shape.element);
    partial_floats = attention_partial_floats(params(), shape.seqs);
    counters = attention_counters(shape);
    if (way == AttentionWay::staged) reads = staged_reads(shape);
    if (way == AttentionWay::plain) reads = plain_reads(shape);
  }

  const AttentionParams& params() const {
    return way == AttentionWay::staged ? staged.params : launch.params;
  }
  std::int64_t copy_bytes() const {
    const std::int64_t heads = checked_mul(shape.seqs, shape.kv_heads);
    return checked_add(CacheCopies::copy_bytes(shape.element, shape.d_k, heads, shape.held),
                       CacheCopies::copy_bytes(shape.element, shape.d_v, heads, shape.held));
  }
  // Elements: queries, then the new keys, then the new values.
  std::int64_t queries() const { return shape.seqs * shape.heads * shape.d_k; }
  std::int64_t new_keys() const { return shape.seqs * shape.kv_heads * shape.d_k; }
  std::int64_t inputs() const {
    const std::int64_t heads = checked_mul(shape.seqs, shape.heads + shape.kv_heads);
    return checked_mul(heads, shape.d_k + shape.d_v);
  }
  std::int64_t output_bytes() const {
    return checked_mul(checked_mul(shape.seqs, shape.heads), shape.d_v) * scalar_bytes(activation);
  }

  AttentionShape shape;
  bool sparse = false;  // reads a choice of what is held
  AttentionWay way = AttentionWay::none;
  AttentionLaunch launch;
  LatentLaunch staged;
  ScalarType activation = ScalarType::f16;
  std::int64_t partial_floats = 0;
  std::int64_t counters = 0;
  std::int64_t reads = 1;
};

class AttentionOperands final : public Operands {
 public:
  AttentionOperands(const AttentionTask& task, Context& context, std::int64_t copies, std::uint64_t seed)
      : task_(task),
        plan_(task, context.gpu.properties()),
        cost_(cost_of(task.work, task.workload)),
        gpu_(context.gpu),
        keys_(context, plan_.shape.element, plan_.shape.d_k, heads(), plan_.shape.held, copies, seed),
        values_(context, plan_.shape.element, plan_.shape.d_v, heads(), plan_.shape.held, copies, seed + 7),
        inputs_(context.inputs.with_room(gpu_, plan_.activation, plan_.inputs())),
        outputs_(context.outputs.with_room(gpu_, plan_.output_bytes())),
        partials_(gpu_, plan_.partial_floats * 4),
        counters_(gpu_, plan_.counters * 4) {
    gpu_.zero(counters_.data(), counters_.bytes());
    if (plan_.sparse) {
      chosen_ = draw_tokens(plan_.shape.seqs, 0, plan_.shape.held, plan_.shape.read, seed + 13);
      chosen_buffer_ = uploaded(gpu_, chosen_);
    }
    if (task.turned) {
      for (std::int64_t i = 0; i < plan_.shape.d_k / 2; ++i) {
        // Position 1000 of a model whose base is 10000 (RoFormer, arXiv:2104.09864).
        const double angle =
            1000 * std::pow(1e4, -2 * static_cast<double>(i) / static_cast<double>(plan_.shape.d_k));
        cosines_.push_back(static_cast<float>(std::cos(angle)));
        sines_.push_back(static_cast<float>(std::sin(angle)));
      }
      cosine_buffer_ = uploaded(gpu_, cosines_);
      sine_buffer_ = uploaded(gpu_, sines_);
    }
  }

  void launch(std::size_t, std::int64_t turn) override {
    if (plan_.way != AttentionWay::staged) {
      AttentionLaunch launch = plan_.launch;
      point(launch.params, turn);
      gpu_.launch(launch);
      return;
    }
    LatentLaunch launch = plan_.staged;
    point(launch.params, turn);
    launch_staged(gpu_, launch);
  }

  double cold_bytes(std::int64_t) const override { return cost_.kv_bytes(); }
  double flops(std::int64_t) const override { return task_.flops; }
  double padding_bytes(std::int64_t) const override {
    const AttentionShape& s = plan_.shape;
    const double rows = static_cast<double>(heads()) * static_cast<double>(s.read);
    const auto row = static_cast<double>(kv_pitch(s.element, s.d_k) + kv_pitch(s.element, s.d_v));
    return rows * row * static_cast<double>(plan_.reads) - cost_.kv_read_bytes;
  }

  Check check(std::size_t variant) override {
    const AttentionShape& s = plan_.shape;
    const std::int64_t turn = keys_.count() - 1;
    poison(gpu_, outputs_->data(), plan_.output_bytes());
    launch(variant, turn);
    Comparison comparison;
    for (const std::int64_t seq : sample_indices(s.seqs, 3)) {
      for (const std::int64_t head : sample_indices(s.heads, 3)) compare(comparison, turn, seq, head);
    }
    return comparison.result();
  }

 private:
  std::int64_t heads() const { return plan_.shape.seqs * plan_.shape.kv_heads; }

  void point(AttentionParams& p, std::int64_t turn) const {
    p.k = keys_.of(turn);
    p.v = values_.of(turn);
    const std::int64_t bytes = scalar_bytes(plan_.activation);
    p.q = inputs_->data();
    if (!task_.work.shared) {
      p.new_k = inputs_->data() + plan_.queries() * bytes;
      p.new_v = inputs_->data() + (plan_.queries() + plan_.new_keys()) * bytes;
    }
    p.y = outputs_->data();
    if (plan_.sparse) p.chosen = chosen_buffer_.as<std::int32_t>();
    if (task_.turned) {
      p.cosines = cosine_buffer_.as<float>();
      p.sines = sine_buffer_.as<float>();
    }
    p.partials = partials_.as<float>();
    p.arrived = counters_.as<unsigned>();
  }

  void compare(Comparison& comparison, std::int64_t turn, std::int64_t seq, std::int64_t head) const {
    const AttentionShape& s = plan_.shape;
    const std::int64_t kv_head = seq * s.kv_heads + head / s.group();
    // Rows from the first that is read on.
    const std::int64_t first = plan_.sparse || s.read == 0 ? 0 : s.held - s.read;
    const std::int64_t row = kv_head * s.held + first;
    const HostRows keys(gpu_, s.element, s.d_k, keys_.of(turn) + row * kv_pitch(s.element, s.d_k),
                        s.held - first);
    const HostRows values(gpu_, s.element, s.d_v, values_.of(turn) + row * kv_pitch(s.element, s.d_v),
                          s.held - first);
    const std::int64_t query = seq * s.heads + head;
    ReferenceAttention reference{
        keys,
        values,
        plan_.activation,
        download_values(gpu_, plan_.activation, inputs_->data(), query * s.d_k, s.d_k),
        task_.turned,
        1 / std::sqrt(static_cast<double>(s.d_k))};
    if (task_.turned) turn_pairs(reference.query, cosines_, sines_);
    std::vector<std::int32_t> tokens = token_range(0, s.read);
    if (plan_.sparse) tokens.assign(chosen_.begin() + seq * s.read, chosen_.begin() + (seq + 1) * s.read);
    reference.compare(comparison, tokens,
                      download_values(gpu_, plan_.activation, outputs_->data(), query * s.d_v, s.d_v));
    if (!task_.work.shared && !task_.turned) compare_new(comparison, values, kv_head, s.held - first - 1);
  }

  // The newest token's values as they were brought.
  void compare_new(Comparison& comparison, const HostRows& values, std::int64_t kv_head,
                   std::int64_t row) const {
    const AttentionShape& s = plan_.shape;
    const std::vector<double> brought = download_values(
        gpu_, plan_.activation, inputs_->data(), plan_.queries() + plan_.new_keys() + kv_head * s.d_v, s.d_v);
    const double rounding = s.element == KvElement::f8_e4m3 ? 0x1p-4 : 0;
    for (std::int64_t i = 0; i < s.d_v; ++i) {
      const double value = brought[static_cast<std::size_t>(i)];
      comparison.add(values.at(row, i), value, rounding * std::abs(value) + 1e-30);
    }
  }

  AttentionTask task_;
  Plan plan_;
  Cost cost_;
  Gpu& gpu_;
  CacheCopies keys_;
  CacheCopies values_;
  std::shared_ptr<Buffer> inputs_;
  std::shared_ptr<Buffer> outputs_;
  Buffer partials_;
  Buffer counters_;
  std::vector<std::int32_t> chosen_;
  Buffer chosen_buffer_;
  std::vector<float> cosines_;
  std::vector<float> sines_;
  Buffer cosine_buffer_;
  Buffer sine_buffer_;
};

AttentionTask task_of(const AttentionWork& work, const OpTask& task) {
  return {work, task.workload, false, cost_of(work, task.workload).flops};
}

}  // namespace

std::vector<Variant> attention_variants(const AttentionTask& task, Context& context) {
  if (task.workload.phase != Phase::decode || !kv_element(task.work.kv)) return {};
  const Plan plan(task, context.gpu.properties());
  switch (plan.way) {
    case AttentionWay::registers:
      return {{"mma, keys and values in registers", 0}};
    case AttentionWay::staged:
      return {{"mma, keys and values in shared memory", 0}};
    case AttentionWay::plain:
      return {{"fma", 0}};
    case AttentionWay::none:
      break;
  }
  return {};
}

Footprint attention_footprint(const AttentionTask& task, Context& context) {
  const Plan plan(task, context.gpu.properties());
  const std::int64_t chosen = plan.sparse ? checked_mul(plan.shape.seqs, plan.shape.read) : 0;
  const std::int64_t words =
      checked_add(checked_add(plan.partial_floats, plan.counters), checked_add(chosen, plan.shape.d_k));
  Footprint footprint;
  footprint.copy_bytes = plan.copy_bytes();
  footprint.fixed_bytes = checked_add(
      checked_mul(words, 4),
      checked_add(checked_mul(plan.inputs(), scalar_bytes(plan.activation)), plan.output_bytes()));
  return footprint;
}

std::unique_ptr<Operands> place_attention(const AttentionTask& task, Context& context, std::int64_t copies,
                                          std::uint64_t seed) {
  return std::make_unique<AttentionOperands>(task, context, copies, seed);
}

std::vector<Variant> variants_of(const AttentionWork& work, const OpTask& task, Context& context) {
  return attention_variants(task_of(work, task), context);
}

Footprint footprint_of(const AttentionWork& work, const OpTask& task, Context& context) {
  return attention_footprint(task_of(work, task), context);
}

std::unique_ptr<Operands> place(const AttentionWork& work, const OpTask& task, Context& context,
                                std::int64_t copies, std::uint64_t seed) {
  return place_attention(task_of(work, task), context, copies, seed);
}

}  // namespace memwall::cuda
