// Whole decode steps on a device: every layer's own weights and cache, launched in model order, token after
// token. What the isolated measurement of an op leaves out shows here.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/op_task.h"
#include "bench/sampler.h"
#include "bench/step_plan.h"

namespace memwall {

// The launches of one kind of op within a step.
struct StepKind {
  OpKind kind = OpKind::linear;
  std::int64_t launches = 0;
  double bytes = 0;          // compulsory
  double seconds = 0;        // inside the step: timed launch by launch, in steps of their own
  double alone_seconds = 0;  // the isolated measurements, each times its count

  // A launch that all threads share ends in a barrier; small ops run on the calling thread.
  bool reads_memory() const { return kind != OpKind::elementwise && kind != OpKind::embedding; }
};

// Ops that the step runs as one launch, since that took less time than one by one.
struct StepFusion {
  std::string ops;
  std::vector<std::size_t> members;  // their places in group_equal(ops): names may be another part's, too
  std::int64_t launches = 0;
  double seconds = 0;        // of one launch, alone
  double parts_seconds = 0;  // of its ops, each alone
};

struct WholeStep {
  Summary seconds;     // a step
  double fastest = 0;  // the fastest sample
  double bytes =
      0;  // compulsory: weights, cache and state as the cost counts them, experts as they were drawn
  std::optional<Summary> of_read_bandwidth;  // paired shares
  bool cold = true;         // false: the step's bytes are few enough for caches to serve a part of them
  bool partial = false;     // an op has no kernel and was left out
  Disturbance disturbance;  // by other processes; all zero where nobody tells
  StopReason stop = StopReason::time_limit;
  StepHolding holding;
  std::int64_t layers = 0;
  std::int64_t steps_per_sample = 0;
  double read_rate = 0;  // bytes/s: the read bandwidth beside the steps
  double parts_read_rate =
      0;  // and beside the parts when they were measured alone; 0 where it was not sampled
  double barrier_seconds = 0;   // of one empty launch on all threads
  std::vector<StepKind> kinds;  // in the order of OpKind, those with launches
  std::vector<StepFusion> fusions;
  bool costly_launches =
      false;  // the device's: every launch costs `barrier_seconds`, not those of all threads

  std::int64_t launches() const;
  std::int64_t barriers() const;  // launches on all threads
  double launch_seconds() const;  // inside the step, all kinds
  double alone_seconds() const;

  // Where the step's time goes beyond the sum of its parts; the three add up to the difference. A machine
  // whose memory has drifted in between shows that in the first: no term of its own, since an op that
  // arithmetic bounds does not follow the memory (bytes over share and bandwidth gave +8.7 ms of drift and
  // -8.3 ms of ops for a step of 40 ms that took 0.8 ms more than its parts).
  struct Difference {
    double memory_ops = 0;  // ops that read weights or cache, inside the step against alone
    double small_ops = 0;   // the others
    double rest = 0;        // the step as a whole against its launches timed one by one
    double total() const { return memory_ops + small_ops + rest; }
  };
  Difference difference() const;
};

// Times a candidate, named by its ops and their places; nothing where it fails or does not run.
using FusionTimer = std::function<std::optional<Measurement>(const std::string& parts, const Task& task,
                                                             const SamplerSettings& settings)>;

struct StepSettings {
  FusionTimer timer = {};  // of what may be fused; without one measure_task does
  std::vector<bool> left_out =
      {};  // of group_equal(ops): those that failed alone, as a broken kernel; empty: none
};

class StepRunner {
 public:
  // `ops` as lower() makes them. `memory_bytes` bounds what is allocated, the read probe's buffer included.
  // `seed`: of all that is drawn; one for all parts, so that a layer's expert linears see the same draw.
  StepRunner(Device& device, const std::vector<Op>& ops, std::int64_t memory_bytes,
             std::uint64_t seed = kDefaultSeed);

  // One op a part until a run, then as the last one fused them.
  const StepPlan& plan() const { return plan_; }

  // What will be held for the workload. Throws InputError where not even the least fits. Allocates nothing.
  StepHolding holding(const Workload& workload) const;

  // Runs decode steps. `alone`: what each part took on its own, null where it was not measured; its variant
  // is the one that runs. What an earlier workload placed is used again where it is the same. Nothing where
  // no part has a kernel or an interrupt came before three samples. Throws RunError where a kernel's result
  // is wrong, InputError as holding() does.
  std::optional<WholeStep> run(const Workload& workload, const std::vector<const Measurement*>& alone,
                               ReadCeiling& ceiling, const StepSettings& settings = {});

 private:
  struct Placed {
    Task task;
    std::int64_t matrices = 0;
    std::unique_ptr<Operands> operands;
  };
  // A launch with all that it needs looked up, so that the timed loop does nothing else.
  struct Ready {
    Operands* operands = nullptr;
    std::size_t variant = 0;
    std::int64_t turn = 0;
    std::size_t part = 0;
  };

  static constexpr std::size_t kKinds = 7;
  using ByKind = std::array<double, kKinds>;
  struct Samples {
    std::vector<double> seconds;  // a step
    std::vector<double> bytes;
    std::vector<double> rates;  // the read bandwidth around it
    std::vector<double> shares;
    std::array<std::vector<double>, kKinds> by_kind;  // seconds inside a step beside it
    StopReason stop = StopReason::time_limit;
    Disturbance disturbance;
  };

  void fuse(const Workload& workload, const std::vector<const Measurement*>& alone, const FusionTimer& timer);
  StepFootprints footprints(const Workload& workload) const;
  void place(const Workload& workload, const StepHolding& holding, const std::vector<bool>& left_out);
  std::vector<Ready> ready(const StepHolding& holding, std::int64_t step) const;
  void choose_variants(const std::vector<const Measurement*>& alone);
  void check() const;
  double bytes(const Ready& launch, const Workload& workload) const;
  double step_bytes(const std::vector<Ready>& launches, const Workload& workload) const;
  std::vector<StepKind> kinds_of(const std::vector<Ready>& launches, const Workload& workload) const;
  double time_steps(const std::vector<Ready>& launches, std::int64_t steps);
  ByKind time_launches(const std::vector<Ready>& launches);
  Samples sample(const Workload& workload, const StepHolding& holding, std::int64_t steps,
                 ReadCeiling& ceiling, double seconds_a_sample);

  Device& device_;
  StepPlan unfused_;
  StepPlan plan_;
  std::vector<StepFusion> fusions_;
  std::int64_t memory_bytes_;
  std::uint64_t seed_;
  std::vector<Placed> placed_;         // a part; no operands where there is no kernel
  std::vector<std::size_t> variants_;  // a part
};

}  // namespace memwall
