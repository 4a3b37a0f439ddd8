// Linears on a GPU that is the host executor: what is offered, what it takes, and that it computes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/cpu_operands.h"
#include "cuda/linear.h"
#include "cuda/operands.h"
#include "cuda/scalar_values.h"
#include "format/format.h"
#include "tests/cuda/fake_gpu.h"
#include "tests/cuda/operands_support.h"

namespace memwall::cuda {
namespace {

OpTask decode(const Work& work, std::int64_t batch) {
  return {.work = work, .workload = {.phase = Phase::decode, .batch = batch, .context = 1}};
}

std::vector<std::string> names(const std::vector<Variant>& variants) {
  std::vector<std::string> result;
  for (const Variant& variant : variants) result.push_back(variant.name);
  return result;
}

LinearWork work_of(const char* format, std::int64_t out, std::int64_t in) {
  return {.out = out, .in = in, .format = *find_format(format), .bias_format = {}};
}

TEST(CudaLinearOperands, ComputeEveryFormatOnTheCopyOfTheTurn) {
  for (const char* format : {"f32", "f16", "bf16", "f8_e4m3", "f8_e4m3-c", "f8_e4m3-b128", "q8_0", "q4_0",
                             "int4-g64-zp", "int8-c"}) {
    for (const std::int64_t rows : {1, 5}) {
      FakeGpu gpu;
      gpu.library = true;
      Context context(gpu);
      LinearWork work = work_of(format, 37, 300);
      work.bias = rows == 5;
      work.bias_format = {FormatKind::f16};
      const OpTask task = decode(work, rows);
      const std::vector<Variant> variants = variants_of(work, task, context);
      const bool plain = is_plain_float(work.format);
      std::vector<std::string> expected = {"gemv"};
      if (plain) expected.push_back(work.bias ? "fake library, no bias" : "fake library");
      EXPECT_EQ(names(variants), expected);
      const Footprint footprint = footprint_of(work, task, context);
      const std::int64_t before = gpu.allocated();
      EXPECT_EQ(before, 0);
      const auto operands = place(work, task, context, 3, 1);
      EXPECT_LE(gpu.allocated(), 3 * footprint.copy_bytes + footprint.fixed_bytes) << format;
      EXPECT_GE(operands->cold_bytes(0), static_cast<double>(storage_bytes(work.format, 37, 300)));
      EXPECT_GE(operands->padding_bytes(0), 0);
      EXPECT_LE(operands->cold_bytes(0) + operands->padding_bytes(0),
                static_cast<double>(footprint.copy_bytes));
      for (std::size_t v = 0; v < variants.size(); ++v) {
        const Check check = operands->check(v);
        EXPECT_TRUE(check.passed()) << format << " " << variants[v].name << " " << check.worst;
      }
    }
  }
}

TEST(CudaLinearOperands, LeaveManyRowsToTheLibrary) {
  FakeGpu gpu;
  Context context(gpu);
  const LinearWork work = work_of("bf16", 24, 40);
  EXPECT_THAT(names(variants_of(work, decode(work, 17), context)), testing::IsEmpty());
  gpu.library = true;
  EXPECT_THAT(names(variants_of(work, decode(work, 17), context)), testing::ElementsAre("fake library"));
  EXPECT_TRUE(place(work, decode(work, 17), context, 1, 1)->check(0).passed());
  const LinearWork unknown = work_of("mxfp4", 24, 40);
  EXPECT_THAT(names(variants_of(unknown, decode(unknown, 1), context)), testing::IsEmpty());
}

// A launch that reads another copy's weights, or leaves an output out, must not pass.
TEST(CudaLinearOperands, NoticeAWrongOutput) {
  FakeGpu gpu;
  Context context(gpu);
  const LinearWork work = work_of("bf16", 24, 40);
  PlacedLinear linear(work, 1, context, 2, 1);
  const auto x = context.inputs.with_room(gpu, ScalarType::bf16, 40);
  const auto y = context.outputs.with_room(gpu, linear.output_bytes());
  const auto compare = [&](std::int64_t turn) {
    Comparison comparison;
    linear.compare(comparison, 0, turn, x->data(), y->data());
    return comparison.result().passed();
  };
  linear.launch(0, 1, x->data(), y->data());
  EXPECT_TRUE(compare(1));
  EXPECT_TRUE(compare(3));  // the same copy
  EXPECT_FALSE(compare(0));
  poison(gpu, y->data(), linear.output_bytes());
  EXPECT_FALSE(compare(1));
}

// What a launch of the last variant asks of the GPU, in order.
std::vector<QuantizeStep> steps_of(FakeGpu& gpu, Operands& operands, std::size_t variant) {
  std::vector<QuantizeStep> steps;
  gpu.tamper = [&](Launch& launch) {
    if (const auto* each = std::get_if<QuantizeLaunch>(&launch)) steps.push_back(each->step);
  };
  operands.launch(variant, 0);
  gpu.tamper = nullptr;
  return steps;
}

// Two launches where no block holds the tensor whose largest they find; one behind int8's products.
TEST(CudaLinearOperands, QuantiseXInEachLaunchOfTheNarrowArms) {
  using enum QuantizeStep;
  struct Case {
    const char* format;
    std::int64_t rows;
    bool bias;
    const char* name;
    std::vector<QuantizeStep> steps;
  };
  for (const Case& c :
       {Case{"f8_e4m3", 3, false, "fake library + quantise x", {rows}},
        Case{"f8_e4m3", 129, false, "fake library + quantise x", {largest, tensor}},
        Case{"f8_e4m3", 2, true, "fake library + quantise x, no bias", {rows}},
        Case{"int8-c", 1, false, "fake library + quantise x + scale sums", {rows, scale_sums}},
        Case{"int8-c", 129, true, "fake library + quantise x + scale sums", {rows, scale_sums}},
        Case{"f16", 2, true, "fake library, no bias", {}}}) {
    SCOPED_TRACE(testing::Message() << c.format << " x" << c.rows);
    IdleGpu gpu;
    gpu.gpu.library = true;
    LinearWork work = work_of(c.format, 32, 128);
    work.bias = c.bias;
    work.bias_format = {FormatKind::f32};
    Context context(gpu);
    const OpTask task = decode(work, c.rows);
    const std::vector<Variant> variants = variants_of(work, task, context);
    ASSERT_FALSE(variants.empty());
    EXPECT_EQ(variants.back().name, c.name);
    EXPECT_EQ(hold_to_checks(gpu, c.name, work, task), variants.size());
    gpu.idle = false;
    const auto operands = place(work, task, context, 2, 1);
    EXPECT_EQ(operands->cold_bytes(0),
              static_cast<double>(storage_bytes(work.format, 32, 128) +
                                  (c.bias ? storage_bytes({FormatKind::f32}, 1, 32) : 0)));
    EXPECT_EQ(steps_of(gpu.gpu, *operands, variants.size() - 1), c.steps);
    // All of them and the product are in the graph whose time is the arm's.
    const double seconds = gpu.time([&] { operands->launch(variants.size() - 1, 0); }, Timing::graph);
    EXPECT_GE(seconds, static_cast<double>(c.steps.size() + 1) * gpu.gpu.seconds_a_launch);
  }
}

// A product of a wrongly quantised x is right for what it read: the check must hold that to x itself. Codes
// and sums that an earlier launch left are right, and must not pass.
TEST(CudaLinearOperands, NoticeAWrongQuantisation) {
  struct Defect {
    const char* what;
    const char* format;
    std::int64_t rows;
    // Given memory of the GPU's that holds quarters.
    std::function<void(QuantizeLaunch&, float*)> plant;
  };
  const auto of_x = [](QuantizeLaunch& launch) -> QuantizeParams& {
    return std::get<QuantizeParams>(launch.params);
  };
  const auto of_sums = [](QuantizeLaunch& launch) { return std::get_if<ScaleSumsParams>(&launch.params); };
  const auto codes = [&](QuantizeLaunch& launch, float* quarters) {
    if (of_sums(launch) == nullptr) of_x(launch).codes = reinterpret_cast<std::uint8_t*>(quarters);
  };
  const std::vector<Defect> defects = {
      {"half of x", "f8_e4m3", 3, [&](auto& l, float*) { of_x(l).width /= 2; }},
      {"no x", "f8_e4m3", 3, [&](auto& l, float*) { of_x(l).width = 0; }},
      {"codes written elsewhere", "f8_e4m3", 3, codes},
      {"codes written elsewhere", "int8-c", 3, codes},
      {"the scale written elsewhere", "f8_e4m3", 3, [&](auto& l, float* q) { of_x(l).scales = q; }},
      {"the parts' largest written elsewhere", "f8_e4m3", 129,
       [&](auto& l, float* q) {
         if (l.step == QuantizeStep::largest) of_x(l).partials = q;
       }},
      {"the parts' largest read elsewhere", "f8_e4m3", 129,
       [&](auto& l, float* q) {
         if (l.step == QuantizeStep::tensor) of_x(l).partials = q;
       }},
      {"a row too few", "int8-c", 3,
       [&](auto& l, float*) {
         if (of_sums(l) == nullptr) --l.geometry.grid_x;
       }},
      {"halves of rows", "int8-c", 3,
       [&](auto& l, float*) {
         if (of_sums(l) == nullptr) of_x(l).width /= 2;
       }},
      {"the sums' row scales", "int8-c", 3,
       [&](auto& l, float* q) {
         if (of_sums(l) != nullptr) of_sums(l)->row_scales = q;
       }},
      {"the sums' column scales", "int8-c", 3,
       [&](auto& l, float* q) {
         if (of_sums(l) != nullptr) of_sums(l)->column_scales = q;
       }},
      {"the bias", "int8-c", 3,
       [&](auto& l, float*) {
         if (of_sums(l) != nullptr) of_sums(l)->bias = nullptr;
       }},
  };
  for (const Defect& defect : defects) {
    SCOPED_TRACE(testing::Message() << defect.what << ", " << defect.format);
    FakeGpu gpu;
    gpu.library = true;
    Context context(gpu);
    LinearWork work = work_of(defect.format, 32, 128);
    work.bias = true;
    work.bias_format = {FormatKind::f16};
    const Buffer quarters = uploaded(gpu, std::vector<float>(129 * 128 / 4, 0.25F));
    const auto operands = place(work, decode(work, defect.rows), context, 2, 1);
    const std::size_t last = variants_of(work, decode(work, defect.rows), context).size() - 1;
    EXPECT_TRUE(operands->check(last).passed());
    int planted = 0;
    gpu.tamper = [&](Launch& launch) {
      if (auto* each = std::get_if<QuantizeLaunch>(&launch)) {
        defect.plant(*each, quarters.as<float>());
        ++planted;
      }
    };
    EXPECT_FALSE(operands->check(last).passed());
    EXPECT_GT(planted, 0);
  }
}

}  // namespace
}  // namespace memwall::cuda
