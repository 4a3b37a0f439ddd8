#include "tests/cuda/traffic.h"

#include <algorithm>

namespace memwall::cuda {

void TrafficCounter::Sectors::add(std::uintptr_t first, std::uintptr_t last) {
  for (std::uintptr_t s = first; s <= last; ++s) {
    if (!sectors_.empty()) {
      if (s == sectors_.back()) continue;
      if (s < sectors_.back()) ascending_ = false;
    }
    sectors_.push_back(s);
  }
}

std::int64_t TrafficCounter::Sectors::distinct() {
  if (!ascending_) {
    std::sort(sectors_.begin(), sectors_.end());
    sectors_.erase(std::unique(sectors_.begin(), sectors_.end()), sectors_.end());
  }
  const auto count = static_cast<std::int64_t>(sectors_.size());
  sectors_.clear();
  ascending_ = true;
  return count;
}

void TrafficCounter::count_watched(const Access& access) {
  const std::uintptr_t end = watch_begin_ + watch_counts_.size();
  const std::uintptr_t last = std::min(access.address + access.bytes, end);
  for (std::uintptr_t b = std::max(access.address, watch_begin_); b < last; ++b)
    ++watch_counts_[b - watch_begin_];
}

void TrafficCounter::count(std::span<std::vector<Access>> lanes) {
  constexpr std::uintptr_t kSector = 32;
  std::size_t most = 0;
  for (const auto& lane : lanes) most = std::max(most, lane.size());
  for (std::size_t k = 0; k < most; ++k) {
    for (const auto& lane : lanes) {
      if (k >= lane.size()) continue;
      const Access& access = lane[k];
      const std::uintptr_t first = access.address / kSector;
      const std::uintptr_t last = (access.address + access.bytes - 1) / kSector;
      if (access.write) {
        traffic_.bytes_written += access.bytes;
        written_.add(first, last);
        continue;
      }
      traffic_.bytes_read += access.bytes;
      read_.add(first, last);
      if (access.streaming) {
        traffic_.streamed_bytes += access.bytes;
        streamed_.add(first, last);
      }
      if (!watch_counts_.empty()) count_watched(access);
    }
    traffic_.sectors_read += read_.distinct();
    traffic_.streamed_sectors += streamed_.distinct();
    traffic_.sectors_written += written_.distinct();
  }
  for (auto& lane : lanes) lane.clear();
}

void TrafficCounter::watch(const void* begin, std::size_t bytes) {
  watch_begin_ = reinterpret_cast<std::uintptr_t>(begin);
  watch_counts_.assign(bytes, 0);
}

ReadCounts TrafficCounter::watched() const {
  if (watch_counts_.empty()) return {};
  const auto [least, most] = std::minmax_element(watch_counts_.begin(), watch_counts_.end());
  return {*least, *most};
}

}  // namespace memwall::cuda
