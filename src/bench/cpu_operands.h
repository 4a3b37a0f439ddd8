// The CPU device's tasks: which variants it has, what they take, and placing them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/cpu_activations.h"
#include "bench/device.h"
#include "bench/memory.h"
#include "bench/thread_pool.h"

namespace memwall {

// What the CPU's operands share.
struct CpuContext {
  explicit CpuContext(std::vector<int> cpus) : pool(std::move(cpus)) {}
  ThreadPool pool;
  SharedActivations activations;
  double huge_share = 0;  // of the buffer last placed
};

std::vector<Variant> cpu_variants(const Task& task);
Footprint cpu_footprint(const Task& task, int workers);
std::unique_ptr<Operands> cpu_place(const Task& task, CpuContext& context, std::int64_t copies,
                                    std::uint64_t seed);

// The placers, one a kind of work; each in its own file.
std::unique_ptr<Operands> place_linear(const LinearWork& work, std::int64_t rows, CpuContext& context,
                                       std::int64_t copies, std::uint64_t seed);
std::unique_ptr<Operands> place_experts(const ExpertWork& work, std::int64_t tokens, bool whole_layers,
                                        CpuContext& context, std::int64_t copies, std::uint64_t seed);
std::unique_ptr<Operands> place_router(const RouterWork& work, std::int64_t rows, CpuContext& context,
                                       std::int64_t copies, std::uint64_t seed);
std::unique_ptr<Operands> place_attention(const AttentionWork& work, const Workload& workload,
                                          CpuContext& context, std::int64_t copies, std::uint64_t seed);
std::unique_ptr<Operands> place_recurrent(const RecurrentWork& work, const Workload& workload,
                                          CpuContext& context, std::int64_t copies, std::uint64_t seed);
std::unique_ptr<Operands> place_latent(const LatentWork& work, const Workload& workload, CpuContext& context,
                                       std::int64_t copies, std::uint64_t seed);
std::unique_ptr<Operands> place_indexer(const IndexerWork& work, const Workload& workload,
                                        CpuContext& context, std::int64_t copies, std::uint64_t seed);
std::unique_ptr<Operands> place_elementwise(const ElementwiseWork& work, std::int64_t tokens,
                                            CpuContext& context, std::uint64_t seed);
std::unique_ptr<Operands> place_embedding(const EmbeddingWork& work, std::int64_t tokens, CpuContext& context,
                                          std::uint64_t seed);
std::unique_ptr<Operands> place_stream(const StreamTask& task, CpuContext& context, std::int64_t copies,
                                       std::uint64_t seed);
std::unique_ptr<Operands> place_add(const AddTask& task, CpuContext& context, std::int64_t copies,
                                    std::uint64_t seed);
std::unique_ptr<Operands> place_matmul(const MatmulTask& task, CpuContext& context, std::int64_t copies,
                                       std::uint64_t seed);

std::unique_ptr<Operands> place_arithmetic(const ArithmeticTask& task, CpuContext& context);

// The instructions that this CPU multiplies the type by; none where it has none.
std::vector<Variant> arithmetic_variants(const ArithmeticTask& task);

// A linear's variants at that many rows, named as its kernels (kernels/cpu/linear.h): dot, gemm, blas.
std::vector<Variant> linear_variants(const LinearWork& work, std::int64_t rows);

// Throws RunError where no BLAS can be loaded: whoever asks has another way.
void cpu_require_blas();

// Variants and footprints of attention, beside its placers.
std::vector<Variant> attention_variants(const AttentionWork& work, const Workload& workload);
std::vector<Variant> latent_variants(const LatentWork& work, const Workload& workload);
std::vector<Variant> indexer_variants(const IndexerWork& work, const Workload& workload);
Footprint attention_footprint(const AttentionWork& work, const Workload& workload, int workers);
Footprint latent_footprint(const LatentWork& work, const Workload& workload, int workers);
Footprint indexer_footprint(const IndexerWork& work, const Workload& workload, int workers);

// Rows an expert gets on average, which decides its variants; single experts may get more or fewer.
std::int64_t average_expert_rows(const ExpertWork& work, std::int64_t tokens);

// Rows a linear runs with: lm_head sees only each prompt's last token.
std::int64_t linear_rows(const LinearWork& work, const Workload& workload);

// Rows of an embedding table that are held: a step gathers a few, so a part of the table stands for it.
std::int64_t embedding_rows_held(const EmbeddingWork& work);

// Launches after which an embedding gathers the same tokens again.
inline constexpr std::int64_t kEmbeddingDraws = 64;

// Rows of an elementwise op that its buffers hold.
std::int64_t elementwise_tokens(const ElementwiseWork& work, const Workload& workload);

}  // namespace memwall
