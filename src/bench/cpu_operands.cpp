// Which of the CPU's kernels run a task, and what its operands take.
#include "bench/cpu_operands.h"

#include <algorithm>
#include <stdexcept>

#include "bench/cpu_matmul.h"
#include "bench/cpu_recurrent.h"
#include "bench/cpu_weights.h"
#include "bench/routing.h"
#include "format/checked.h"
#include "input/error.h"
#include "kernels/cpu/blas_library.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/stream.h"
#include "kernels/cpu/widen.h"

namespace memwall {
namespace {

constexpr std::int64_t kFloat = 4;  // activations are f32 on the CPU

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
  std::vector<Variant> operator()(const AttentionWork& w) const { return attention_variants(w, workload); }
  std::vector<Variant> operator()(const LatentWork& w) const { return latent_variants(w, workload); }
  std::vector<Variant> operator()(const IndexerWork& w) const { return indexer_variants(w, workload); }
  std::vector<Variant> operator()(const RecurrentWork& w) const {
    if (!has_recurrence(w)) return {};
    return {{"in place", 0}};
  }
  std::vector<Variant> operator()(const ElementwiseWork&) const { return {{"plain", 0}}; }
  std::vector<Variant> operator()(const EmbeddingWork& w) const {
    if (!cpu::can_widen(w.format)) return {};
    return {{"gather", 0}};
  }
};

struct FootprintOf {
  const Workload& workload;
  bool whole_layers;
  int workers;

  Footprint operator()(const LinearWork& w) const { return linear(w, linear_rows(w, workload)); }
  Footprint operator()(const RouterWork& w) const {
    return linear(w.linear, linear_rows(w.linear, workload));
  }

  Footprint operator()(const ExpertWork& w) const {
    const std::int64_t rows = checked_mul(workload.rows(), w.per_token);
    // The rows as x has them, and gathered.
    Footprint footprint = linear(w.each, expert_rows(w, workload.rows()));
    footprint.fixed_bytes = checked_add(
        checked_add(footprint.fixed_bytes, checked_mul(checked_mul(workload.rows(), w.each.in), kFloat)),
        ExpertDraws::bytes(workload.rows(), w.per_token));
    // As many as a launch may touch, or choose from.
    footprint.least_copies = whole_layers ? w.total : std::min(w.total, rows);
    return footprint;
  }

  Footprint operator()(const AttentionWork& w) const { return attention_footprint(w, workload, workers); }
  Footprint operator()(const LatentWork& w) const { return latent_footprint(w, workload, workers); }
  Footprint operator()(const IndexerWork& w) const { return indexer_footprint(w, workload, workers); }

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
    constexpr std::int64_t kToken = 4;  // its number
    const std::int64_t a_row = checked_add(checked_mul(w.width, kFloat), kEmbeddingDraws * kToken);
    return {.fixed_bytes = checked_add(storage_bytes(w.format, embedding_rows_held(w), w.width),
                                       checked_mul(workload.rows(), a_row)),
            .cold = false};
  }

 private:
  Footprint linear(const LinearWork& w, std::int64_t rows) const {
    return linear(w, {.total = rows, .batches = 1, .a_matrix = rows});
  }

  Footprint linear(const LinearWork& w, const LinearRows& rows) const {
    Footprint footprint;
    footprint.copy_bytes = PanelWeights::copy_bytes(w);
    footprint.fixed_bytes = checked_mul(checked_mul(rows.total, w.in + w.out), kFloat) + w.out * kFloat +
                            linear_workspace_bytes(w, rows, workers);
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
    return t.nontemporal && !cpu::has_nontemporal_stores() ? none() : plain();
  }
  std::vector<Variant> operator()(const AddTask& t) const {
    return is_supported(t.format) ? plain() : none();
  }
  std::vector<Variant> operator()(const MatmulTask& t) const { return matmul_variants(t); }
  std::vector<Variant> operator()(const ArithmeticTask& t) const { return arithmetic_variants(t); }
  std::vector<Variant> operator()(const FusedTask&) const { return none(); }

 private:
  static bool is_supported(Format f) { return f.kind == FormatKind::f32 || f.kind == FormatKind::f16; }
  static std::vector<Variant> plain() { return {{"plain", 0}}; }
  static std::vector<Variant> none() { return {}; }
};

struct TaskFootprint {
  int workers;

  Footprint operator()(const OpTask& t) const {
    return std::visit(FootprintOf{t.workload, t.whole_layers, workers}, t.work);
  }
  Footprint operator()(const StreamTask& t) const { return {.copy_bytes = checked_mul(t.bytes, t.arrays())}; }
  Footprint operator()(const AddTask& t) const {
    return {.copy_bytes = 3 * storage_bytes(t.format, t.n, t.n)};
  }
  Footprint operator()(const MatmulTask& t) const { return matmul_footprint(t, workers); }
  Footprint operator()(const ArithmeticTask&) const { return {.cold = false}; }
  Footprint operator()(const FusedTask&) const { return {}; }
};

struct PlaceWork {
  const Workload& workload;
  bool whole_layers;
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
    return place_experts(w, workload.rows(), whole_layers, context, copies, seed);
  }
  std::unique_ptr<Operands> operator()(const AttentionWork& w) const {
    return place_attention(w, workload, context, copies, seed);
  }
  std::unique_ptr<Operands> operator()(const LatentWork& w) const {
    return place_latent(w, workload, context, copies, seed);
  }
  std::unique_ptr<Operands> operator()(const IndexerWork& w) const {
    return place_indexer(w, workload, context, copies, seed);
  }
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
    return std::visit(PlaceWork{t.workload, t.whole_layers, context, copies, seed}, t.work);
  }
  std::unique_ptr<Operands> operator()(const StreamTask& t) const {
    return place_stream(t, context, copies, seed);
  }
  std::unique_ptr<Operands> operator()(const AddTask& t) const { return place_add(t, context, copies, seed); }
  std::unique_ptr<Operands> operator()(const MatmulTask& t) const {
    return place_matmul(t, context, copies, seed);
  }
  std::unique_ptr<Operands> operator()(const ArithmeticTask& t) const { return place_arithmetic(t, context); }
  std::unique_ptr<Operands> operator()(const FusedTask&) const {
    throw std::logic_error("the CPU fuses nothing");
  }
};

}  // namespace

// Our dot kernel and the BLAS; many rows are the BLAS's alone, where a dot kernel would take minutes.
std::vector<Variant> linear_variants(const LinearWork& work, std::int64_t rows) {
  // Below 8 rows a GEMM's tile of them stays half empty, below 32 a BLAS packs in vain.
  constexpr std::int64_t kLeastGemmRows = 8;
  constexpr std::int64_t kLeastBlasRows = 32;
  if (!cpu::has_linear(work.format)) return {};
  std::vector<Variant> variants;
  const auto add = [&](const char* name, cpu::LinearKernel kernel) {
    variants.push_back(
        {name, cpu::prepared_bytes(kernel, work.format, rows, work.in) +
                   checked_mul(cpu::linear_scratch_floats(kernel, work.format, work.in), kFloat)});
  };
  if (rows <= cpu::kMostDotRows) add("dot", cpu::LinearKernel::dot);
  if (rows >= kLeastGemmRows) add("gemm", cpu::LinearKernel::gemm);
  if (rows >= kLeastGemmRows && cpu::takes_format(cpu::LinearKernel::gemm_int8, work.format))
    add("gemm int8", cpu::LinearKernel::gemm_int8);
  if (rows >= kLeastBlasRows) add("blas", cpu::LinearKernel::blas);
  return variants;
}

void cpu_require_blas() {
  const cpu::BlasLibrary& library = cpu::blas_library();
  if (library.sgemm == nullptr) throw RunError(library.why_not);
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
