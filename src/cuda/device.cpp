#include "cuda/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "cuda/operands.h"
#include "format/checked.h"

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

constexpr std::int64_t kSliceGrain = std::int64_t{64} << 10;

// A read of sixteen L2s hides what a launch costs (240 us at an H200's 960 MiB, beside some 2 us). Where the
// L2 is large for the memory, less: the probes take five slices, and by default a quarter of what is free.
// Five L2s at least, which no copy leaves in the cache.
std::int64_t read_slice(const GpuProperties& p, std::int64_t free_bytes) {
  const std::int64_t wanted = std::min(16 * p.l2_bytes, std::max(5 * p.l2_bytes, free_bytes / 32));
  return std::max(kSliceGrain, div_up(wanted, kSliceGrain) * kSliceGrain);
}

// The size of a GEMM with enough tiles for every multiprocessor: 8192 on a card of 132 of them.
std::int64_t matmul_size(const GpuProperties& p) {
  std::int64_t n = 64;
  while (n < std::int64_t{62} * p.multiprocessors && n < 8192) n *= 2;
  return n;
}

GpuFacts facts_of(Gpu& gpu, const Versions& versions, const std::optional<CardMatch>& card) {
  const GpuProperties& p = gpu.properties();
  const Clocks clocks = gpu.clocks();
  GpuFacts facts;
  facts.multiprocessors = p.multiprocessors;
  facts.pci_id = p.pci_id;
  facts.driver = clocks.driver_version;
  facts.cuda = versions.runtime;
  facts.cublas = versions.cublas;
  facts.ecc = p.ecc;
  if (card) {
    facts.card = card->card.title;
    facts.card_is_datasheet = !card->from_attributes;
    facts.datasheet_GBps = card->card.bandwidth_GBps;
  }
  if (!clocks.available) facts.clocks_unknown = clocks.why_not;
  return facts;
}

class CudaDevice final : public Device {
 public:
  CudaDevice(std::unique_ptr<Gpu> gpu, const Versions& versions, const std::optional<CardMatch>& card)
      : gpu_(std::move(gpu)), context_(*gpu_) {
    const GpuProperties& p = gpu_->properties();
    info_.name = p.name;
    info_.kind = "cuda";
    info_.threads = 1;
    info_.instruction_set = fmt::format("sm_{}{}", p.arch.major, p.arch.minor);
    info_.blas = versions.cublas.empty() ? "" : "cuBLAS " + versions.cublas;
    info_.l2_bytes = p.l2_bytes;
    info_.last_level_bytes = p.l2_bytes;
    info_.available_bytes = gpu_->free_bytes();
    info_.cold_caches = 5;  // an H200's bandwidth still falls until the copies pass 110 MB
    info_.read_slice_bytes = read_slice(p, info_.available_bytes);
    info_.read_buffer_bytes = 2 * info_.read_slice_bytes;  // in turn, so that none is read twice in a row
    info_.costly_launches = true;
    info_.matmul_n = matmul_size(p);
    info_.gpu = facts_of(*gpu_, versions, card);
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

  // In a CUDA graph: no launch waits for the host, as in an engine's decode.
  double time(const std::function<void()>& launches) override { return gpu_->time(launches, Timing::graph); }
  double time_alone(const std::function<void()>& launches) override {
    return gpu_->time(launches, Timing::stream);
  }

  // What a launch of almost nothing takes in a graph.
  double barrier_seconds() override {
    constexpr int kLaunches = 200;
    const Buffer word(*gpu_, 256);
    const auto seconds = [&] {
      return time([&] {
        for (int i = 0; i < kLaunches; ++i) fill_random(*gpu_, word.data(), 4, kAnyBits, 1);
      });
    };
    seconds();  // loads the kernel
    return seconds() / kLaunches;
  }

  Conditions conditions() override {
    const Clocks clocks = gpu_->clocks();
    Conditions conditions;
    if (clocks.available && clocks.sm_MHz > 0) conditions.clock_MHz = clocks.sm_MHz;
    conditions.slowed_by = clocks.slowed_by;
    return conditions;
  }

  double huge_page_share() const override { return 0; }

 private:
  std::unique_ptr<Gpu> gpu_;
  mutable Context context_;
  DeviceInfo info_;
};

}  // namespace

std::unique_ptr<Device> make_device(std::unique_ptr<Gpu> gpu, const Versions& versions,
                                    const std::optional<CardMatch>& card) {
  return std::make_unique<CudaDevice>(std::move(gpu), versions, card);
}

}  // namespace memwall::cuda
