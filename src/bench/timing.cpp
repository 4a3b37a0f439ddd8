#include "bench/timing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/device_lost.h"
#include "bench/interrupt.h"
#include "bench/out_of_memory.h"
#include "bench/statistics.h"
#include "bench/unsupported.h"

namespace memwall {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Seconds a launch of the variant; 0 where an interrupt came first.
double time_variant(Device& device, Operands& operands, std::size_t variant, std::int64_t& turn, bool alone) {
  constexpr int kTries = 3;
  // The first pays for page faults and lazy set-up, and is launched by itself: a library that loads its
  // kernels, or refuses, shall not do so within a graph's capture.
  device.time_alone([&] { operands.launch(variant, turn); });
  ++turn;
  const double first = time_launches(device, operands, variant, turn, 1);
  // The only one's time is needed only to size the samples; a long one's differs little from the next.
  constexpr double kLong = 0.25;
  if (alone || first >= kLong) return first;
  std::vector<double> seconds;
  for (int i = 0; i < kTries && !interrupted(); ++i)
    seconds.push_back(time_launches(device, operands, variant, turn, launches_a_sample(first)));
  return seconds.empty() ? 0 : summarize(seconds).median;
}

}  // namespace

double time_launches(Device& device, Operands& operands, std::size_t variant, std::int64_t& turn,
                     std::int64_t launches) {
  const double seconds = device.time([&] {
    for (std::int64_t i = 0; i < launches; ++i) operands.launch(variant, turn + i);
  });
  turn += launches;
  return seconds / static_cast<double>(launches);
}

std::int64_t launches_a_sample(double seconds_a_launch) {
  constexpr double kLeastSampleSeconds = 2e-3;
  const double launches = std::ceil(kLeastSampleSeconds / std::max(seconds_a_launch, 1e-9));
  return static_cast<std::int64_t>(std::clamp(launches, 1.0, 100'000.0));
}

std::string failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const OutOfMemory&) {
    throw;
  } catch (const DeviceLost&) {
    throw;
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

std::vector<VariantFigure> time_variants(Device& device, Operands& operands,
                                         const std::vector<Variant>& variants, std::int64_t& turn,
                                         const std::vector<VariantFigure>& known,
                                         const std::function<void(const std::string&)>& tries) {
  std::vector<VariantFigure> figures;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    const std::string& name = variants[v].name;
    const auto lost = std::find_if(known.begin(), known.end(),
                                   [&](const VariantFigure& k) { return k.name == name && !k.works(); });
    if (lost != known.end()) {
      figures.push_back({name, kNever, lost->failed});
      continue;
    }
    if (interrupted()) break;
    if (tries) tries(name);
    VariantFigure figure{name};
    figure.failed = failure_of([&] {
      try {
        figure.seconds = time_variant(device, operands, v, turn, variants.size() == 1);
      } catch (const UnsupportedError&) {
        figure.refused = true;
        throw;
      }
    });
    if (interrupted()) break;  // its launches may have been cut short
    if (!figure.works()) figure.seconds = kNever;
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::size_t fastest_of(const std::vector<VariantFigure>& figures) {
  std::size_t fastest = figures.size();
  for (std::size_t v = 0; v < figures.size(); ++v) {
    if (figures[v].works() && (fastest == figures.size() || figures[v].seconds < figures[fastest].seconds))
      fastest = v;
  }
  return fastest;
}

}  // namespace memwall
