// The two kernels at opposite ends, and the sweep over sizes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "report/measured.h"
#include "report/text.h"

namespace memwall {
namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

Table::Cell bound_of_baseline(const Baseline& matmul, const DeviceFigures& device, double ridge) {
  const std::string bound = baseline_bound(matmul, device, ridge);
  if (bound == "cache") return {"cache-resident", Tone::plain};
  if (bound.empty()) return {"", Tone::plain};
  return bound_cell(bound == "memory"    ? Bound::memory
                    : bound == "compute" ? Bound::compute
                                         : Bound::overhead);
}

// Of a row of the sweep: each once, named where only one of the two has it.
std::vector<std::string> flags_of(const Baseline& add, const Baseline& matmul) {
  const std::vector<std::string> of_add = flags_of(add);
  std::vector<std::string> flags = flags_of(matmul);
  for (std::string& flag : flags) {
    if (std::find(of_add.begin(), of_add.end(), flag) == of_add.end()) flag = "matmul " + flag;
  }
  for (const std::string& flag : of_add) {
    if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back("add " + flag);
  }
  return flags;
}

}  // namespace

std::string baselines_text(const BaselineFigures& baselines, const DeviceFigures& device, const Ridge& ridge,
                           std::optional<double> predicted_ratio, const Style& style) {
  std::string text;
  if (!baselines.pairs.empty()) {
    Table pairs({{"kernel", Align::left},
                 {"format", Align::left},
                 {"moves"},
                 {"computes"},
                 {"FLOP/byte"},
                 {"time"},
                 {"GB/s"},
                 {"of peak"},
                 {"TFLOP/s"},
                 {"of peak"}});
    for (const Baseline& b : baselines.pairs) {
      const double gflops = b.flops() / b.seconds() / 1e9;
      const double gbps = b.bytes() / b.seconds() / 1e9;
      pairs.row({b.kernel == "add" ? "c = a + b" : "c = a b", format_name(b.format), human_bytes(b.bytes()),
                 human_flops(b.flops()), significant(b.intensity(), 4), human_time(b.seconds()),
                 significant(gbps, 3), fmt::format("{:.1f} %", 100 * gbps / device.peak_GBps),
                 significant(gflops / 1e3, 3),
                 fmt::format("{:.1f} %", 100 * gflops / baseline_peak_GFLOPs(b, device))});
    }
    text +=
        style.apply(Tone::bold, fmt::format("The two kernels at opposite ends, on the same {0}×{0} tensors",
                                            baselines.pairs.front().n)) +
        "\n\n" + pairs.render(style) + "\n";
  }
  for (const Baseline& b : baselines.pairs) {
    if (b.kernel != "matmul" || b.measurement.variants.size() < 2) continue;
    const bool names_blas = !device.info.blas.empty() && !device.info.gpu;
    text += wrapped(fmt::format("{} matmul by {}, the best of: {}{}", format_name(b.format),
                                b.measurement.variant, baseline_ways(b),
                                names_blas ? " (blas: " + device.info.blas + ")" : ""));
  }
  for (const Baseline& b : baselines.pairs) {
    for (const std::string& flag : flags_of(b)) {
      text += style.apply(Tone::warn, fmt::format("{}: {} {}", flag, b.kernel, format_name(b.format))) + "\n";
    }
  }
  std::vector<Format> formats;
  for (const Baseline& b : baselines.pairs) {
    if (b.kernel == "add") formats.push_back(b.format);
  }
  for (const Format& format : formats) {
    const std::optional<double> ratio = slowdown(baselines, format);
    if (!ratio) continue;
    const double work = 2 * static_cast<double>(baselines.pairs.front().n);
    text += fmt::format(
        "{}: matmul takes {} times as long as add, for {} times the arithmetic on the same bytes\n",
        format_name(format), significant(*ratio, 3), significant(work, 4));
    if (predicted_ratio && format == formats.front()) {
      const double off = *ratio / *predicted_ratio;
      text += style.apply(Tone::bold,
                          fmt::format("You said {} times: {}", significant(*predicted_ratio, 3),
                                      std::abs(off - 1) < 0.1
                                          ? std::string("right, within a tenth")
                                          : fmt::format("it is {} times that", significant(off, 3)))) +
              "\n";
    }
  }
  text +=
      fmt::format("\nridge point {} FLOP/byte ({}): below it memory bounds a kernel, above it arithmetic\n",
                  significant(ridge.flop_per_byte, 4), ridge.from);
  if (baselines.sweep.empty()) return text;

  Table sweep({{"n"},
               {"FLOP/byte"},
               {"add GB/s"},
               {"matmul GB/s"},
               {"matmul TFLOP/s"},
               {"of peak"},
               {"matmul's bound", Align::left},
               {"by", Align::left},
               {"tensors sit in", Align::left},
               {"flags", Align::left}});
  bool overhead = false;
  for (std::size_t i = 0; i + 1 < baselines.sweep.size(); i += 2) {
    const Baseline& add = baselines.sweep[i];
    const Baseline& matmul = baselines.sweep[i + 1];
    const double gflops = matmul.flops() / matmul.seconds() / 1e9;
    overhead = overhead || baseline_bound(matmul, device, ridge.flop_per_byte) == "overhead";
    sweep.row({fmt::format("{}", matmul.n),
               significant(matmul.intensity(), 4),
               significant(add.bytes() / add.seconds() / 1e9, 3),
               significant(matmul.bytes() / matmul.seconds() / 1e9, 3),
               significant(gflops / 1e3, 3),
               percent(gflops / baseline_peak_GFLOPs(matmul, device)),
               bound_of_baseline(matmul, device, ridge.flop_per_byte),
               matmul.measurement.variant,
               matmul.in_cache.empty() ? "memory" : matmul.in_cache,
               {fmt::format("{}", fmt::join(flags_of(add, matmul), ", ")), Tone::warn}});
  }
  text += "\n" +
          style.apply(Tone::bold,
                      fmt::format("Matmul by size, {}", format_name(baselines.sweep.front().format))) +
          "\n\n" + sweep.render(style);
  if (overhead) text += "overhead: over in 20 us, and neither memory nor arithmetic explains half of it\n";
  return text;
}

}  // namespace memwall
