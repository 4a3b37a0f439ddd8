#include "bench/read_ceiling.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/interrupt.h"
#include "bench/statistics.h"
#include "format/checked.h"
#include "input/error.h"

namespace memwall {

std::int64_t ReadCeiling::bytes(const DeviceInfo& info) {
  const std::int64_t wanted =
      std::max(info.read_buffer_bytes, checked_mul(info.cold_caches, info.last_level_bytes));
  return checked_mul(div_up(wanted, info.read_slice_bytes), info.read_slice_bytes);
}

ReadCeiling::ReadCeiling(Device& device)
    : ReadCeiling(device, [](const std::string&, const std::function<void()>& run) {
        return failure_of(run).empty();
      }) {}

ReadCeiling::ReadCeiling(Device& device, const Trial& trial) : device_(device) {
  const StreamTask task{.pattern = StreamPattern::read, .bytes = device.info().read_slice_bytes};
  const std::int64_t slices = bytes(device.info()) / task.bytes;
  operands_ = device.place(task, slices, 7);
  huge_share_ = device.huge_page_share();
  const std::vector<Variant> variants = device.variants(task);
  std::vector<std::size_t> usable;
  std::vector<std::int64_t> slices_a_sample(variants.size(), 1);
  for (std::size_t v = 0; v < variants.size(); ++v) {
    const bool passed = trial(variants[v].name, [&] {
      const Check check = operands_->check(v);
      if (!check.passed() && !interrupted()) {  // an interrupt leaves it undone
        throw RunError(fmt::format("its sum is {:.3g} times its tolerance away from float64", check.worst));
      }
      device_.time_alone([&] { operands_->launch(v, turn_); });
      slices_a_sample[v] = launches_a_sample(time_launches(device_, *operands_, v, turn_, 1));
      // A graph goes through the whole buffer, as an op's goes through all of its copies.
      if (device_.info().costly_launches) slices_a_sample[v] = std::max(slices_a_sample[v], slices);
    });
    if (passed) usable.push_back(v);
  }
  if (usable.empty())
    throw RunError("the read probe's sum is wrong or its kernels do not run: nothing is held against it");
  constexpr int kTries = 8;
  std::vector<std::vector<double>> seconds(variants.size());
  for (int i = 0; i < kTries && (i == 0 || !interrupted()); ++i) {
    for (const std::size_t v : usable)
      seconds[v].push_back(time_launches(device_, *operands_, v, turn_, slices_a_sample[v]));
  }
  variant_ = *std::min_element(usable.begin(), usable.end(), [&](std::size_t a, std::size_t b) {
    return summarize(seconds[a]).median < summarize(seconds[b]).median;
  });
  variant_name_ = variants[variant_].name;
  slices_ = slices_a_sample[variant_];
  for (const double s : seconds[variant_]) samples_.push_back(operands_->cold_bytes(0) / s);
}

double ReadCeiling::sample() {
  const double seconds = time_launches(device_, *operands_, variant_, turn_, slices_);
  samples_.push_back(operands_->cold_bytes(0) / seconds);
  return samples_.back();
}

void ReadCeiling::write_back() {
  const std::int64_t slices = div_up(device_.info().last_level_bytes, device_.info().read_slice_bytes);
  time_launches(device_, *operands_, variant_, turn_, std::max<std::int64_t>(1, slices));
}

double ReadCeiling::median() const { return summarize(samples_).median; }

double ReadCeiling::fastest() const { return *std::max_element(samples_.begin(), samples_.end()); }

}  // namespace memwall
