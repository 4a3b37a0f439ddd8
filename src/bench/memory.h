// Memory for operands: 2 MiB-aligned, on huge pages where the system grants them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>

namespace memwall {

// Owns a mapping. Pages are not touched: whoever will read them first-touches them, in parallel.
class HugeBuffer {
 public:
  HugeBuffer() = default;
  // Throws RunError (input/error.h) where the system has no such memory: more than the address space or
  // than available_memory_bytes() (topology.h). Memory mapped but untouched counts as available still, so
  // several buffers may each fit and together not. A buffer of 0 bytes owns nothing; data() is null.
  explicit HugeBuffer(std::size_t bytes);
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept;
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;
  HugeBuffer(const HugeBuffer&) = delete;
  HugeBuffer& operator=(const HugeBuffer&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

  // The share of the buffer's resident bytes that lie on huge pages, from /proc/self/smaps
  // (AnonHugePages over Rss); 0 where it cannot be told.
  double huge_share() const;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;    // as asked for
  std::size_t mapped_ = 0;  // rounded up to 2 MiB, and a guard page
};

// The share of resident bytes on huge pages over the mappings in `smaps` (text as in /proc/PID/smaps,
// proc(5)) that overlap [first, last); 0 where there are none. Lines it does not know are skipped.
double huge_share_in(std::istream& smaps, std::uintptr_t first, std::uintptr_t last);

// Fills words with values first_index, first_index + 1, ... of the splitmix64 sequence that starts at
// `seed`, so that any slice can be filled by any thread with the same result. Values of the whole range of
// the type. Source: Sebastiano Vigna, https://prng.di.unimi.it/splitmix64.c.
void fill_random_bits(std::span<std::uint64_t> words, std::uint64_t seed, std::uint64_t first_index);

// Uniform in [-1, 1) in steps of 2^-23, the same property, by a 32-bit hash of the index that vector units
// without 64-bit multiplication compute quickly. Source of the hash: Chris Wellons' lowbias32,
// https://nullprogram.com/blog/2018/07/31/.
void fill_random_floats(std::span<float> values, std::uint64_t seed, std::uint64_t first_index);

}  // namespace memwall
