#include "bench/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "bench/interrupt.h"
#include "bench/quiet_samples.h"
#include "bench/routing.h"
#include "format/checked.h"
#include "input/error.h"

namespace memwall {
namespace {

// Launches that fill the last-level cache with their own dirty lines. A task that writes would otherwise
// leave its last write-backs, up to a cache's worth, to the probe that runs beside it: with 2 ms samples a
// short convolution then showed 1.8 times the read bandwidth.
std::int64_t launches_to_dirty(const Footprint& footprint, const DeviceInfo& info) {
  return footprint.writes ? div_up(info.last_level_bytes, std::max<std::int64_t>(1, footprint.copy_bytes))
                          : 0;
}

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of samples that others held up, taken again.
constexpr double kMostDiscardedSeconds = 1.0;

double median_of(std::vector<double> values) { return summarize(values).median; }

// A read of a task's size, cold, launched as often as the task.
class SameSizeRead {
 public:
  SameSizeRead(Device& device, const StreamTask& task, const SamplerSettings& settings)
      : device_(device),
        operands_(device.place(task, cold_copies(device.footprint(task), device.info()), 7)) {
    std::vector<VariantFigure> lost;
    for (const VariantFigure& variant : settings.lost) {
      if (variant.name.starts_with(kReadBeside))
        lost.push_back({variant.name.substr(kReadBeside.size()), 0, variant.failed});
    }
    const auto tries = [&](const std::string& variant) {
      if (settings.tries) settings.tries(std::string(kReadBeside) + variant);
    };
    const std::vector<VariantFigure> figures =
        time_variants(device, *operands_, device.variants(task), turn_, lost, tries);
    variant_ = fastest_of(figures);
    works_ = variant_ < figures.size();
  }

  bool works() const { return works_; }

  // Bytes/s.
  double rate(std::int64_t launches) {
    return operands_->cold_bytes(0) / time_launches(device_, *operands_, variant_, turn_, launches);
  }

 private:
  Device& device_;
  std::unique_ptr<Operands> operands_;
  std::int64_t turn_ = 0;
  std::size_t variant_ = 0;
  bool works_ = false;
};

// What the device told of itself beside the samples.
class Observed {
 public:
  void look(Device& device) {
    const Conditions now = device.conditions();
    if (now.clock_MHz) clocks_.push_back(*now.clock_MHz);
    if (!now.slowed_by.empty()) ++slowed_samples_;
    slowed_by_.insert(now.slowed_by.begin(), now.slowed_by.end());
  }
  void tell(Measurement& m) const {
    if (!clocks_.empty()) m.clock_MHz = median_of(clocks_);
    m.slowed_samples = slowed_samples_;
    m.slowed_by.assign(slowed_by_.begin(), slowed_by_.end());
  }

 private:
  std::vector<double> clocks_;
  std::int64_t slowed_samples_ = 0;
  std::set<std::string> slowed_by_;
};

// How many launches a sample has depends on their time; what the seed drew does not.
void tell_draws(const ExpertDraws& draws, Measurement& m) {
  double touched = 0;
  for (const Routing& routing : draws.draws()) touched += static_cast<double>(routing.touched());
  m.touched = touched / static_cast<double>(draws.draws().size());
  for (const RoutedExpert& expert : draws.draws().front().experts) m.first_drawn.push_back(expert.id);
}

Summary time_alone(Device& device, Operands& operands, std::size_t variant, std::int64_t& turn) {
  constexpr int kLaunches = 15;
  std::vector<double> seconds;
  for (int i = 0; i < kLaunches; ++i) {
    seconds.push_back(device.time_alone([&] { operands.launch(variant, turn); }));
    ++turn;
  }
  return summarize(seconds);
}

std::string no_way_works(const std::vector<VariantFigure>& figures) {
  constexpr std::size_t kMost = 3;
  std::string words;
  for (std::size_t v = 0; v < std::min(figures.size(), kMost); ++v)
    words += fmt::format("{}{}: {}", words.empty() ? "" : "; ", figures[v].name, figures[v].failed);
  if (figures.size() > kMost) words += fmt::format("; and {} more", figures.size() - kMost);
  return words;
}

void require_right(const Check& check) {
  if (check.passed()) return;
  throw RunError(
      fmt::format("wrong: an output is {:.3g} times its tolerance away from float64", check.worst));
}

// Nothing where the read cannot be had: its shares are left out.
std::unique_ptr<SameSizeRead> read_beside(Device& device, double bytes, const SamplerSettings& settings) {
  const auto task = same_size_read(device.info(), bytes);
  if (!task) return nullptr;
  std::unique_ptr<SameSizeRead> read;
  (void)failure_of([&] { read = std::make_unique<SameSizeRead>(device, *task, settings); });
  return read && read->works() ? std::move(read) : nullptr;
}

// What samples of one variant say; nothing where an interrupt came before the least of them. `m` brings the
// copies and the variants' times.
std::optional<Measurement> sample_variant(Device& device, Operands& operands, std::size_t variant,
                                          const Footprint& footprint, ReadCeiling* ceiling,
                                          const SamplerSettings& settings, Measurement m) {
  std::int64_t turn = 0;  // so that equal runs go through their draws alike
  m.variant = m.variants[variant].name;
  m.launches_per_sample = launches_a_sample(m.variants[variant].seconds);
  // A graph goes through all copies, so that none of its launches finds what another left in the L2.
  if (device.info().costly_launches) m.launches_per_sample = std::max(m.launches_per_sample, m.copies);
  const bool paired = ceiling != nullptr && settings.pair_with_ceiling && footprint.cold && !settings.hot;
  const std::int64_t unsettled = settings.hot ? 0 : launches_to_dirty(footprint, device.info());
  const std::unique_ptr<SameSizeRead> same_size =
      paired ? read_beside(device, operands.cold_bytes(turn), settings) : nullptr;
  if (settings.tries) settings.tries(m.variant);
  StoppingCriterion criterion(settings.rule, settings.floor_samples);
  std::vector<double> shares;
  std::vector<double> same_size_shares;
  double bytes = 0;
  std::vector<double> read_rates;
  double touched = 0;
  Observed observed;
  QuietSamples quiet(device, std::min(kMostDiscardedSeconds, settings.rule.max_time_s));
  while (!criterion.finished() && !interrupted()) {
    const auto started = std::chrono::steady_clock::now();
    double settling = 0;
    if (unsettled > 0) {
      settling = time_launches(device, operands, variant, turn, unsettled) * static_cast<double>(unsettled);
    }
    quiet.begin();
    double sample_bytes = 0;
    double sample_touched = 0;
    for (std::int64_t i = 0; i < m.launches_per_sample; ++i) {
      sample_bytes += operands.cold_bytes(turn + i);
      sample_touched += operands.touched(turn + i);
    }
    sample_bytes /= static_cast<double>(m.launches_per_sample);
    const double seconds = time_launches(device, operands, variant, turn, m.launches_per_sample);
    if (interrupted()) break;  // it may have been cut short
    observed.look(device);
    double cost = settling + seconds * static_cast<double>(m.launches_per_sample);
    double ceiling_rate = 0;
    if (paired) {
      if (unsettled > 0) ceiling->write_back();
      ceiling_rate = ceiling->sample();
      cost += static_cast<double>(ceiling->sample_bytes()) / ceiling_rate;
    }
    if (!quiet.keep(cost)) {
      if (paired) ceiling->forget_last();
      continue;
    }
    bytes += sample_bytes;
    touched += sample_touched / static_cast<double>(m.launches_per_sample);
    if (paired) {
      read_rates.push_back(ceiling_rate);
      shares.push_back(sample_bytes / seconds / ceiling_rate);
    }
    if (same_size) {
      const double rate = same_size->rate(m.launches_per_sample);
      same_size_shares.push_back(sample_bytes / seconds / rate);
      cost += sample_bytes / rate * static_cast<double>(m.launches_per_sample);
    }
    // Making a graph takes the host longer than running it, which the limits of time shall know.
    if (device.info().costly_launches) cost = std::max(cost, since(started));
    criterion.add(seconds, cost);
  }
  if (criterion.samples().size() < settings.floor_samples) return std::nullopt;
  m.disturbance = quiet.end();
  m.stop = criterion.finished().value_or(StopReason::interrupted);
  m.seconds = summarize(criterion.samples());
  m.fastest = *std::min_element(criterion.samples().begin(), criterion.samples().end());
  m.bytes = bytes / static_cast<double>(criterion.samples().size());
  m.padding = operands.padding_bytes(0);
  m.touched = touched / static_cast<double>(criterion.samples().size());
  if (const ExpertDraws* draws = operands.draws()) tell_draws(*draws, m);
  m.flops = operands.flops(0);
  if (!shares.empty()) m.of_read_bandwidth = summarize(shares);
  if (!read_rates.empty()) m.read_rate = summarize(read_rates).median;
  if (!same_size_shares.empty()) m.of_same_size_read = summarize(same_size_shares);
  if (device.info().costly_launches && !settings.hot)
    m.alone_seconds = time_alone(device, operands, variant, turn);
  observed.tell(m);
  return m;
}

}  // namespace

std::optional<StreamTask> same_size_read(const DeviceInfo& info, double bytes) {
  constexpr std::int64_t kGrain = 4096;
  if (!info.costly_launches || bytes <= 0 || bytes >= static_cast<double>(kLargeBytes)) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(std::llround(bytes));
  return StreamTask{.pattern = StreamPattern::read, .bytes = div_up(whole, kGrain) * kGrain};
}

std::int64_t least_cold_bytes(const DeviceInfo& info) {
  constexpr std::int64_t kLeast = std::int64_t{64} << 20;
  return std::max(checked_mul(info.cold_caches, info.last_level_bytes),
                  std::min(kLeast, info.read_slice_bytes));
}

std::int64_t cold_copies(const Footprint& footprint, const DeviceInfo& info) {
  if (!footprint.cold) return 1;
  return std::max(footprint.least_copies,
                  div_up(least_cold_bytes(info), std::max<std::int64_t>(1, footprint.copy_bytes)));
}

std::int64_t placed_bytes(const Footprint& footprint, std::int64_t copies) {
  return checked_add(checked_mul(footprint.copy_bytes, copies), footprint.fixed_bytes);
}

std::optional<Measurement> measure_task(Device& device, const Task& task, ReadCeiling* ceiling,
                                        const SamplerSettings& settings) {
  const std::vector<Variant> variants = device.variants(task);
  if (variants.empty() || interrupted()) return std::nullopt;
  const Footprint footprint = device.footprint(task);
  Measurement m;
  m.copies = settings.hot ? footprint.least_copies : cold_copies(footprint, device.info());
  const std::unique_ptr<Operands> operands = device.place(task, m.copies, settings.seed);
  if (footprint.cold && device.info().kind != "cuda") m.huge_page_share = device.huge_page_share();

  std::int64_t turn = 0;
  m.variants = time_variants(device, *operands, variants, turn, settings.lost, settings.tries);
  // A launch that an interrupt cut short has neither a time nor a result.
  if (m.variants.size() < variants.size() || interrupted()) return std::nullopt;
  for (;;) {
    const std::size_t variant = fastest_of(m.variants);
    if (variant == m.variants.size()) throw RunError(no_way_works(m.variants));
    VariantFigure& figure = m.variants[variant];
    std::optional<Measurement> sampled;
    figure.failed = failure_of([&] {
      if (settings.tries) settings.tries(figure.name);
      m.check = operands->check(variant);
      if (interrupted()) return;
      require_right(m.check);
      sampled = sample_variant(device, *operands, variant, footprint, ceiling, settings, m);
    });
    if (figure.works()) return sampled;
  }
}

}  // namespace memwall
