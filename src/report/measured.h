// What measure and baseline found: named figures, and text for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "report/figures.h"
#include "report/table.h"

namespace memwall {

// device.{name, kind, read_GBps, copy_GBps, triad_GBps, peak_GFLOPs, ...}.
Json device_figures(const DeviceFigures& device);

// One baseline: {kernel, n, format, ms, bytes, flops, intensity, GBps, TFLOPs, bound, ...}.
Json baseline_figures(const Baseline& baseline, const DeviceFigures& device, double ridge);
// baselines.{add, matmul, all[], sweep[]}; add and matmul are the first format's.
Json baselines_figures(const BaselineFigures& baselines, const DeviceFigures& device, double ridge);

// An entry of decode[] or prefill[]: {batch, context, ops[], predicted, measured}.
Json measured_step_figures(const MeasuredStep& step, const DeviceFigures& device);
Json measured_op_figures(const MeasuredOp& op, const DeviceFigures& device);

// What is doubtful, each in a word or two: "partial", "above 103 % of read" (a share of the read bandwidth
// whose whole interval lies above), "above the bound" (the whole interval is faster than the best samples
// allow, by more than 3 %), "unstable" (bench/unstable.h; or
// the arithmetic that would bound a step was probed on a busy machine), "drifted" (the memory was up to a
// quarter and more faster beside one op than beside another), "interrupted", "slowed" (a GPU was throttled),
// "not cold", "not measured". Tables, JSON, CSV and Markdown carry them.
std::vector<std::string> flags_of(const MeasuredOp& op, const DeviceFigures& device);
std::vector<std::string> flags_of(const MeasuredStep& step, const DeviceFigures& device);  // its ops', too
std::vector<std::string> flags_of(const WholeStep& whole);
std::vector<std::string> flags_of(const Baseline& baseline);

// True where nothing on this device can be faster than the step's prediction. Of a GPU, whose arithmetic is
// told by the GEMMs that were tried, only a prediction that memory bounds is that.
bool predicts_bound(const MeasuredStep& step, const DeviceFigures& device);

// A prediction that the measurement passes beyond noise all the same: an error to explain.
bool passes_bound(const MeasuredStep& step, const DeviceFigures& device);

// measured.step: {ms_per_step, tokens_per_s, tokens_per_s_per_user, GBps, breakdown[], ...}.
Json whole_step_figures(const WholeStep& whole, const Workload& workload);

// A measured figure that cannot be: a share of the read bandwidth whose whole interval lies above 103 %, a
// time below what the best samples allow, or a sample above the card's datasheet.
std::vector<std::string> impossible_figures(const DeviceFigures& device,
                                            const std::vector<MeasuredStep>& steps);

// A line where figures are unstable, of the memory, the baselines and the steps: how many, and why the first
// one is.
std::vector<std::string> unstable_warnings(const DeviceFigures& device, const BaselineFigures& baselines,
                                           const std::vector<MeasuredStep>& steps);

// A line where the device was throttled while samples were taken.
std::vector<std::string> slowed_warnings(const std::vector<MeasuredStep>& steps);

// A line where huge pages were refused: the read probe or an op's weights have less than half on them.
std::vector<std::string> huge_page_warnings(const DeviceFigures& device,
                                            const std::vector<MeasuredStep>& steps);

// What bounds a baseline: "overhead" where neither roof of this device explains half of its time and it is a
// short launch (predict/verdict.h); else "compute" or "memory", by its intensity and the ridge; or "cache"
// for "memory" where its tensors sit in one, whose bandwidth is not the one in the ridge. Empty where it is
// unstable.
std::string baseline_bound(const Baseline& baseline, const DeviceFigures& device, double ridge);

// The arithmetic that a baseline is a share of: on a CPU f32, on a GPU that of its format. 10^9 FLOP/s.
double baseline_peak_GFLOPs(const Baseline& baseline, const DeviceFigures& device);

// "gemm 444 GFLOP/s; blas 260 GFLOP/s", the ways a baseline was run in, by their trials, the fastest first.
std::string baseline_ways(const Baseline& baseline);

// What bound an op: as predict/verdict.h says, by the best samples of this device. Nothing where it was not
// measured or predicted, is unstable, and where it found all its operands in a cache and was no overhead.
std::optional<Bound> measured_bound(const MeasuredOp& op, const DeviceFigures& device);

// STREAM's table: bytes counted, bytes moved, by the kind of stores. Empty where nothing was measured.
std::string streams_text(const DeviceFigures& device, const Style& style);

std::string device_text(const DeviceFigures& device, const Style& style);
std::string whole_step_text(const WholeStep& whole, const Workload& workload, const Style& style);
std::string measured_step_text(const MeasuredStep& step, const DeviceFigures& device, const Style& style);

// All steps side by side: tokens/s, the share of the read bandwidth and flags, a row a step.
std::string summary_text(const std::vector<MeasuredStep>& decode, const std::vector<MeasuredStep>& prefill,
                         const DeviceFigures& device, const Style& style);

// The share of the step's time that reading its bytes takes at the read bandwidth beside its ops, or of the
// whole step where one was run; nothing where that was not sampled.
std::optional<double> share_of_read(const MeasuredStep& step);

// Where the ridge point comes from.
struct Ridge {
  double flop_per_byte = 0;
  std::string from;  // "measured here", "NVIDIA H200 SXM, bf16", "--peak-bw and --peak-tflops"
};
std::string baselines_text(const BaselineFigures& baselines, const DeviceFigures& device, const Ridge& ridge,
                           std::optional<double> predicted_ratio, const Style& style);

// How many times slower matmul is than add on tensors of one format; nothing where either is missing.
std::optional<double> slowdown(const BaselineFigures& baselines, Format format);

}  // namespace memwall
