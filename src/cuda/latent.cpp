// Attention over latents, absorbed, of a decode step on a GPU: the step's new latent written into the cache,
// then attention over it. A prompt's is not measured.
#include "kernels/cuda/latent.h"

#include <algorithm>
#include <cmath>

#include "bench/cpu_cache.h"
#include "cuda/cache.h"
#include "cuda/operands.h"
#include "format/checked.h"

namespace memwall::cuda {
namespace {

struct Plan {
  Plan(const LatentWork& work, const Workload& workload, const GpuProperties& gpu) : state(work.state) {
    const std::int64_t held = entries_kept(state, workload.context);
    const std::int64_t read = state.top_k > 0 ? std::min(held, state.top_k) : held;
    shape = {*kv_element(work.kv),    workload.batch, state.heads, 1,
             state.rank + state.rope, state.rank,     held,        read};
    activation = activation_type(shape.element);
    on_tensor_cores = kv_on_tensor_cores(shape.element, gpu.arch) &&
                      staged_takes(shape.element, shape.d_k, shape.d_v, true);
    if (on_tensor_cores) {
      staged = staged_launch(shape, true, gpu.multiprocessors);
      staged.params.scale = static_cast<float>(scale());
    } else {
      // Keys and values are two reads of the same rows.
      plain = plain_attention_launch(shape, gpu.multiprocessors);
      plain.params.v_pitch = plain.params.k_pitch;
      plain.params.scale = static_cast<float>(scale());
    }
    partial_floats = attention_partial_floats(params(), shape.seqs);
  }

  bool has_kernel() const { return on_tensor_cores || plain_takes(shape); }
  const AttentionParams& params() const { return on_tensor_cores ? staged.params : plain.params; }
  bool sparse() const { return shape.read < shape.held; }
  // A head's queries and keys were of this width before they were absorbed.
  double scale() const {
    const std::int64_t width = state.d_nope > 0 ? state.d_nope + state.rope : state.rank + state.rope;
    return 1 / std::sqrt(static_cast<double>(width));
  }
  // Bytes that a launch reads of a row, every time it does.
  double row_bytes() const {
    const auto row = static_cast<double>(kv_pitch(shape.element, shape.d_k));
    if (on_tensor_cores) return row * static_cast<double>(staged_reads(shape));
    return 2 * row * static_cast<double>(plain_reads(shape));
  }
  std::int64_t copy_bytes() const {
    return CacheCopies::copy_bytes(shape.element, shape.d_k, shape.seqs, shape.held);
  }
  // Elements: queries, then the new latents.
  std::int64_t queries() const { return shape.seqs * shape.heads * shape.d_k; }
  std::int64_t inputs() const { return checked_mul(checked_mul(shape.seqs, shape.heads + 1), shape.d_k); }
  std::int64_t output_bytes() const {
    return checked_mul(checked_mul(shape.seqs, shape.heads), shape.d_v) * scalar_bytes(activation);
  }

  LatentState state;
  AttentionShape shape;
  bool on_tensor_cores = false;
  LatentLaunch staged;
  AttentionLaunch plain;
  ScalarType activation = ScalarType::f16;
  std::int64_t partial_floats = 0;
};

class LatentOperands final : public Operands {
 public:
  LatentOperands(const LatentWork& work, const Workload& workload, Context& context, std::int64_t copies,
                 std::uint64_t seed)
      : plan_(work, workload, context.gpu.properties()),
        cost_(cost_of(work, workload)),
        gpu_(context.gpu),
        latents_(context, plan_.shape.element, plan_.shape.d_k, plan_.shape.seqs, plan_.shape.held, copies,
                 seed),
        inputs_(context.inputs.with_room(gpu_, plan_.activation, plan_.inputs())),
        outputs_(context.outputs.with_room(gpu_, plan_.output_bytes())),
        partials_(gpu_, plan_.partial_floats * 4),
        counters_(gpu_, attention_counters(plan_.shape) * 4) {
    gpu_.zero(counters_.data(), counters_.bytes());
    if (!plan_.sparse()) return;
    chosen_ = draw_tokens(plan_.shape.seqs, 0, plan_.shape.held, plan_.shape.read, seed + 13);
    chosen_buffer_ = uploaded(gpu_, chosen_);
  }

  void launch(std::size_t, std::int64_t turn) override {
    if (!plan_.on_tensor_cores) {
      AttentionLaunch launch = plan_.plain;
      point(launch.params, turn);
      launch.params.v = launch.params.k;
      gpu_.launch(launch);
      return;
    }
    LatentLaunch launch = plan_.staged;
    point(launch.params, turn);
    launch_staged(gpu_, launch);
  }

  double cold_bytes(std::int64_t) const override { return cost_.kv_bytes(); }
  double flops(std::int64_t) const override { return cost_.flops; }
  double padding_bytes(std::int64_t) const override {
    const double rows = static_cast<double>(plan_.shape.seqs) * static_cast<double>(plan_.shape.read);
    return rows * plan_.row_bytes() - cost_.kv_read_bytes;
  }

  Check check(std::size_t variant) override {
    const AttentionShape& s = plan_.shape;
    const std::int64_t turn = latents_.count() - 1;
    poison(gpu_, outputs_->data(), plan_.output_bytes());
    launch(variant, turn);
    Comparison comparison;
    for (const std::int64_t seq : sample_indices(s.seqs, 3)) {
      const HostRows rows(gpu_, s.element, s.d_k,
                          latents_.of(turn) + seq * s.held * kv_pitch(s.element, s.d_k), s.held);
      std::vector<std::int32_t> tokens = token_range(0, s.held);
      if (plan_.sparse()) tokens.assign(chosen_.begin() + seq * s.read, chosen_.begin() + (seq + 1) * s.read);
      for (const std::int64_t head : sample_indices(s.heads, 3)) {
        const std::int64_t query = seq * s.heads + head;
        const ReferenceAttention reference{
            rows,
            rows,
            plan_.activation,
            download_values(gpu_, plan_.activation, inputs_->data(), query * s.d_k, s.d_k),
            false,
            plan_.scale()};
        reference.compare(comparison, tokens,
                          download_values(gpu_, plan_.activation, outputs_->data(), query * s.d_v, s.d_v));
      }
    }
    return comparison.result();
  }

 private:
  void point(AttentionParams& p, std::int64_t turn) const {
    p.k = latents_.of(turn);
    p.q = inputs_->data();
    // Where an entry stands for several tokens, one step in so many completes it.
    if (turn % plan_.state.every == 0)
      p.new_k = inputs_->data() + plan_.queries() * scalar_bytes(plan_.activation);
    p.y = outputs_->data();
    if (plan_.sparse()) p.chosen = chosen_buffer_.as<std::int32_t>();
    p.partials = partials_.as<float>();
    p.arrived = counters_.as<unsigned>();
  }

  Plan plan_;
  Cost cost_;
  Gpu& gpu_;
  CacheCopies latents_;
  std::shared_ptr<Buffer> inputs_;
  std::shared_ptr<Buffer> outputs_;
  Buffer partials_;
  Buffer counters_;
  std::vector<std::int32_t> chosen_;
  Buffer chosen_buffer_;
};

}  // namespace

std::vector<Variant> variants_of(const LatentWork& work, const OpTask& task, Context& context) {
  if (task.workload.phase != Phase::decode || !kv_element(work.kv)) return {};
  const Plan plan(work, task.workload, context.gpu.properties());
  if (!plan.has_kernel()) return {};
  return {{plan.on_tensor_cores ? "mma, latents in shared memory" : "fma", 0}};
}

Footprint footprint_of(const LatentWork& work, const OpTask& task, Context& context) {
  const Plan plan(work, task.workload, context.gpu.properties());
  const std::int64_t chosen = plan.sparse() ? checked_mul(plan.shape.seqs, plan.shape.read) : 0;
  const std::int64_t words =
      checked_add(plan.partial_floats, checked_add(chosen, attention_counters(plan.shape)));
  Footprint footprint;
  footprint.copy_bytes = plan.copy_bytes();
  footprint.fixed_bytes = checked_add(
      checked_mul(words, 4),
      checked_add(checked_mul(plan.inputs(), scalar_bytes(plan.activation)), plan.output_bytes()));
  return footprint;
}

std::unique_ptr<Operands> place(const LatentWork& work, const OpTask& task, Context& context,
                                std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<LatentOperands>(work, task.workload, context, copies, seed);
}

}  // namespace memwall::cuda
