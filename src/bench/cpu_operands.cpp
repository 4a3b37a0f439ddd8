// Which of the CPU's kernels run a task, and what its operands take.
#include "bench/cpu_operands.h"

#include <algorithm>
#include <stdexcept>

#include "bench/cpu_recurrent.h"
#include "format/checked.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/linear.h"

namespace memwall {
namespace {

constexpr std::int64_t kFloat = 4;  // activations are f32 on the CPU

cpu::Attention attention_shape(const AttentionWork& work, const Workload& workload) {
  return {.kv = work.kv,
          .seqs = workload.batch,
          .context = workload.context,
          .window = work.window,
          .heads = work.heads,
          .kv_heads = work.kv_heads,
          .d_k = work.d_k,
          .d_v = work.d_v};
}

struct VariantsOf {
  const Workload& workload;

  std::vector<Variant> operator()(const LinearWork& w) const {
    return linear_variants(w, linear_rows(w, workload));
  }
  std::vector<Variant> operator()(const RouterWork& w) const {
    return linear_variants(w.linear, linear_rows(w.linear, workload));
  }
  std::vector<Variant> operator()(const ExpertWork& w) const {
    return linear_variants(w.each, average_expert_rows(w, workload.rows()));
  }
  std::vector<Variant> operator()(const AttentionWork& w) const {
    if (!cpu::has_attention(w.kv) || w.chunk > 0 || w.top_k > 0) return {};
    return {{workload.phase == Phase::decode ? "flash" : "blas", 0}};
  }
  // No kernel for these yet.
  std::vector<Variant> operator()(const LatentWork&) const { return {}; }
  std::vector<Variant> operator()(const IndexerWork&) const { return {}; }
  std::vector<Variant> operator()(const RecurrentWork& w) const {
    if (!has_recurrence(w)) return {};
    return {{"in place", 0}};
  }
  std::vector<Variant> operator()(const ElementwiseWork&) const { return {{"plain", 0}}; }
  std::vector<Variant> operator()(const EmbeddingWork& w) const {
    if (!cpu::has_linear(w.format)) return {};
    return {{"gather", 0}};
  }
};

struct FootprintOf {
  const Workload& workload;
  int workers;

  Footprint operator()(const LinearWork& w) const { return linear(w, linear_rows(w, workload)); }
  Footprint operator()(const RouterWork& w) const {
    return linear(w.linear, linear_rows(w.linear, workload));
  }

  Footprint operator()(const ExpertWork& w) const {
    const std::int64_t rows = checked_mul(workload.rows(), w.per_token);
    Footprint footprint = linear(w.each, rows);
    footprint.least_copies = std::min(w.total, rows);  // as many as a launch may touch
    return footprint;
  }

  Footprint operator()(const AttentionWork& w) const {
    const cpu::Attention shape = attention_shape(w, workload);
    const std::int64_t cached = checked_mul(workload.batch, workload.context);
    const std::int64_t rows = workload.rows();
    const std::int64_t scratch = workload.phase == Phase::decode ? cpu::attention_scratch_floats(shape)
                                                                 : cpu::prefill_scratch_floats(shape);
    Footprint footprint;
    footprint.copy_bytes =
        checked_mul(cached, w.kv_heads * (kv_vector_bytes(w.kv, w.d_k) + kv_vector_bytes(w.kv, w.d_v)));
    footprint.fixed_bytes = checked_mul(checked_mul(rows, w.heads * (w.d_k + w.d_v)), kFloat) +
                            checked_mul(scratch * workers, kFloat);
    return footprint;
  }

  // No kernel yet, so never asked for.
  Footprint operator()(const LatentWork&) const { return {}; }
  Footprint operator()(const IndexerWork&) const { return {}; }

  Footprint operator()(const RecurrentWork& w) const {
    return {.copy_bytes = recurrent_layout(w, workload.batch).copy_bytes,
            .fixed_bytes = recurrent_activation_bytes(w, workload.rows()),
            .writes = true};
  }

  Footprint operator()(const ElementwiseWork& w) const {
    const std::int64_t elements = checked_mul(elementwise_tokens(w, workload), w.rows_per_token * w.width);
    return {.fixed_bytes = checked_mul(elements, (w.inputs + 1) * kFloat) + w.weights * 2, .cold = false};
  }

  Footprint operator()(const EmbeddingWork& w) const {
    return {.fixed_bytes = storage_bytes(w.format, embedding_rows_held(w), w.width) +
                           checked_mul(checked_mul(workload.rows(), w.width), kFloat),
            .cold = false};
  }

 private:
  Footprint linear(const LinearWork& w, std::int64_t rows) const {
    Footprint footprint;
    footprint.copy_bytes = storage_bytes(w.format, w.out, w.in);
    footprint.fixed_bytes = checked_mul(checked_mul(rows, w.in + w.out), kFloat) + w.out * kFloat +
                            checked_mul(cpu::gemm_panel_floats(w.in) * workers, kFloat);
    return footprint;
  }
};

struct TaskVariants {
  std::vector<Variant> operator()(const OpTask& t) const {
    return std::visit(VariantsOf{t.workload}, t.work);
  }
  std::vector<Variant> operator()(const StreamTask& t) const {
    if (t.pattern == StreamPattern::read)
      return {{"1 stream", 0}, {"2 streams", 0}, {"4 streams", 0}, {"8 streams", 0}};
    return {{"plain", 0}};
  }
  std::vector<Variant> operator()(const AddTask& t) const {
    return is_supported(t.format) ? plain() : none();
  }
  std::vector<Variant> operator()(const MatmulTask& t) const {
    if (!is_supported(t.format)) return none();
    return {{"blas", 0}};
  }

 private:
  static bool is_supported(Format f) { return f.kind == FormatKind::f32 || f.kind == FormatKind::f16; }
  static std::vector<Variant> plain() { return {{"plain", 0}}; }
  static std::vector<Variant> none() { return {}; }
};

struct TaskFootprint {
  int workers;

  Footprint operator()(const OpTask& t) const { return std::visit(FootprintOf{t.workload, workers}, t.work); }
  Footprint operator()(const StreamTask& t) const {
    const std::int64_t arrays = t.pattern == StreamPattern::read   ? 1
                                : t.pattern == StreamPattern::copy ? 2
                                                                   : 3;
    return {.copy_bytes = checked_mul(t.bytes, arrays)};
  }
  Footprint operator()(const AddTask& t) const {
    return {.copy_bytes = 3 * storage_bytes(t.format, t.n, t.n)};
  }
  Footprint operator()(const MatmulTask& t) const {
    // f16 operands are widened to f32 first: b whole, a and c by panels of rows.
    const std::int64_t widened = t.format.kind == FormatKind::f32 ? 0 : 3 * t.n * t.n * kFloat;
    return {.copy_bytes = 3 * storage_bytes(t.format, t.n, t.n), .fixed_bytes = widened};
  }
};

struct PlaceWork {
  const Workload& workload;
  CpuContext& context;
  std::int64_t copies;
  std::uint64_t seed;

  std::unique_ptr<Operands> operator()(const LinearWork& w) const {
    return place_linear(w, linear_rows(w, workload), context, copies, seed);
  }
  std::unique_ptr<Operands> operator()(const RouterWork& w) const {
    return place_router(w, workload.rows(), context, copies, seed);
  }
  std::unique_ptr<Operands> operator()(const ExpertWork& w) const {
    return place_experts(w, workload.rows(), context, copies, seed);
  }
  std::unique_ptr<Operands> operator()(const AttentionWork& w) const {
    return place_attention(w, workload, context, copies, seed);
  }
  std::unique_ptr<Operands> operator()(const LatentWork&) const { return nullptr; }
  std::unique_ptr<Operands> operator()(const IndexerWork&) const { return nullptr; }
  std::unique_ptr<Operands> operator()(const RecurrentWork& w) const {
    return place_recurrent(w, workload, context, copies, seed);
  }
  std::unique_ptr<Operands> operator()(const ElementwiseWork& w) const {
    return place_elementwise(w, elementwise_tokens(w, workload), context, seed);
  }
  std::unique_ptr<Operands> operator()(const EmbeddingWork& w) const {
    return place_embedding(w, workload.rows(), context, seed);
  }
};

struct PlaceTask {
  CpuContext& context;
  std::int64_t copies;
  std::uint64_t seed;

  std::unique_ptr<Operands> operator()(const OpTask& t) const {
    return std::visit(PlaceWork{t.workload, context, copies, seed}, t.work);
  }
  std::unique_ptr<Operands> operator()(const StreamTask& t) const {
    return place_stream(t, context, copies, seed);
  }
  std::unique_ptr<Operands> operator()(const AddTask& t) const { return place_add(t, context, copies, seed); }
  std::unique_ptr<Operands> operator()(const MatmulTask& t) const {
    return place_matmul(t, context, copies, seed);
  }
};

}  // namespace

// Our dot kernel and the BLAS; many rows are the BLAS's alone, where a dot kernel would take minutes.
std::vector<Variant> linear_variants(const LinearWork& work, std::int64_t rows) {
  constexpr std::int64_t kMostDotRows = 64;
  constexpr std::int64_t kLeastBlasRows = 8;
  if (!cpu::has_linear(work.format)) return {};
  std::vector<Variant> variants;
  const std::int64_t panel = cpu::gemm_panel_floats(work.in) * kFloat;
  if (rows <= kMostDotRows) variants.push_back({"dot", 0});
  if (rows >= kLeastBlasRows) variants.push_back({"blas", panel});
  return variants;
}

std::int64_t average_expert_rows(const ExpertWork& work, std::int64_t tokens) {
  return std::max<std::int64_t>(1, tokens * work.per_token / work.total);
}

std::int64_t linear_rows(const LinearWork& work, const Workload& workload) {
  return work.last_token_only ? workload.batch : workload.rows();
}

std::int64_t embedding_rows_held(const EmbeddingWork& work) {
  constexpr std::int64_t kMostRows = 8192;
  return std::min(work.rows, kMostRows);
}

std::int64_t elementwise_tokens(const ElementwiseWork& work, const Workload& workload) {
  return work.last_token_only ? workload.batch : workload.rows();
}

std::vector<Variant> cpu_variants(const Task& task) { return std::visit(TaskVariants{}, task); }

Footprint cpu_footprint(const Task& task, int workers) { return std::visit(TaskFootprint{workers}, task); }

std::unique_ptr<Operands> cpu_place(const Task& task, CpuContext& context, std::int64_t copies,
                                    std::uint64_t seed) {
  return std::visit(PlaceTask{context, copies, seed}, task);
}

}  // namespace memwall
