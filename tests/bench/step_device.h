// A device made up for whole steps: it writes down what is placed and launched.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bench/sampler.h"
#include "cost/cost.h"

namespace memwall {

// Time passes by the bytes an op reads, and a microsecond an elementwise op.
class StepDevice : public Device {
 public:
  static constexpr double kRate = 10e9;

  struct Launch {
    Work work;
    std::int64_t placement = 0;
    std::int64_t turn = 0;
    std::size_t variant = 0;
  };

  struct StepOperands : Operands {
    StepOperands(StepDevice& d, const Task& t, std::int64_t c)
        : device(d), task(t), copies(c), placement(++d.placements) {}
    ~StepOperands() override {
      if (std::holds_alternative<OpTask>(task)) device.held -= placed_bytes(device.footprint(task), copies);
    }
    void launch(std::size_t variant, std::int64_t turn) override {
      device.clock += cold_bytes(turn) / kRate + device.launch_seconds;
      if (std::holds_alternative<FusedTask>(task)) ++device.fused_launches;
      const auto* op = std::get_if<OpTask>(&task);
      if (op == nullptr) return;
      if (cold_bytes(turn) <= 0) device.clock += 1e-6;
      device.launches.push_back({op->work, placement, turn % copies, variant});
      if (device.on_launch) device.on_launch();
    }
    double cold_bytes(std::int64_t) const override {
      if (!std::holds_alternative<OpTask>(task))
        return static_cast<double>(device.footprint(task).copy_bytes);
      const OpTask& op = std::get<OpTask>(task);
      if (const auto* experts = std::get_if<ExpertWork>(&op.work))
        return static_cast<double>(experts->per_token * experts->each.weight_bytes());
      if (!device.footprint(task).cold) return 0;
      return cost_of(op.work, op.workload).compulsory_bytes();
    }
    double flops(std::int64_t) const override { return 1; }
    Check check(std::size_t) override { return {.outputs = 1, .worst = device.wrong ? 2.0 : 0.5}; }
    StepDevice& device;
    Task task;
    std::int64_t copies;
    std::int64_t placement;
  };

  StepDevice() {
    info_.kind = "fake";
    info_.threads = 2;
    info_.last_level_bytes = 1 << 20;
    info_.available_bytes = std::int64_t{16} << 30;
  }
  const DeviceInfo& info() const override { return info_; }
  std::vector<Variant> variants(const Task& task) const override {
    const auto* op = std::get_if<OpTask>(&task);
    if (op != nullptr && std::holds_alternative<RecurrentWork>(op->work)) return {};
    if (const auto* fused = std::get_if<FusedTask>(&task)) {
      if (fuses && fuses(*fused)) return {{"fused", 0}};
      return {};
    }
    return {{"slow", 0}, {"fast", 0}};
  }
  Footprint footprint(const Task& task) const override {
    if (const auto* stream = std::get_if<StreamTask>(&task)) return {.copy_bytes = stream->bytes};
    if (const auto* fused = std::get_if<FusedTask>(&task)) {
      Footprint all;
      for (const OpTask& op : fused->ops) all.copy_bytes += footprint(op).copy_bytes;
      return all;
    }
    if (!std::holds_alternative<OpTask>(task)) return {.copy_bytes = 1 << 20};
    const OpTask& op = std::get<OpTask>(task);
    if (std::holds_alternative<ElementwiseWork>(op.work) || std::holds_alternative<EmbeddingWork>(op.work))
      return {.fixed_bytes = 64, .cold = false};
    if (const auto* experts = std::get_if<ExpertWork>(&op.work))
      return {.copy_bytes = experts->each.weight_bytes(), .least_copies = experts->per_token};
    return {.copy_bytes = static_cast<std::int64_t>(cost_of(op.work, op.workload).compulsory_bytes())};
  }
  std::unique_ptr<Operands> place(const Task& task, std::int64_t copies, std::uint64_t) override {
    if (std::holds_alternative<OpTask>(task)) {
      held += placed_bytes(footprint(task), copies);
      most_held = std::max(most_held, held);
    }
    return std::make_unique<StepOperands>(*this, task, copies);
  }
  double time(const std::function<void()>& work) override {
    const double before = clock;
    work();
    return clock - before;
  }
  double barrier_seconds() override { return 2e-6; }
  double huge_page_share() const override { return 1; }

  std::vector<Launch> launches;
  std::function<void()> on_launch;
  std::int64_t placements = 0;
  std::int64_t held = 0;
  std::int64_t most_held = 0;
  double clock = 0;
  bool wrong = false;
  std::function<bool(const FusedTask&)> fuses;  // none where empty
  std::int64_t fused_launches = 0;
  double launch_seconds = 0;  // that every launch takes beside its bytes
  DeviceInfo& mutable_info() { return info_; }

 private:
  DeviceInfo info_;
};

}  // namespace memwall
