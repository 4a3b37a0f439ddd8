#include <chrono>

#include "bench/cpu_operands.h"
#include "bench/device.h"
#include "bench/statistics.h"
#include "bench/topology.h"
#include "input/error.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/linear.h"

namespace memwall {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const Topology& topology) : context_(topology.cpus) {
    info_.name = topology.cpu_name;
    info_.kind = "cpu";
    info_.threads = context_.pool.size();
    info_.pinned = context_.pool.pinned();
    info_.instruction_set = cpu::instruction_set();
    info_.blas = cpu::blas_description();
    info_.l1d_bytes = topology.l1d_bytes;
    info_.l2_bytes = topology.l2_bytes;
    info_.last_level_bytes = topology.last_level_bytes;
    info_.available_bytes = available_memory_bytes();
  }

  const DeviceInfo& info() const override { return info_; }

  std::vector<Variant> variants(const Task& task) const override { return cpu_variants(task); }

  Footprint footprint(const Task& task) const override { return cpu_footprint(task, context_.pool.size()); }

  std::unique_ptr<Operands> place(const Task& task, std::int64_t copies, std::uint64_t seed) override {
    return cpu_place(task, context_, copies, seed);
  }

  double time(const std::function<void()>& launches) override {
    const auto start = std::chrono::steady_clock::now();
    launches();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  double barrier_seconds() override {
    constexpr int kTries = 15;
    constexpr int kLaunches = 200;  // enough to forget the clock
    std::vector<double> seconds;
    for (int i = 0; i < kTries; ++i) {
      seconds.push_back(time([&] {
        for (int j = 0; j < kLaunches; ++j) context_.pool.run([](int) {});
      }));
    }
    return summarize(seconds).median / kLaunches;
  }

  double huge_page_share() const override { return context_.huge_share; }

 private:
  CpuContext context_;
  DeviceInfo info_;
};

}  // namespace

std::unique_ptr<Device> open_device(const std::string& word) {
  if (word == "auto" || word == "cpu") return make_cpu_device();
  throw InputError("--device: '" + word + "' is not a device of this build; it is auto or cpu");
}

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(read_topology()); }

}  // namespace memwall
