// The CUDA backend on a real GPU. ctest's label for these is gpu; they skip, with the reason, where there is
// none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>

#include "bench/cpu_data.h"
#include "cuda/context.h"
#include "cuda/device.h"
#include "cuda/load.h"
#include "input/error.h"
#include "kernels/cpu/pack.h"
#include "tests/cuda/tasks.h"

namespace memwall::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const RunError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// What other processes on the GPU may take meanwhile is not counted: no test looks closer than 16 MiB.
class CudaGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    try {
      runtime_ = load_runtime();
      devices = runtime_->device_count();
    } catch (const RunError& error) {
      GTEST_SKIP() << error.what();
    }
    if (devices == 0) GTEST_SKIP() << "CUDA sees no device";
    gpu_ = runtime_->open(0);
  }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Gpu> gpu_;
};

TEST_F(CudaGpu, IsDescribed) {
  const GpuProperties& p = gpu_->properties();
  EXPECT_FALSE(p.name.empty());
  EXPECT_THAT(p.pci_id, MatchesRegex("[0-9a-f]+:[0-9a-f]+:[0-9a-f]+\\.[0-9]"));
  EXPECT_GE(p.arch.major * 10 + p.arch.minor, 75);
  EXPECT_EQ(p.arch.shared_a_block, 48 << 10);
  EXPECT_EQ(p.arch.registers_a_multiprocessor, 65536);
  EXPECT_GT(p.multiprocessors, 0);
  EXPECT_GE(p.l2_bytes, 1 << 20);
  EXPECT_GT(p.sm_clock_kHz, 0);
  EXPECT_GT(p.memory_clock_kHz, 0);
  EXPECT_GT(p.memory_bus_bits, 0);
  EXPECT_GT(gpu_->free_bytes(), 0);
  EXPECT_LE(gpu_->free_bytes(), p.total_bytes);
  const Versions versions = runtime_->versions();
  for (const std::string& version : {versions.driver, versions.runtime, versions.cublas, versions.cublasLt})
    EXPECT_THAT(version, MatchesRegex("[0-9]+\\.[0-9.]+"));
}

TEST_F(CudaGpu, RefusesDevicesThatAreNotThere) {
  const std::string none = "there is no device cuda:99";
  EXPECT_THAT(failure_of([&] { runtime_->open(99); }), HasSubstr(none));
  EXPECT_THAT(failure_of([&] { runtime_->properties(99); }), HasSubstr(none));
}

TEST_F(CudaGpu, MemoryIsWrittenReadAndGivenBack) {
  const std::int64_t before = gpu_->free_bytes();
  {
    const Buffer buffer(*gpu_, 64 << 20);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0U);
    EXPECT_LE(gpu_->free_bytes(), before - buffer.bytes());
    std::vector<std::uint32_t> words(buffer.bytes() / 4);
    std::iota(words.begin(), words.end(), 1U);
    gpu_->upload(buffer.data(), words.data(), buffer.bytes());
    EXPECT_EQ(download<std::uint32_t>(*gpu_, buffer.data(), std::ssize(words)), words);
    gpu_->zero(buffer.data(), buffer.bytes());
    EXPECT_EQ(download<std::uint32_t>(*gpu_, buffer.data() + 1024, 4), std::vector<std::uint32_t>(4));
  }
  EXPECT_GT(gpu_->free_bytes(), before - (16 << 20));
  const std::int64_t too_much = gpu_->properties().total_bytes * 2;
  EXPECT_THAT(failure_of([&] { gpu_->allocate(too_much); }),
              AllOf(HasSubstr("do not fit"), HasSubstr(gpu_->properties().name)));
}

TEST_F(CudaGpu, EveryKindOfTaskIsRight) {
  Gpu& gpu = *gpu_;
  const std::unique_ptr<Device> device = make_device(std::move(gpu_));
  for (const DeviceTask& each : device_tasks(TaskSize::real)) {
    SCOPED_TRACE(each.name);
    const std::vector<Variant> variants = device->variants(each.task);
    if (each.optional && variants.empty()) continue;
    EXPECT_FALSE(variants.empty());
    const std::int64_t least = device->footprint(each.task).least_copies;
    const auto operands = device->place(each.task, std::max<std::int64_t>(2, least), 7);
    for (std::size_t variant = 0; variant < variants.size(); ++variant) {
      SCOPED_TRACE(variants[variant].name);
      const Check check = operands->check(variant);
      EXPECT_TRUE(check.passed()) << check.worst << " of " << check.outputs;
      const auto twice = [&] {
        operands->launch(variant, 0);
        operands->launch(variant, 1);
      };
      EXPECT_GT(gpu.time(twice, Timing::graph), 0);
      EXPECT_GT(gpu.time(twice, Timing::stream), 0);
    }
  }
}

TEST_F(CudaGpu, PlacedTasksGiveTheirMemoryBack) {
  Gpu& gpu = *gpu_;
  const std::unique_ptr<Device> device = make_device(std::move(gpu_));
  const Task task = StreamTask{StreamPattern::triad, false, 256 << 20};
  const auto run = [&] {
    const auto operands = device->place(task, 1, 7);
    device->time([&] { operands->launch(0, 0); });
  };
  run();  // loads the kernels, which stay
  const std::int64_t before = gpu.free_bytes();
  for (int i = 0; i < 3; ++i) run();
  EXPECT_GT(gpu.free_bytes(), before - (16 << 20));
}

TEST_F(CudaGpu, TimesGrowWithTheLaunchesAndAgree) {
  const Buffer buffer(*gpu_, 512 << 20);
  const auto fills = [&](int count) {
    return [&, count] {
      for (int i = 0; i < count; ++i) fill_random(*gpu_, buffer.data(), buffer.bytes(), kAnyBits, 3);
    };
  };
  for (int i = 0; i < 3; ++i) gpu_->time(fills(8), Timing::graph);  // the clocks rise
  const double eight = gpu_->time(fills(8), Timing::graph);
  const double sixteen = gpu_->time(fills(16), Timing::graph);
  const double one_by_one = gpu_->time(fills(8), Timing::stream);
  EXPECT_NEAR(sixteen / eight, 2, 0.3);
  EXPECT_NEAR(one_by_one / eight, 1, 0.3);
  // No faster than the memory's wires: two transfers a clock (CUDA's clock of HBM and GDDR counts so).
  const GpuProperties& p = gpu_->properties();
  const double peak = 2e3 * p.memory_clock_kHz * p.memory_bus_bits / 8;
  EXPECT_GT(eight, 8 * static_cast<double>(buffer.bytes()) / (1.1 * peak));
}

TEST_F(CudaGpu, FailuresLeaveItUsable) {
  const Buffer buffer(*gpu_, 1 << 20);
  const auto fill = [&] { fill_random(*gpu_, buffer.data(), buffer.bytes(), kAnyBits, 3); };
  FillLaunch wrong = fill_launch({.data = buffer.as<std::uint32_t>(), .bytes = buffer.bytes()});
  wrong.geometry.threads = 2048;
  const std::string refused = failure_of([&] { gpu_->launch(wrong); });
  EXPECT_THAT(refused, AllOf(HasSubstr("launch.cuh:"), HasSubstr("launching FillKernel")));
  EXPECT_GT(gpu_->time(fill, Timing::graph), 0);
  // Within a graph, and after a launch that was recorded.
  EXPECT_THAT(failure_of([&] {
                gpu_->time(
                    [&] {
                      fill();
                      gpu_->launch(wrong);
                    },
                    Timing::graph);
              }),
              HasSubstr("FillKernel"));
  EXPECT_EQ(failure_of([&] {
              gpu_->time(
                  [&] {
                    fill();
                    throw RunError("stopped");
                  },
                  Timing::graph);
            }),
            "stopped");
  EXPECT_GT(gpu_->time(fill, Timing::graph), 0);
  gpu_->synchronize();
}

TEST_F(CudaGpu, ServesAnyThread) {
  double seconds = 0;
  std::thread([&] {
    const Buffer buffer(*gpu_, 1 << 20);
    seconds =
        gpu_->time([&] { fill_random(*gpu_, buffer.data(), buffer.bytes(), kAnyBits, 3); }, Timing::graph);
  }).join();
  EXPECT_GT(seconds, 0);
}

TEST_F(CudaGpu, TellsItsClocksOrWhyNot) {
  const Clocks clocks = gpu_->clocks();
  if (!clocks.available) {
    EXPECT_FALSE(clocks.why_not.empty());
    GTEST_SKIP() << clocks.why_not;
  }
  EXPECT_GT(clocks.sm_MHz, 0);
  EXPECT_LE(clocks.sm_MHz, gpu_->properties().sm_clock_kHz / 1000 * 2);
  EXPECT_FALSE(clocks.driver_version.empty());
}

// --- the libraries ----------------------------------------------------------------------------------------

RandomBits bits_of(ScalarType type) {
  switch (type) {
    case ScalarType::f32:
      return kFloat32;
    case ScalarType::f16:
      return kFloat16;
    case ScalarType::bf16:
      return kBFloat16;
    case ScalarType::f8_e4m3:
      return kF8E4M3;
    case ScalarType::i8:
      break;
  }
  return kAnyBits;
}

// `count` values at `from`, widened.
std::vector<double> values_at(Gpu& gpu, ScalarType type, const void* from, std::int64_t count) {
  std::vector<double> values;
  const auto take = [&](const auto& stored, auto widen) {
    for (const auto value : stored) values.push_back(static_cast<double>(widen(value)));
  };
  switch (type) {
    case ScalarType::f32:
      take(download<float>(gpu, from, count), [](float v) { return v; });
      break;
    case ScalarType::f16:
      take(download<std::uint16_t>(gpu, from, count), cpu::f16_to_f32);
      break;
    case ScalarType::bf16:
      take(download<std::uint16_t>(gpu, from, count), cpu::bf16_to_f32);
      break;
    case ScalarType::f8_e4m3:
      take(download<std::uint8_t>(gpu, from, count), cpu::f8_e4m3_to_f32);
      break;
    case ScalarType::i8:
      take(download<std::int8_t>(gpu, from, count), [](std::int8_t v) { return v; });
      break;
  }
  return values;
}

double y_at(Gpu& gpu, ScalarType type, const std::byte* y, std::int64_t i) {
  if (type == ScalarType::i8) return download<std::int32_t>(gpu, y + i * 4, 1)[0];
  if (type == ScalarType::f8_e4m3) type = ScalarType::bf16;
  return values_at(gpu, type, y + i * scalar_bytes(type), 1)[0];
}

class CudaGpuLibraries : public CudaGpu {
 protected:
  // Every arm against float64 on some of the outputs; how many arms there are of the name.
  int arms_right(const GemmProblem& p, const std::string& name) {
    const std::vector<GemmArm> arms = gpu_->gemm_arms(p);
    EXPECT_EQ(gpu_->gemm_arms(p).size(), arms.size());  // kept
    const std::int64_t size = scalar_bytes(p.type);
    const Buffer x(*gpu_, p.m * p.k * size);
    const Buffer w(*gpu_, p.n * p.w_pitch * size);
    const Buffer y(*gpu_, p.m * p.n * 4);
    const Buffer scales(*gpu_, 8);
    fill_random(*gpu_, x.data(), x.bytes(), bits_of(p.type), 1);
    fill_random(*gpu_, w.data(), w.bytes(), bits_of(p.type), 2);
    const float half_and_two[] = {0.5F, 2.0F};
    gpu_->upload(scales.data(), half_and_two, 8);
    for (const GemmArm& arm : arms) {
      SCOPED_TRACE(arm.name);
      const Buffer workspace(*gpu_, arm.workspace_bytes);
      const auto multiply = [&] {
        gpu_->gemm(
            p, arm.id,
            {x.data(), w.data(), y.data(), workspace.data(), scales.as<float>(), scales.as<float>() + 1});
      };
      multiply();
      const Check check = compare(p, x.data(), w.data(), y.data());
      EXPECT_TRUE(check.passed()) << check.worst;
      EXPECT_GT(gpu_->time(multiply, Timing::graph), 0);
    }
    return static_cast<int>(std::count_if(arms.begin(), arms.end(), [&](const GemmArm& arm) {
      return arm.name.compare(0, name.size(), name) == 0;
    }));
  }

 private:
  Check compare(const GemmProblem& p, const std::byte* x, const std::byte* w, const std::byte* y) {
    Comparison comparison;
    const std::int64_t size = scalar_bytes(p.type);
    for (const std::int64_t row : sample_indices(p.m, 2)) {
      const std::vector<double> a = values_at(*gpu_, p.type, x + row * p.k * size, p.k);
      for (const std::int64_t column : sample_indices(p.n, 8)) {
        const std::vector<double> b = values_at(*gpu_, p.type, w + column * p.w_pitch * size, p.k);
        double sum = 0;
        double magnitudes = 0;
        for (std::size_t k = 0; k < a.size(); ++k) {
          sum += a[k] * b[k];
          magnitudes += std::abs(a[k] * b[k]);
        }
        // f8 on Hopper sums in fewer bits than f32's between its stages (about 14).
        const double kept = p.type == ScalarType::f8_e4m3 ? magnitudes * 0x1p-13 : 0;
        const double rounded = p.type == ScalarType::f32   ? 0
                               : p.type == ScalarType::i8  ? 0.5
                               : p.type == ScalarType::f16 ? std::abs(sum) * 0x1p-11
                                                           : std::abs(sum) * 0x1p-8;
        comparison.add(y_at(*gpu_, p.type, y, row * p.n + column), sum,
                       dot_tolerance(p.k, magnitudes) + rounded + kept);
      }
    }
    return comparison.result();
  }
};

TEST_F(CudaGpuLibraries, MatrixProductsAreRight) {
  for (const ScalarType type : {ScalarType::f32, ScalarType::f16, ScalarType::bf16}) {
    for (const std::int64_t m : {1, 8, 64}) {
      SCOPED_TRACE(testing::Message() << "type " << static_cast<int>(type) << ", m " << m);
      EXPECT_EQ(arms_right({type, m, 4096, 2048, 2048}, "cublas "), m == 1 ? 2 : 1);
      // Rows and columns of odd lengths, in rows padded to 16 bytes.
      EXPECT_GE(arms_right({type, m, 1001, 777, 784}, "cublas "), 1);
      const int lt = arms_right({type, m, 4096, 2048, 2048}, "cublasLt ");
      EXPECT_GE(lt, type == ScalarType::f32 ? 0 : 8);
    }
  }
}

TEST_F(CudaGpuLibraries, EightBitProductsAreRight) {
  const ArchLimits& arch = gpu_->properties().arch;
  for (const std::int64_t m : {16, 64}) {
    const int f8 = arms_right({ScalarType::f8_e4m3, m, 4096, 2048, 2048}, "cublasLt ");
    EXPECT_EQ(f8 > 0, arch.major * 10 + arch.minor >= 89);
    EXPECT_GT(arms_right({ScalarType::i8, m, 4096, 2048, 2048}, "cublasLt "), 0);
  }
  EXPECT_TRUE(gpu_->gemm_arms({ScalarType::f8_e4m3, 16, 4096, 1000, 1000}).empty());
  // One row: what the library has, it computes right.
  arms_right({ScalarType::f8_e4m3, 1, 4096, 2048, 2048}, "");
  arms_right({ScalarType::i8, 1, 4096, 2048, 2048}, "");
}

TEST_F(CudaGpuLibraries, RefuseAnArmThatTheyDoNotHave) {
  const GemmProblem problem{ScalarType::f16, 1, 64, 64, 64};
  EXPECT_THAT(failure_of([&] { gpu_->gemm(problem, 99, {}); }), HasSubstr("no arm 99 of "));
}

// The module itself loads without a GPU and says that there is none.
TEST(CudaModule, LoadsAndSaysWhatItFinds) {
  std::unique_ptr<Runtime> runtime;
  try {
    runtime = load_runtime();
  } catch (const RunError& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_THAT(runtime->versions().runtime, MatchesRegex("[0-9]+\\.[0-9]"));
  EXPECT_THAT(runtime->versions().cublas, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  try {
    if (runtime->device_count() > 0) return;
    EXPECT_THROW(runtime->open(0), RunError);
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("driver"));
    EXPECT_EQ(failure_of([&] { runtime->open(0); }), error.what());
  }
}

}  // namespace
}  // namespace memwall::cuda
