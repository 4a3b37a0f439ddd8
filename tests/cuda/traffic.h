// Counts what kernels move to and from global memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace memwall::cuda {

// What a launch moved to and from global memory, as a GPU would: the k-th access of each lane of a warp
// between two meetings of its threads is one instruction, which moves the 32-byte sectors its lanes touch,
// each once. Lanes that went another way between the meetings, or left a loop earlier, bring fewer accesses
// or other ones: what they then share an instruction with may not be what a GPU would pair them with, and
// bytes stay exact while sectors may be too few or too many. Ordinary caches are not modelled: a sector that
// two instructions touch is counted twice.
struct Traffic {
  std::int64_t bytes_read = 0;
  std::int64_t sectors_read = 0;
  std::int64_t streamed_bytes = 0;  // of those, through load_streaming and copy_async_16
  std::int64_t streamed_sectors = 0;
  std::int64_t bytes_written = 0;
  std::int64_t sectors_written = 0;

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

struct Access {
  std::uintptr_t address = 0;
  std::uint32_t bytes = 0;
  bool write = false;
  bool streaming = false;
};

// The least and the largest number of times that a byte was read.
struct ReadCounts {
  unsigned least = 0;
  unsigned most = 0;
};

class TrafficCounter {
 public:
  // Takes what the lanes of one warp have done since they last met, one list a lane, and empties the lists.
  void count(std::span<std::vector<Access>> lanes);

  const Traffic& traffic() const { return traffic_; }
  void forget() { traffic_ = {}; }

  void watch(const void* begin, std::size_t bytes);
  ReadCounts watched() const;

 private:
  // The sectors of one instruction, counted when all of its lanes have been added.
  class Sectors {
   public:
    void add(std::uintptr_t first, std::uintptr_t last);
    std::int64_t distinct();  // and forgets them

   private:
    std::vector<std::uintptr_t> sectors_;
    bool ascending_ = true;
  };
  void count_watched(const Access& access);

  Traffic traffic_;
  Sectors read_;
  Sectors streamed_;
  Sectors written_;
  std::uintptr_t watch_begin_ = 0;
  std::vector<unsigned> watch_counts_;
};

}  // namespace memwall::cuda
