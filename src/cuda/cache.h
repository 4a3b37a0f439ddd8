// KV caches on a GPU: what they hold, cold copies of them, and attention over them in float64.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/cpu_data.h"
#include "cuda/scalar_values.h"
#include "format/format.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/latent.h"

namespace memwall::cuda {

// None of int8, for which there are no kernels.
std::optional<KvElement> kv_element(KvFormat format);
ScalarType scalar_type(KvElement element);
// What queries, new rows and outputs are beside such a cache.
ScalarType activation_type(KvElement element);

// Cold copies of a cache: `heads` heads (of all sequences) of `tokens` rows (kv_pitch) each, one after the
// other, random.
class CacheCopies {
 public:
  CacheCopies(Context& context, KvElement element, std::int64_t width, std::int64_t heads,
              std::int64_t tokens, std::int64_t copies, std::uint64_t seed);

  // What one copy takes, up to the next one. Throws std::overflow_error.
  static std::int64_t copy_bytes(KvElement element, std::int64_t width, std::int64_t heads,
                                 std::int64_t tokens);

  std::byte* of(std::int64_t turn) const { return buffer_.data() + turn % copies_ * stride_; }
  std::int64_t count() const { return copies_; }

 private:
  std::int64_t copies_;
  std::int64_t stride_;
  Buffer buffer_;
};

// Some rows of a head, on the host.
class HostRows {
 public:
  HostRows(Gpu& gpu, KvElement element, std::int64_t width, const std::byte* first, std::int64_t rows);
  double at(std::int64_t row, std::int64_t element) const;

 private:
  KvElement element_;
  std::int64_t pitch_;
  std::vector<std::byte> bytes_;
};

// Softmax attention of one query over rows of keys and values, in float64.
struct ReferenceAttention {
  const HostRows& keys;
  const HostRows& values;
  ScalarType type;  // of what is multiplied
  std::vector<double> query;
  bool query_rounded = false;  // by the kernel, after it turned the query
  double scale = 1;

  // Adds the comparison of `y` with attention over those rows; 0 where there are none.
  void compare(Comparison& comparison, const std::vector<std::int32_t>& rows,
               const std::vector<double>& y) const;
};

// A staged launch, and the merge that it needs where it has several parts.
void launch_staged(Gpu& gpu, const LatentLaunch& launch);

// Turns pairs (i, i + size / 2).
void turn_pairs(std::vector<double>& row, const std::vector<float>& cosines, const std::vector<float>& sines);

}  // namespace memwall::cuda
