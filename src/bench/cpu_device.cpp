#include "bench/cpu_device.h"

#include <atomic>
#include <chrono>

#include "bench/cpu_operands.h"
#include "bench/device.h"
#include "bench/host_moments.h"
#include "bench/statistics.h"
#include "bench/topology.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/instruction_sets.h"

namespace memwall {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuSettings& settings)
      : topology_(machine_.choose(settings.choice, allowed_cpus())),
        context_(topology_.cpus),
        moments_(topology_.cpus) {
    info_.name = topology_.cpu_name;
    info_.kind = "cpu";
    info_.threads = context_.pool.size();
    info_.cpus = topology_.cpus;
    info_.cores = topology_.cores;
    info_.pinned = context_.pool.pinned();
    info_.numa_nodes = topology_.numa_nodes;
    info_.numa = place_memory(settings.numa);
    info_.instruction_set = cpu::instruction_set();
    info_.blas = cpu::blas_description();
    info_.l1d_bytes = topology_.l1d_bytes;
    info_.l2_bytes = topology_.l2_bytes;
    info_.last_level_bytes = topology_.last_level_bytes;
    info_.available_bytes = available_memory_bytes();
  }

  ~CpuDevice() override {
    if (info_.numa == NumaPolicy::interleave) machine_.forget_placement();
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

  std::optional<ProcessMoment> process_moment() override { return moments_.process(); }
  std::optional<MachineMoment> machine_moment() override { return moments_.machine(); }

  double huge_page_share() const override { return context_.huge_share; }
  CpuContext& context() { return context_; }

 private:
  // A page follows the policy of the thread that touches it first, so every worker takes it on; then it holds
  // for all buffers, those of the standard library too. Returns the policy in force.
  NumaPolicy place_memory(NumaPolicy policy) {
    std::atomic<bool> granted{true};
    context_.pool.run([&](int) {
      if (!machine_.place_memory(policy)) granted = false;
    });
    if (granted) return policy;
    machine_.forget_placement();
    return NumaPolicy::local;
  }

  Machine machine_;
  Topology topology_;
  CpuContext context_;
  HostMoments moments_;
  DeviceInfo info_;
};

}  // namespace

CpuContext& cpu_context(Device& device) { return dynamic_cast<CpuDevice&>(device).context(); }

std::unique_ptr<Device> make_cpu_device(const CpuSettings& settings) {
  return std::make_unique<CpuDevice>(settings);
}

}  // namespace memwall
