// The baselines, add and matmul, of a measuring session.
#include <fmt/format.h>

#include <algorithm>

#include "bench/measure.h"

namespace memwall {
namespace {

StoppingRule limited(double seconds) {
  return {.min_samples = 5, .min_time_s = seconds / 4, .max_time_s = seconds};
}

Task baseline_task(const std::string& kernel, std::int64_t n, Format format) {
  if (kernel == "add") return AddTask{.n = n, .format = format};
  return MatmulTask{.n = n, .format = format};
}

}  // namespace

double Baseline::bytes() const { return 3.0 * static_cast<double>(storage_bytes(format, n, n)); }

double Baseline::flops() const {
  const double size = static_cast<double>(n);
  return kernel == "add" ? size * size : 2 * size * size * size;
}

void Session::require_memory(const BaselineSettings& settings) const {
  require([&](Need& largest) {
    for (const Format& format : settings.formats) {
      for (const char* kernel : {"add", "matmul"}) {
        note_need(largest, baseline_task(kernel, settings.n, format),
                  fmt::format("{} at n = {}", kernel, settings.n));
      }
    }
  });
}

std::string Session::cache_that_holds(double bytes) const {
  const DeviceInfo& info = figures_.info;
  const double threads = static_cast<double>(info.threads);
  if (info.l1d_bytes > 0 && bytes <= static_cast<double>(info.l1d_bytes)) return "L1";
  if (info.l2_bytes > 0 && bytes <= static_cast<double>(info.l2_bytes) * threads) return "L2";
  if (info.last_level_bytes > 0 && bytes <= static_cast<double>(info.last_level_bytes)) return "L3";
  return "";
}

std::optional<Baseline> Session::run_baseline(const std::string& kernel, std::int64_t n, Format format,
                                              bool hot, double seconds, std::uint64_t seed) {
  const std::string unit =
      fmt::format("{} {}×{} {}{}", kernel, n, n, format_name(format), hot ? ", as warm as it comes" : "");
  Baseline baseline{.kernel = kernel, .n = n, .format = format, .measurement = {}, .in_cache = {}};
  const SamplerSettings settings{.rule = limited(seconds), .seed = seed, .hot = hot};
  // What memory bounds is held against the read bandwidth beside it, as ops are; so are the ridge's samples
  // spread over the run.
  const bool paired = kernel == "add" && !hot;
  std::optional<Measurement> m = measurement(unit, baseline_task(kernel, n, format), paired, settings);
  if (!m) return std::nullopt;
  baseline.measurement = std::move(*m);
  if (hot) baseline.in_cache = cache_that_holds(baseline.bytes());
  return baseline;
}

void Session::run_baselines(const BaselineSettings& settings) {
  const bool pairs_have_format = std::find(settings.formats.begin(), settings.formats.end(),
                                           settings.sweep_format) != settings.formats.end();
  for (const Format& format : settings.formats) {
    for (const char* kernel : {"add", "matmul"}) {
      if (auto b =
              run_baseline(kernel, settings.n, format, false, settings.seconds_a_kernel, settings.seed)) {
        baselines_.pairs.push_back(std::move(*b));
      }
    }
  }
  for (std::int64_t n = 16; n <= settings.sweep_to; n *= 2) {
    // The full size fits no cache that its cold measurement did not also have: one serves for both.
    const double bytes = 3.0 * static_cast<double>(storage_bytes(settings.sweep_format, n, n));
    const bool measured = pairs_have_format && n == settings.n && cache_that_holds(bytes).empty();
    for (const char* kernel : {"add", "matmul"}) {
      if (measured) {
        const auto pair =
            std::find_if(baselines_.pairs.begin(), baselines_.pairs.end(), [&](const Baseline& b) {
              return b.kernel == kernel && b.n == n && b.format == settings.sweep_format;
            });
        if (pair != baselines_.pairs.end()) baselines_.sweep.push_back(*pair);
      } else if (auto b = run_baseline(kernel, n, settings.sweep_format, true, settings.seconds_a_size,
                                       settings.seed)) {
        baselines_.sweep.push_back(std::move(*b));
      }
    }
  }
}

}  // namespace memwall
