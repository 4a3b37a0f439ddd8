#include "cuda/device.h"

#include <fmt/format.h>

#include <variant>

#include "cuda/operands.h"

namespace memwall::cuda {
namespace {

// Calls with the task, or with an op's work and its task.
template <class Call>
auto visit(const Task& task, Call call) {
  return std::visit(
      [&](const auto& t) {
        if constexpr (std::is_same_v<decltype(t), const OpTask&>) {
          return std::visit([&](const auto& work) { return call(work, t); }, t.work);
        } else {
          return call(t);
        }
      },
      task);
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(std::unique_ptr<Gpu> gpu) : gpu_(std::move(gpu)), context_(*gpu_) {
    const GpuProperties& p = gpu_->properties();
    info_.name = p.name;
    info_.kind = "cuda";
    info_.threads = 1;
    info_.instruction_set = fmt::format("sm_{}{}", p.arch.major, p.arch.minor);
    info_.l2_bytes = p.l2_bytes;
    info_.last_level_bytes = p.l2_bytes;
    info_.available_bytes = gpu_->free_bytes();
  }

  const DeviceInfo& info() const override { return info_; }

  std::vector<Variant> variants(const Task& task) const override {
    return visit(task, [&](const auto&... parts) { return variants_of(parts..., context_); });
  }
  Footprint footprint(const Task& task) const override {
    return visit(task, [&](const auto&... parts) { return footprint_of(parts..., context_); });
  }
  std::unique_ptr<Operands> place(const Task& task, std::int64_t copies, std::uint64_t seed) override {
    auto operands = visit(
        task, [&](const auto&... parts) { return memwall::cuda::place(parts..., context_, copies, seed); });
    gpu_->synchronize();  // what fills the operands is not timed
    return operands;
  }
  double time(const std::function<void()>& launches) override { return gpu_->time(launches, Timing::graph); }
  double huge_page_share() const override { return 0; }

 private:
  std::unique_ptr<Gpu> gpu_;
  mutable Context context_;
  DeviceInfo info_;
};

}  // namespace

std::unique_ptr<Device> make_device(std::unique_ptr<Gpu> gpu) {
  return std::make_unique<CudaDevice>(std::move(gpu));
}

}  // namespace memwall::cuda
