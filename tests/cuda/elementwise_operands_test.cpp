// The operands of elementwise ops and of the embedding.
#include <gtest/gtest.h>

#include "format/checked.h"
#include "tests/cuda/operands_support.h"

namespace memwall::cuda {
namespace {

std::size_t hold(IdleGpu& gpu, const std::string& what, const ElementwiseWork& work) {
  return hold_to_checks(gpu, what, work, op_task(work, {.phase = Phase::decode, .batch = 3, .context = 16}));
}

TEST(CudaElementwiseOperands, EveryFunctionHoldsToFloat64) {
  IdleGpu gpu;
  ElementwiseWork work;
  for (const std::int64_t width : {64, 77}) {
    const std::string of = " of " + std::to_string(width);
    work = {};
    work.width = width;
    work.weights = width;
    work.function = ElementwiseFunction::rms_norm;
    EXPECT_EQ(hold(gpu, "rms norm" + of, work), 1U);
    work.function = ElementwiseFunction::layer_norm;
    EXPECT_EQ(hold(gpu, "layer norm without a bias" + of, work), 1U);
    work.weights = 2 * width;
    EXPECT_EQ(hold(gpu, "layer norm" + of, work), 1U);
    work = {};
    work.width = width;
    work.rows_per_token = 5;
    work.function = ElementwiseFunction::rotary;
    EXPECT_EQ(hold(gpu, "rotary" + of, work), 1U);
    work = {};
    work.width = width;
    work.inputs = 2;
    EXPECT_EQ(hold(gpu, "add" + of, work), 1U);
    for (const ActivationKind kind : {ActivationKind::silu, ActivationKind::gelu, ActivationKind::relu}) {
      work.function = ElementwiseFunction::activate;
      work.activation = kind;
      for (const std::int64_t inputs : {1, 2}) {
        work.inputs = inputs;
        EXPECT_EQ(hold(gpu, "activation" + of, work), 1U);
      }
    }
    work = {};
    work.width = width;
    work.inputs = 6;
    work.function = ElementwiseFunction::combine;
    EXPECT_EQ(hold(gpu, "combine" + of, work), 1U);
  }
}

TEST(CudaElementwiseOperands, SizesThatOverflowAreRefused) {
  IdleGpu gpu;
  Context context(gpu);
  ElementwiseWork work;
  work.width = std::int64_t{1} << 50;
  work.inputs = 2;
  const OpTask task = op_task(work, {.phase = Phase::prefill, .batch = 1000, .context = 1000});
  EXPECT_THROW(footprint_of(work, task, context), std::overflow_error);
}

TEST(CudaEmbeddingOperands, GathersEveryFormatThatItHas) {
  IdleGpu gpu;
  EmbeddingWork work;
  work.rows = 50;
  const OpTask task = op_task(work, {.phase = Phase::decode, .batch = 9, .context = 16});
  for (const std::int64_t width : {64, 40, 33}) {
    work.width = width;
    for (const FormatKind kind :
         {FormatKind::f32, FormatKind::f16, FormatKind::bf16, FormatKind::q8_0, FormatKind::q4_0}) {
      work.format = {.kind = kind};
      EXPECT_EQ(hold_to_checks(gpu, format_name(work.format), work, task), 1U);
    }
  }
  Context context(gpu);
  work.format = {.kind = FormatKind::q6_k};
  EXPECT_TRUE(variants_of(work, task, context).empty());
  EXPECT_FALSE(footprint_of(work, task, context).cold);
}

}  // namespace
}  // namespace memwall::cuda
