// What the tests of a GPU's operands share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cuda/operands.h"
#include "tests/cuda/idle_gpu.h"

namespace memwall::cuda {

// Places what `parts` (a task, or an op's work and its task) name, in two copies: every variant's check must
// pass, and must fail where the GPU did nothing; a launch must allocate nothing, and all must fit in what the
// footprint says. Returns the number of variants.
template <class... Parts>
std::size_t hold_to_checks(IdleGpu& gpu, const std::string& what, const Parts&... parts) {
  SCOPED_TRACE(what);
  constexpr std::int64_t kCopies = 2;
  gpu.idle = false;
  Context context(gpu);
  const std::vector<Variant> variants = variants_of(parts..., context);
  const Footprint footprint = footprint_of(parts..., context);
  const std::int64_t before = gpu.gpu.allocated();
  const std::unique_ptr<Operands> operands = place(parts..., context, kCopies, 5);
  EXPECT_LE(gpu.gpu.allocated() - before, kCopies * footprint.copy_bytes + footprint.fixed_bytes);
  EXPECT_EQ(footprint.cold, footprint.copy_bytes > 0);
  if (footprint.cold) {
    EXPECT_GT(operands->cold_bytes(0), 0);
    EXPECT_LE(operands->cold_bytes(0) + operands->padding_bytes(0), footprint.copy_bytes);
  } else {
    EXPECT_EQ(operands->cold_bytes(0), 0);
  }
  for (std::size_t v = 0; v < variants.size(); ++v) {
    SCOPED_TRACE(variants[v].name);
    gpu.idle = false;
    const std::int64_t held = gpu.gpu.allocated();
    operands->launch(v, 0);
    operands->launch(v, 1);
    EXPECT_EQ(gpu.gpu.allocated(), held);
    const Check right = operands->check(v);
    EXPECT_TRUE(right.passed()) << right.worst;
    gpu.idle = true;
    EXPECT_FALSE(operands->check(v).passed());
  }
  return variants.size();
}

inline OpTask op_task(const Work& work, const Workload& workload) {
  OpTask task;
  task.work = work;
  task.workload = workload;
  return task;
}

}  // namespace memwall::cuda
