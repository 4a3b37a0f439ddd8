#include "tests/cuda/device_memory.h"

#include <algorithm>
#include <string>

#include "tests/cuda/executor.h"

namespace memwall::cuda {

void* DeviceMemory::allocate(std::int64_t bytes) {
  GuardedBytes block(static_cast<std::size_t>(bytes));
  std::byte* data = block.data();
  blocks_.emplace(data, std::move(block));
  return data;
}

std::int64_t DeviceMemory::release(void* memory) noexcept {
  const auto found = blocks_.find(static_cast<const std::byte*>(memory));
  if (found == blocks_.end()) {
    damaged_ = true;
    return 0;
  }
  if (found->second.damage()) damaged_ = true;
  const std::size_t bytes = found->second.size();
  last_begin_ = last_end_ = nullptr;
  found->second.forbid();
  released_.push_back(std::move(found->second));
  blocks_.erase(found);
  for (released_bytes_ += bytes; released_bytes_ > kKeptBytes; released_.pop_front())
    released_bytes_ -= released_.front().size();
  return static_cast<std::int64_t>(bytes);
}

std::vector<MemoryRange> DeviceMemory::ranges() const {
  std::vector<MemoryRange> ranges;
  for (const auto& [data, block] : blocks_) ranges.push_back({block.data(), block.size()});
  return ranges;
}

void DeviceMemory::check(const void* address, std::size_t bytes, const char* what) const {
  const auto* begin = static_cast<const std::byte*>(address);
  if (begin >= last_begin_ && begin + bytes <= last_end_) return;
  auto found = blocks_.upper_bound(begin);
  if (found == blocks_.begin()) fail(begin, bytes, what);
  --found;
  if (begin + bytes > found->first + found->second.size()) fail(begin, bytes, what);
  last_begin_ = found->first;
  last_end_ = found->first + found->second.size();
}

void DeviceMemory::fail(const std::byte* address, std::size_t bytes, const char* what) const {
  const std::string text = std::string(what) + " " + std::to_string(bytes) + " bytes ";
  const auto near = [&](const GuardedBytes& block) {
    return address >= block.data() && address < block.data() + block.size();
  };
  if (std::any_of(released_.begin(), released_.end(), near))
    throw KernelError(text + "of memory that was freed");
  auto after = blocks_.upper_bound(address);
  if (after != blocks_.begin()) {
    const GuardedBytes& block = std::prev(after)->second;
    throw KernelError(text + std::to_string(address - block.data()) + " bytes into an allocation of " +
                      std::to_string(block.size()));
  }
  throw KernelError(text + "outside the GPU's memory");
}

void DeviceMemory::check_guards() {
  const auto damaged = [](const GuardedBytes& block) { return block.damage().has_value(); };
  for (const auto& [data, block] : blocks_) damaged_ = damaged_ || damaged(block);
  damaged_ = damaged_ || std::any_of(released_.begin(), released_.end(), damaged);
  if (damaged_) throw KernelError("someone wrote beyond an allocation, or freed one twice");
}

}  // namespace memwall::cuda
