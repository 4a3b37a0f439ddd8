// A device that runs tasks: the small interface that the CPU implements here and other backends implement
// in their own modules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bench/disturbance.h"
#include "bench/topology.h"
#include "card/card.h"
#include "cost/cost.h"

namespace memwall {

struct DeviceInfo;
class ExpertDraws;

// One op of a step, one layer's copy.
struct OpTask {
  Work work;
  Workload workload;
  // Of experts, whose copies are single matrices: they are layers with all of their experts, and a launch
  // runs those of its layer that were drawn. Else launches rotate through them, so that each finds all that
  // it touches cold.
  bool whole_layers = false;
};

// The memory probes, STREAM's four and a read; `bytes` is one array's length.
enum class StreamPattern : std::uint8_t { read, copy, scale, add, triad };
struct StreamTask {
  StreamPattern pattern = StreamPattern::read;
  bool nontemporal = false;  // stores that bypass the caches, where the pattern has a store
  std::int64_t bytes = 0;

  // Arrays that are read or written: what STREAM counts.
  std::int64_t arrays() const {
    if (pattern == StreamPattern::read) return 1;
    return pattern == StreamPattern::copy || pattern == StreamPattern::scale ? 2 : 3;
  }
  // Bytes that move for each one counted: a CPU's ordinary store reads its line first (write-allocate); a GPU
  // writes whole sectors without.
  double traffic(const DeviceInfo& info) const;
};

// The baselines on n x n tensors stored as f32 or f16: c = a + b, and c = a b.
struct AddTask {
  std::int64_t n = 0;
  Format format;
};
struct MatmulTask {
  std::int64_t n = 0;
  Format format;
};

// Multiply-adds on registers alone, on all threads together: the arithmetic that no kernel passes.
struct ArithmeticTask {
  ComputeType type = ComputeType::f32;
};

// Ops that follow one another in a layer, as one launch: a norm before linears over the same input, an
// activation or a residual behind them, rotary before attention. Only where the device has a kernel for the
// very combination.
struct FusedTask {
  std::vector<OpTask> ops;
};

using Task = std::variant<OpTask, StreamTask, AddTask, MatmulTask, ArithmeticTask, FusedTask>;

// One way to run a task: a kernel of ours or a library's.
struct Variant {
  std::string name;
  std::int64_t workspace_bytes = 0;
};

// What a task's operands take. Copies are rotated, so that a launch finds none of its own in a cache.
struct Footprint {
  std::int64_t copy_bytes = 0;   // of what must be cold: weights, cache, streamed arrays
  std::int64_t fixed_bytes = 0;  // activations and the largest workspace
  std::int64_t least_copies = 1;
  bool cold = true;  // false: an op on activations, which stay hot
  // A launch leaves much of what it moved as dirty lines in the caches, for a later one to write back.
  bool writes = false;
};

// A kernel's outputs against a float64 reference.
struct Check {
  std::int64_t outputs = 0;                                  // how many were compared
  double worst = 0;                                          // the largest error over its tolerance
  bool passed() const { return outputs > 0 && worst <= 1; }  // false for NaN too
};

// A task's operands on a device, ready to launch.
class Operands {
 public:
  virtual ~Operands() = default;
  // Starts the task on the copies that `turn` selects; asynchronous where the device is. Once interrupted()
  // (interrupt.h), a long one may return early with its work undone: whoever times it discards the sample.
  virtual void launch(std::size_t variant, std::int64_t turn) = 0;
  // Compulsory bytes that launch moves to and from memory, and the FLOPs it computes.
  virtual double cold_bytes(std::int64_t turn) const = 0;
  virtual double flops(std::int64_t turn) const = 0;
  // Bytes that launch reads beside them because a layout is filled up: padding, which no count includes.
  virtual double padding_bytes(std::int64_t /*turn*/) const { return 0; }
  // Distinct experts that launch runs; 0 where there are none.
  virtual double touched(std::int64_t /*turn*/) const { return 0; }
  // The routings that launches go through; null where there are none.
  virtual const ExpertDraws* draws() const { return nullptr; }
  // Launches once and compares (sampled) outputs. Outside any timed region.
  virtual Check check(std::size_t variant) = 0;
};

// What a GPU is, beside its memory: for reports.
struct GpuFacts {
  int multiprocessors = 0;
  std::string pci_id;
  std::string driver;  // "580.159.03"; empty: nobody tells
  std::string cuda;    // the runtime's version
  std::string cublas;
  bool ecc = false;
  std::string card;  // title of the card file that it matches, or of the one made from its attributes
  bool card_is_datasheet = false;
  double datasheet_GBps = 0;   // of that card
  std::string clocks_unknown;  // why clocks and throttle reasons are not told; empty: they are
};

struct DeviceInfo {
  std::string name;  // "AMD EPYC 9354"
  std::string kind;  // "cpu" or "cuda"
  int threads = 0;
  std::vector<int> cpus;  // the threads', ascending
  int cores = 0;          // physical cores under them: fewer than threads where hardware threads share one
  bool pinned = false;
  int numa_nodes = 1;
  NumaPolicy numa = NumaPolicy::local;  // as the system granted it
  std::string instruction_set;
  std::string blas;
  std::int64_t l1d_bytes = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t last_level_bytes = 0;
  std::int64_t available_bytes = 0;  // at the start

  // Cold copies together exceed the last-level cache this many times.
  int cold_caches = 4;
  // What one sample of the read probe reads, and the least that its buffer holds, in whole slices.
  std::int64_t read_slice_bytes = std::int64_t{64} << 20;
  std::int64_t read_buffer_bytes = std::int64_t{256} << 20;
  // A launch costs microseconds beside what it moves, and the clock tells half a microsecond at best, as on a
  // GPU. Then small ops are also held against a read of their own size, launches are timed alone as well as
  // in a row, and the cost of a launch is fitted.
  bool costly_launches = false;
  std::int64_t matmul_n = 2048;  // of the GEMMs that find the arithmetic peaks
  std::optional<GpuFacts> gpu;
};

// What the device runs under at the moment.
struct Conditions {
  std::optional<double> clock_MHz;     // of its arithmetic; nothing where nobody tells
  std::vector<std::string> slowed_by;  // "power cap", "thermal": why it runs slower than it could
};

inline double StreamTask::traffic(const DeviceInfo& info) const {
  const bool allocates = pattern != StreamPattern::read && !nontemporal && !info.gpu;
  return allocates ? static_cast<double>(arrays() + 1) / static_cast<double>(arrays()) : 1;
}

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  // The ways this device can run the task; none: there is no kernel, and the op is not measured.
  virtual std::vector<Variant> variants(const Task& task) const = 0;
  virtual Footprint footprint(const Task& task) const = 0;
  // Allocates `copies` copies and fills them with random data, each page touched first by the thread that
  // will read it. The caller has checked that they fit.
  virtual std::unique_ptr<Operands> place(const Task& task, std::int64_t copies, std::uint64_t seed) = 0;
  // Seconds from the start of the first launch to the end of the last one, on the device's clock.
  virtual double time(const std::function<void()>& launches) = 0;
  // The same where the host starts each launch by itself, if time() has a way that does without (a graph).
  virtual double time_alone(const std::function<void()>& launches) { return time(launches); }
  virtual Conditions conditions() { return {}; }
  // What this process, and its machine, had done until now; nothing where other processes do not hold the
  // device up, or nobody tells.
  // The share of its time that a measurement may take samples again in that others held up (quiet_samples.h).
  double patience = 1;
  virtual std::optional<ProcessMoment> process_moment() { return std::nullopt; }
  virtual std::optional<MachineMoment> machine_moment() { return std::nullopt; }
  // Seconds that a launch with nothing to do takes: what each launch on all threads pays for its barrier.
  virtual double barrier_seconds() { return 0; }
  // The share of the memory last placed that lies on huge pages; 0 where the notion is foreign.
  virtual double huge_page_share() const = 0;
};

struct CpuSettings {
  CpuChoice choice;
  NumaPolicy numa = NumaPolicy::local;
};

// The CPU this process runs on: by default one pinned thread a physical core. Throws InputError where the
// choice asks for more than there is.
std::unique_ptr<Device> make_cpu_device(const CpuSettings& settings = {});

}  // namespace memwall
