// What the kernels' tests share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "format/format.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/pack.h"

namespace memwall::cpu {

// A test that runs once for every instruction set this machine has.
class OnEverySet : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_instruction_set(GetParam()); }
  void TearDown() override { use_instruction_set(""); }
};

#define MEMWALL_ON_EVERY_SET(suite)                                                              \
  INSTANTIATE_TEST_SUITE_P(Sets, suite, ::testing::ValuesIn(::memwall::cpu::instruction_sets()), \
                           [](const auto& each) { return each.param; })

inline std::vector<float> random_floats(std::int64_t count, unsigned seed, float low = -1.0F,
                                        float high = 1.0F) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(low, high);
  std::vector<float> all(static_cast<std::size_t>(count));
  for (float& value : all) value = values(engine);
  return all;
}

// `offset` unused elements, then exactly what was asked for and not a byte more: the allocation ends where
// the data does, so that AddressSanitizer sees a read past it.
template <class T>
class Exact {
 public:
  explicit Exact(const std::vector<T>& values, std::size_t offset = 0) : offset_(offset), all_(offset) {
    all_.insert(all_.end(), values.begin(), values.end());
    all_.shrink_to_fit();
  }
  T* data() { return all_.data() + offset_; }

 private:
  std::size_t offset_;
  std::vector<T> all_;
};

// A [out, in] matrix in a format, and the values that its bytes stand for.
struct Packed {
  Packed(Format f, const std::vector<float>& source, std::int64_t out, std::int64_t in)
      : format(f), values(source.size()), bytes(static_cast<std::size_t>(storage_bytes(f, out, in))) {
    const std::int64_t row_bytes = storage_bytes(f, 1, in);
    for (std::int64_t row = 0; row < out; ++row) {
      pack_row(f, source.data() + row * in, in, bytes.data() + row * row_bytes);
      unpack_row(f, bytes.data() + row * row_bytes, in, values.data() + row * in);
    }
  }
  Format format;
  std::vector<float> values;
  std::vector<std::uint8_t> bytes;
};

inline std::vector<Format> linear_formats() {
  return {{FormatKind::f32, 0, false},
          {FormatKind::f16, 0, false},
          {FormatKind::bf16, 0, false},
          {FormatKind::q8_0, 0, false},
          {FormatKind::q4_0, 0, false}};
}

inline bool same_bits(float a, float b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0 || (std::isnan(a) && std::isnan(b));
}

}  // namespace memwall::cpu
