// A GPU's operands, one file a kind of work: the ways to run it, what it takes, and placing it. No variants:
// there is no kernel, and the op is not measured. `task` is the whole of which `work` is the inside.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/device.h"
#include "cuda/context.h"

namespace memwall::cuda {

#define MEMWALL_CUDA_OPERANDS(Work)                                                         \
  std::vector<Variant> variants_of(const Work& work, const OpTask& task, Context& context); \
  Footprint footprint_of(const Work& work, const OpTask& task, Context& context);           \
  std::unique_ptr<Operands> place(const Work& work, const OpTask& task, Context& context,   \
                                  std::int64_t copies, std::uint64_t seed)
MEMWALL_CUDA_OPERANDS(LinearWork);
MEMWALL_CUDA_OPERANDS(RouterWork);
MEMWALL_CUDA_OPERANDS(ExpertWork);
MEMWALL_CUDA_OPERANDS(AttentionWork);
MEMWALL_CUDA_OPERANDS(LatentWork);
MEMWALL_CUDA_OPERANDS(IndexerWork);
MEMWALL_CUDA_OPERANDS(RecurrentWork);
MEMWALL_CUDA_OPERANDS(ElementwiseWork);
MEMWALL_CUDA_OPERANDS(EmbeddingWork);
#undef MEMWALL_CUDA_OPERANDS

#define MEMWALL_CUDA_OPERANDS(Task)                                     \
  std::vector<Variant> variants_of(const Task& task, Context& context); \
  Footprint footprint_of(const Task& task, Context& context);           \
  std::unique_ptr<Operands> place(const Task& task, Context& context, std::int64_t copies, std::uint64_t seed)
MEMWALL_CUDA_OPERANDS(StreamTask);
MEMWALL_CUDA_OPERANDS(AddTask);
MEMWALL_CUDA_OPERANDS(MatmulTask);
MEMWALL_CUDA_OPERANDS(ArithmeticTask);
MEMWALL_CUDA_OPERANDS(FusedTask);
#undef MEMWALL_CUDA_OPERANDS

}  // namespace memwall::cuda
