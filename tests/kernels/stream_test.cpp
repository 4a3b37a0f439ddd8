#include "kernels/cpu/stream.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "support.h"

namespace memwall::cpu {
namespace {

class Stream : public OnEverySet {};
MEMWALL_ON_EVERY_SET(Stream);

// Small whole numbers, so that every order of addition gives the exact sum.
std::vector<float> whole_numbers(std::int64_t count) {
  std::vector<float> a(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11);
  return a;
}

TEST_P(Stream, ReadSumsEveryElementOnce) {
  for (const std::int64_t count : {1, 2, 15, 16, 127, 128, 129, 1000, 4096 + 5}) {
    Exact<float> a(whole_numbers(count), 1);
    for (const int streams : {1, 2, 4, 8}) {
      for (const std::int64_t first : {std::int64_t{0}, count / 3}) {
        float expected = 0.0F;
        for (std::int64_t i = first; i < count; ++i) expected += a.data()[i];
        EXPECT_EQ(read(a.data(), first, count, streams), expected) << count << " by " << streams;
      }
    }
  }
}

TEST_P(Stream, ReadDependsOnEveryElement) {
  const std::int64_t count = 531;
  std::vector<float> a(static_cast<std::size_t>(count), 0.0F);
  for (const int streams : {1, 2, 4, 8}) {
    for (float& element : a) {
      element = 1.0F;
      ASSERT_EQ(read(a.data(), 0, count, streams), 1.0F);
      element = 0.0F;
    }
  }
}

TEST_P(Stream, CopyAndTriadCoverTheirRangeAlone) {
  for (const std::int64_t count : {1, 16, 63, 64, 65, 1000}) {
    const std::int64_t first = count / 4;
    Exact<float> a(whole_numbers(count), 1);
    Exact<float> b(whole_numbers(count), 2);
    Exact<float> c(std::vector<float>(static_cast<std::size_t>(count), 99.0F), 3);
    triad(a.data(), b.data(), c.data(), 3.0F, first, count);
    for (std::int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(c.data()[i], i < first ? 99.0F : a.data()[i] + 3.0F * b.data()[i]);
    }
    copy(a.data(), c.data(), 0, count - first);
    for (std::int64_t i = 0; i < count; ++i) {
      const float left = i < first ? 99.0F : a.data()[i] + 3.0F * b.data()[i];
      EXPECT_EQ(c.data()[i], i < count - first ? a.data()[i] : left);
    }
  }
}

TEST(StreamRead, EmptyRangesAndOddStreamCounts) {
  float a = 1.0F;
  EXPECT_EQ(read(&a, 0, 0, 4), 0.0F);
  EXPECT_THROW(read(&a, 0, 1, 3), std::invalid_argument);
  EXPECT_THROW(read(&a, 0, 1, 0), std::invalid_argument);
}

}  // namespace
}  // namespace memwall::cpu
