// Caches of keys, values and latents for the CPU's attention kernels: random contents, and attention over
// them in float64.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/cpu_data.h"
#include "bench/cpu_operands.h"
#include "kernels/cpu/kv_cache.h"

namespace memwall {

// `heads` heads (of all sequences), each of `tokens` tokens, one after the other.
struct CacheShape {
  cpu::KvLayout layout;
  std::int64_t heads = 0;
  std::int64_t tokens = 0;

  std::int64_t head_bytes() const { return layout.bytes(tokens); }
  std::int64_t bytes() const;  // throws std::overflow_error
};

// Fills a cache with random values of magnitude 1/8 to 2 (int8: any element, scales of 2^-9 to 2^-7).
// `parts`: into how many the kernel cuts a head; each worker fills what it will read.
void fill_random_cache(ThreadPool& pool, const CacheShape& shape, std::int64_t parts, std::byte* data,
                       std::uint64_t seed);

// One token's row of such values, to be written by a step.
std::vector<std::byte> random_cache_row(KvFormat format, std::int64_t width, std::uint64_t seed);

// Cold copies of a cache, one after the other, and the row that a step writes into them.
class CacheCopies {
 public:
  CacheCopies(CpuContext& context, const CacheShape& shape, std::int64_t copies, std::int64_t parts,
              std::uint64_t seed);

  std::int64_t count() const { return copies_; }
  const CacheShape& shape() const { return shape_; }
  std::byte* head(std::int64_t turn, std::int64_t head) const {
    return buffer_.data() + turn % copies_ * shape_.bytes() + head * shape_.head_bytes();
  }
  // Writes the row as that token of a head.
  void write(std::int64_t turn, std::int64_t head, std::int64_t token) const;
  // As the newest token of every head.
  void append(std::int64_t turn) const;

 private:
  CacheShape shape_;
  std::int64_t copies_;
  HugeBuffer buffer_;
  std::vector<std::byte> row_;
};

// For each of `seqs` sequences min(k, count) different numbers from [first, first + count), ascending.
std::vector<std::int32_t> draw_tokens(std::int64_t seqs, std::int64_t first, std::int64_t count,
                                      std::int64_t k, std::uint64_t seed);

// Softmax attention of one query over a head.
struct ReferenceAttention {
  cpu::KvLayout keys;
  const std::byte* k = nullptr;
  cpu::KvLayout values;
  const std::byte* v = nullptr;
  std::int64_t width = 0;  // of the output: a value's first elements
  const float* q = nullptr;
  double scale = 1;

  // Adds the comparison of `y` with attention over `tokens`; 0 where there are none.
  void compare(Comparison& comparison, std::span<const std::int32_t> tokens, const float* y) const;
};

// first, first + 1, ..., last - 1.
std::vector<std::int32_t> token_range(std::int64_t first, std::int64_t last);

}  // namespace memwall
