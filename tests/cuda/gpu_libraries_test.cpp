// cuBLAS and cuBLASLt on a real GPU, every arm against float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "bench/cpu_data.h"
#include "bench/unsupported.h"
#include "cuda/context.h"
#include "kernels/cpu/pack.h"
#include "tests/cuda/gpu_fixture.h"

namespace memwall::cuda {
namespace {

using ::testing::HasSubstr;

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
  // A machine without cuBLAS skips; one with it does not, whatever became of it.
  void SetUp() override {
    CudaGpu::SetUp();
    if (gpu_ == nullptr) return;
    const std::string why_not = runtime_->versions().no_cublas;
    const bool not_there = why_not.find("was not found") != std::string::npos ||
                           why_not.find("without cuBLAS's headers") != std::string::npos;
    if (not_there) GTEST_SKIP() << "no cuBLAS: " << why_not;
    if (!why_not.empty()) FAIL() << why_not;
  }

  // Every arm against float64 on some of the outputs; how many arms of the name the library runs.
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
    int right = 0;
    for (const GemmArm& arm : arms) {
      SCOPED_TRACE(arm.name);
      const Buffer workspace(*gpu_, arm.workspace_bytes);
      const auto multiply = [&] {
        gpu_->gemm(
            p, arm.id,
            {x.data(), w.data(), y.data(), workspace.data(), scales.as<float>(), scales.as<float>() + 1});
      };
      try {
        multiply();
        const Check check = compare(p, x.data(), w.data(), y.data());
        EXPECT_TRUE(check.passed()) << check.worst;
        EXPECT_GT(gpu_->time(multiply, Timing::graph), 0);
        if (arm.name.compare(0, name.size(), name) == 0) ++right;
      } catch (const UnsupportedError& error) {
        // A library may refuse what its heuristics propose. That costs the arm, and leaves the GPU usable.
        std::cout << arm.name << ": " << error.what() << '\n';
        EXPECT_NO_THROW(gpu_->synchronize());
      }
    }
    return right;
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
      EXPECT_GE(arms_right({type, m, 4096, 2048, 2048}, "cublas "), 1);
      // Rows and columns of odd lengths, in rows padded to 16 bytes.
      EXPECT_GE(arms_right({type, m, 1001, 777, 784}, "cublas "), 1);
      if (type == ScalarType::f32) continue;
      const int lt = arms_right({type, m, 4096, 2048, 2048}, "cublasLt ");
      std::cout << "m " << m << ": cublasLt proposes " << lt << '\n';
      EXPECT_GE(lt, 1);
    }
  }
}

TEST_F(CudaGpuLibraries, EightBitProductsAreRight) {
  const ArchLimits& arch = gpu_->properties().arch;
  for (const std::int64_t m : {16, 64}) {
    const int f8 = arms_right({ScalarType::f8_e4m3, m, 4096, 2048, 2048}, "cublasLt ");
    EXPECT_EQ(f8 > 0, arch.major * 10 + arch.minor >= 89);
    const int i8 = arms_right({ScalarType::i8, m, 4096, 2048, 2048}, "cublasLt ");
    std::cout << "m " << m << ": cublasLt proposes " << f8 << " for f8_e4m3, " << i8 << " for int8\n";
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

}  // namespace
}  // namespace memwall::cuda
