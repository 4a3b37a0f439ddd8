// What the program makes of a GPU that is too small, too old, or fails while it runs: one clear line each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "bench/measure.h"
#include "bench/sampler.h"
#include "cost/op.h"
#include "cuda/context.h"
#include "cuda/device.h"
#include "input/error.h"
#include "tests/cuda/fake_gpu.h"
#include "tests/support.h"

namespace memwall::cuda {
namespace {

using ::testing::HasSubstr;

// A fake GPU whose library fails from some call on, and on which every sample takes a tenth of a second.
class FailingGpu final : public Gpu {
 public:
  explicit FailingGpu(int good_calls) : good_calls_(good_calls) { gpu_.library = true; }
  const GpuProperties& properties() const override { return gpu_.properties(); }
  std::int64_t free_bytes() override { return gpu_.free_bytes(); }
  void* allocate(std::int64_t bytes) override { return gpu_.allocate(bytes); }
  void release(void* memory) noexcept override { gpu_.release(memory); }
  void upload(void* to, const void* from, std::int64_t bytes) override { gpu_.upload(to, from, bytes); }
  void download(void* to, const void* from, std::int64_t bytes) override { gpu_.download(to, from, bytes); }
  void zero(void* memory, std::int64_t bytes) override { gpu_.zero(memory, bytes); }
  void launch(const Launch& launch) override { gpu_.launch(launch); }
  std::vector<GemmArm> gemm_arms(const GemmProblem& problem) override { return gpu_.gemm_arms(problem); }
  void gemm(const GemmProblem& problem, int arm, const GemmOperands& operands) override {
    if (good_calls_-- <= 0) throw RunError("gemm.cu:99: cublasGemmEx: CUBLAS_STATUS_EXECUTION_FAILED");
    gpu_.gemm(problem, arm, operands);
  }
  void synchronize() override {}
  double time(const std::function<void()>& launches, Timing) override {
    launches();
    return 0.1;
  }
  Clocks clocks() override { return {}; }

 private:
  FakeGpu gpu_;
  int good_calls_;
};

constexpr Format kF16{FormatKind::f16, 0, false};
constexpr Format kF8{FormatKind::f8_e4m3, 0, false};

Task linear(Format format) {
  LinearWork work;
  work.out = 48;
  work.in = 64;
  work.format = format;
  return OpTask{work, {Phase::decode, 1, 16}};
}

Measurement measured(Device& device, const Task& task) {
  return measure_task(device, task, nullptr,
                      {.rule = {.min_samples = 3, .min_time_s = 0.3, .max_time_s = 0.5}, .hot = true})
      .value();
}

// At its first launch, in a graph, or among the tries: our kernel takes its place.
TEST(CudaFailures, ALibraryCallThatFailsCostsThatWayAlone) {
  for (const int good_calls : {0, 1, 3, 4}) {
    const auto device = make_device(std::make_unique<FailingGpu>(good_calls));
    ASSERT_GE(device->variants(linear(kF16)).size(), 2U) << "ours and the library's";
    const Measurement m = measured(*device, linear(kF16));
    EXPECT_EQ(m.variant, "gemv") << good_calls;
    const auto library = std::find_if(m.variants.begin(), m.variants.end(),
                                      [](const VariantFigure& v) { return v.name == "fake library"; });
    ASSERT_NE(library, m.variants.end());
    EXPECT_EQ(library->failed, "gemm.cu:99: cublasGemmEx: CUBLAS_STATUS_EXECUTION_FAILED");
    EXPECT_FALSE(library->refused);
  }
}

TEST(CudaFailures, TooLittleMemoryIsRefusedBeforeAnythingRuns) {
  GpuProperties small = fake_properties();
  small.total_bytes = std::int64_t{64} << 20;
  auto owned = std::make_unique<FakeGpu>(small);
  FakeGpu& gpu = *owned;
  const auto device = make_device(std::move(owned));
  const Session session(*device, 0, nullptr);
  const auto needs = ::testing::AllOf(HasSubstr("are too few"), HasSubstr("needs"), HasSubstr("GiB"));
  EXPECT_THAT(error_of([&] { session.require_memory({.n = 4096, .formats = {kF16}, .sweep_format = kF16}); }),
              needs);
  EXPECT_EQ(gpu.launches(), 0);
  EXPECT_EQ(gpu.most_allocated(), 0);
  try {
    const Buffer buffer(gpu, std::int64_t{1} << 30);
    FAIL() << "allocated";
  } catch (const RunError& error) {
    EXPECT_EQ(std::string(error.what()), "1.00 GiB do not fit: Fake GPU has 0.06 GiB free");
  }
}

// f8 begins with sm_89 in the libraries; our kernel widens it anywhere.
TEST(CudaFailures, AFormatThatAnOldCardsLibraryLacksRunsOurKernel) {
  auto owned = std::make_unique<FakeGpu>(fake_properties(7, 5));
  owned->library = true;
  const auto device = make_device(std::move(owned));
  const std::vector<Variant> variants = device->variants(linear(kF8));
  ASSERT_EQ(variants.size(), 1U);
  const auto operands = device->place(linear(kF8), 1, 1);
  EXPECT_TRUE(operands->check(0).passed());
}

}  // namespace
}  // namespace memwall::cuda
