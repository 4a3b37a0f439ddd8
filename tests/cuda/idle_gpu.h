// A GPU that stops doing as told, for the checks that must see it.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "tests/cuda/fake_gpu.h"

namespace memwall::cuda {

// The host executor; once `idle`, launches but fills, and library calls, do nothing.
class IdleGpu final : public Gpu {
 public:
  explicit IdleGpu(GpuProperties properties = fake_properties()) : gpu(std::move(properties)) {}
  FakeGpu gpu;
  bool idle = false;
  std::int64_t downloaded = 0;  // bytes

  const GpuProperties& properties() const override { return gpu.properties(); }
  std::int64_t free_bytes() override { return gpu.free_bytes(); }
  void* allocate(std::int64_t bytes) override { return gpu.allocate(bytes); }
  void release(void* memory) noexcept override { gpu.release(memory); }
  void upload(void* to, const void* from, std::int64_t bytes) override { gpu.upload(to, from, bytes); }
  void download(void* to, const void* from, std::int64_t bytes) override {
    downloaded += bytes;
    if (bytes > 0) gpu.download(to, from, bytes);
  }
  void zero(void* memory, std::int64_t bytes) override { gpu.zero(memory, bytes); }
  void launch(const Launch& launch) override {
    if (!idle || std::holds_alternative<FillLaunch>(launch)) gpu.launch(launch);
  }
  std::vector<GemmArm> gemm_arms(const GemmProblem& problem) override { return gpu.gemm_arms(problem); }
  void gemm(const GemmProblem& problem, int arm, const GemmOperands& operands) override {
    if (!idle) gpu.gemm(problem, arm, operands);
  }
  void synchronize() override { gpu.synchronize(); }
  double time(const std::function<void()>& launches, Timing timing) override {
    return gpu.time(launches, timing);
  }
  Clocks clocks() override { return gpu.clocks(); }
};

}  // namespace memwall::cuda
