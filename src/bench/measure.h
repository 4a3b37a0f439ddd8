// Measuring a device and a model on it: probes, baselines, and every distinct op of a step.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/launch_fit.h"
#include "bench/ledger.h"
#include "bench/probes.h"
#include "bench/sampler.h"
#include "bench/step.h"
#include "bench/work_plan.h"
#include "card/card.h"
#include "model/model.h"
#include "predict/predict.h"

namespace memwall {

// Says which unit of work begins, and how far along the run is. Units may lie within others.
using ProgressCallback = std::function<void(const std::string& what, const ProgressState& state)>;

// One of STREAM's patterns as measured, by the kind of its stores.
struct StreamFigure {
  StreamTask task;
  double GBps = 0;  // bytes read plus bytes written, as STREAM counts
  // The traffic's share of the read bandwidth, the median of paired samples; 0 where it was not paired.
  double traffic_of_read = 0;
  double traffic_GBps = 0;    // what that moved
  std::string unstable = {};  // why it is; empty: it is not
};

// The arithmetic of one type, 10^9 FLOP/s.
struct ArithmeticPeak {
  double GFLOPs = 0;         // the best sample of the run; of a GPU the best median
  double median_GFLOPs = 0;  // of the same probe or kernel
  std::string by;            // the instruction of the probe, or the kernel that was faster still

  // False where the best sample stands out: others use the machine, and a better one may not have come. On a
  // quiet one registers alone repeat within a few per cent.
  bool settled() const { return GFLOPs <= 1.25 * median_GFLOPs; }
};

// What the device's memory and arithmetic reach here. Bounds rest on best samples, since a median is passed
// by half of its samples; shares are of paired samples.
struct DeviceFigures {
  DeviceInfo info;
  double read_GBps = 0;       // the median of all read probes
  double best_read_GBps = 0;  // the best of them: what bounds a step that reads
  // The best of the memory probes, those that write, too: some memories write beside their reads. Bounds what
  // writes as much as it reads, a recurrent state.
  double best_traffic_GBps = 0;
  double copy_GBps = 0;  // ordinary stores, as STREAM counts; the write-allocate is not counted
  double triad_GBps = 0;
  std::vector<StreamFigure> streams;
  // The fastest sample of this run, of any kernel, so that no share of it passes 100 %. The arithmetic one is
  // on a CPU that of f32, in which its GEMMs compute; on a GPU it is the fastest median, since a short
  // product on a cool GPU runs at clocks that it does not hold.
  double peak_GBps = 0;
  double peak_GFLOPs = 0;
  // By what is multiplied: on a CPU what its instructions do on registers alone, or a kernel where it did
  // more; on a GPU what the library's large GEMMs do.
  std::map<ComputeType, ArithmeticPeak> peaks;
  std::string read_variant;
  std::optional<LaunchFit> launch_fit;  // where launches are costly
  double huge_page_share = 0;

  // FLOP/byte: best sample over best sample.
  double ridge() const { return peak_GFLOPs / best_read_GBps; }
  // True where the arithmetic peak of a type bounds every kernel: of a GPU it is that of the GEMMs that were
  // tried.
  bool peak_bounds(ComputeType type) const {
    const auto peak = peaks.find(type);
    return !info.gpu && peak != peaks.end() && peak->second.settled();
  }
};

// Those figures as a card, so that predictions for this device use the code that cards use: best samples, of
// steps that write state (`writes`) over all memory probes.
Card card_of(const DeviceFigures& figures, bool writes = false);

// One baseline: add or matmul on n x n tensors.
struct Baseline {
  std::string kernel;  // "add" or "matmul"
  std::int64_t n = 0;
  Format format;
  Measurement measurement;
  std::string in_cache;  // "L1", "L2", "L3" where its tensors fit, "" where memory must serve them

  double seconds() const { return measurement.seconds.median; }
  double bytes() const;  // 3 n^2 elements
  double flops() const;  // n^2 or 2 n^3
  double intensity() const { return flops() / bytes(); }
};

struct BaselineFigures {
  std::vector<Baseline> pairs;  // add and matmul, f32 and f16, at the full size, cold
  std::vector<Baseline> sweep;  // both kernels, one format, sizes 16 ... n, as warm as they come
};

struct BaselineSettings {
  std::int64_t n = 4096;
  std::vector<Format> formats;
  Format sweep_format;
  std::int64_t sweep_to = 4096;
  double seconds_a_kernel = 2.0;  // time limit of one full-size kernel
  double seconds_a_size = 0.1;    // and of one sweep row
  std::uint64_t seed = kDefaultSeed;
};

// One op of a step as measured; `measurement` is empty where the device has no kernel for it.
struct MeasuredOp {
  Op op;
  Cost cost;  // all copies
  OpPrediction prediction;
  std::optional<Measurement> measurement;
  std::string failed = {};  // why there is none though there is a kernel
};

struct MeasuredStep {
  Workload workload;
  std::string weights;       // formats as in estimate's results: "q8_0"
  std::string head_weights;  // of lm_head
  std::string kv;
  Prediction predicted;
  std::vector<MeasuredOp> ops;
  std::optional<WholeStep> whole;   // where whole steps were run
  std::string whole_failed;         // why there are none though they were asked for
  bool partial() const;             // an op was not measured
  double measured_seconds() const;  // the sum over the ops that were, each times its count
};

// The most workloads (formats × batches × contexts and prompts) that one run measures.
inline constexpr std::int64_t kMostMeasuredSteps = 1000;

struct MeasureSettings {
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> contexts;
  std::vector<std::int64_t> prompts;  // prefill lengths; none: no prefill
  // What may be allocated at once; 0: a quarter of what is free, for whole steps seven eighths of it.
  std::int64_t memory_bytes = 0;
  bool whole_steps = false;  // run whole decode steps, too
  std::uint64_t seed = kDefaultSeed;
};

// A model in one combination of formats, ready to be measured.
struct MeasuredModel {
  std::vector<Op> ops;  // as lower() makes them
  std::string weights = {};
  std::string head_weights = {};
  std::string kv = {};
};

// What a session tells of its units of work (ledger.h) beside its progress; each may be empty.
struct SessionObserver {
  std::function<void(const std::string& variant)> tries;  // of the unit told last, before its first launch
  std::function<void(const std::string& unit, const Outcome&)> ends;
};

// Runs everything on one device, keeping what was measured when an interrupt comes. What fails costs its own
// unit alone, but for DeviceLost, which passes.
class Session {
 public:
  // Throws InputError where `memory_bytes` is more than is free. What an earlier process left in `ledger` is
  // not measured again.
  Session(Device& device, std::int64_t memory_bytes, ProgressCallback progress, Ledger ledger = {});
  // The session of which there is this ledger: it measures nothing, and ends where the ledger does.
  Session(const DeviceInfo& info, std::int64_t memory_bytes, Ledger ledger);

  void observe(SessionObserver observer) { observer_ = std::move(observer); }

  // Throws InputError naming the largest task where the memory bound cannot hold it, before anything runs.
  // `ops` are as lower() makes them. Of several models each is asked for: one is released before the next.
  void require_memory(const std::vector<Op>& ops, const MeasureSettings& settings) const;
  void require_memory(const BaselineSettings& settings) const;

  // The units that `run` will have on that device, found by running it without measuring.
  static WorkPlan plan_of(const DeviceInfo& info, const std::function<void(Session&)>& run);
  // For the progress: before anything runs.
  void follow(WorkPlan plan) { plan_ = std::move(plan); }

  // Each leaves what it measured; all are cut short by an interrupt. The model comes last: its predictions
  // rest on the peaks seen until then.
  void probe();
  void run_baselines(const BaselineSettings& settings);
  // May be called again with the model in other formats; what ops share is measured once.
  void run_model(const MeasuredModel& model, const MeasureSettings& settings);

  DeviceFigures figures() const;
  const DeviceInfo& info() const { return figures_.info; }
  const BaselineFigures& baselines() const { return baselines_; }
  const std::vector<MeasuredStep>& decode() const { return decode_; }
  const std::vector<MeasuredStep>& prefill() const { return prefill_; }
  const Ledger& ledger() const { return ledger_; }
  std::int64_t memory_bytes() const { return memory_bytes_; }
  // True after an interrupt, a shortage of memory, or the end of a ledger: what is there is what was measured
  // until then.
  bool stopped() const;
  const std::optional<std::string>& shortage() const { return shortage_; }  // of memory, in words

 private:
  struct Known {  // a task's result, for the ops, batches and contexts that ask for it again
    Task task;
    std::optional<Measurement> measurement;
    std::string failed;
  };

  // The unit's outcome: the ledger's, else what `work` leaves, which is expected to take so long. Nothing
  // once the session has stopped, or where an interrupt came before a result.
  const Outcome* perform(const std::string& unit, double seconds, const std::function<void(Outcome&)>& work);
  // measure_task in a unit, and what it says of the device's peaks. A null outcome's measurement is none.
  const Outcome* measure(const std::string& unit, const Task& task, bool paired, SamplerSettings settings);
  std::vector<VariantFigure> lost_variants(const std::string& unit, const Task& task) const;
  std::optional<Measurement> measurement(const std::string& unit, const Task& task, bool paired,
                                         SamplerSettings settings);
  // The read probe, placed when it is first asked for; null where there is none to be had.
  ReadCeiling* ceiling();
  bool has_ceiling() const;
  void note_ceilings();
  void note_placed(const Outcome& outcome);
  void note(const Outcome& outcome);

  // The task's outcome, from whichever unit ran it first; null once the session has stopped.
  const Known* known(const std::string& unit, const Task& task, bool paired, const SamplerSettings& settings);
  MeasuredStep run_step(const MeasuredModel& model, const std::vector<Op>& grouped, const Workload& workload,
                        std::uint64_t seed);
  void run_whole_steps(const MeasuredModel& model, const MeasureSettings& settings, std::size_t first);
  void predict_steps();
  void note_rates(const Task& task, const Measurement& m);
  std::int64_t whole_step_memory(const MeasureSettings& settings) const;
  std::optional<Baseline> run_baseline(const std::string& kernel, std::int64_t n, Format format, bool hot,
                                       double seconds, std::uint64_t seed);
  std::string cache_that_holds(double bytes) const;
  struct Need {
    std::int64_t bytes = 0;
    std::string name;
  };
  void note_need(Need& largest, const Task& task, const std::string& name) const;
  // Throws InputError where the largest of the probes and the tasks noted passes the memory bound.
  void require(const std::function<void(Need&)>& note_tasks) const;
  void fit_launches();

  Device* device_ = nullptr;  // none: only what is in the ledger
  std::int64_t memory_bytes_;
  ProgressCallback progress_;
  SessionObserver observer_;
  Ledger ledger_;
  WorkPlan plan_;
  bool counts_only_ = false;  // units are added to the plan, and nothing is measured
  std::optional<ReadCeiling> ceiling_;
  std::size_t samples_taken_ = 0;  // of the ceiling's, by outcomes
  int ceilings_ = 0;               // how many processes placed one
  bool last_ceiling_failed_ = false;
  std::vector<double> read_samples_;  // bytes/s, of all outcomes
  bool exhausted_ = false;            // the ledger, where there is no device
  std::optional<std::string> shortage_;
  DeviceFigures figures_;
  BaselineFigures baselines_;
  std::vector<MeasuredStep> decode_;
  std::vector<MeasuredStep> prefill_;
  std::vector<Known> known_;
};

}  // namespace memwall
