#include "kernels/cpu/stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
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

// Whole numbers, so that a fused and a plain multiply-add agree. Outputs at every place within a cache line.
TEST_P(Stream, WritersCoverTheirRangeAlone) {
  constexpr float untouched = 99.0F;
  for (const Stores stores : {Stores::ordinary, Stores::nontemporal}) {
    for (const std::int64_t count : {1, 15, 16, 63, 64, 65, 200, 1000}) {
      for (std::size_t offset = 0; offset < 17; ++offset) {
        Exact<float> a(whole_numbers(count), 1);
        Exact<float> b(whole_numbers(count + 3), 2);
        const std::int64_t first = count / 4;
        const std::int64_t last = count - count / 5;
        const auto expect = [&](const auto& write, const auto& element) {
          Exact<float> c(std::vector<float>(static_cast<std::size_t>(count), untouched), offset);
          write(c.data());
          for (std::int64_t i = 0; i < count; ++i) {
            ASSERT_EQ(c.data()[i], i < first || i >= last ? untouched : element(a.data()[i], b.data()[i + 3]))
                << i << " of " << count;
          }
        };
        const float* x = a.data();
        const float* y = b.data() + 3;
        expect([&](float* out) { copy(x, out, first, last, stores); }, [](float p, float) { return p; });
        expect([&](float* out) { scale(x, out, 3.0F, first, last, stores); },
               [](float p, float) { return 3.0F * p; });
        expect([&](float* out) { add(x, y, out, first, last, stores); },
               [](float p, float q) { return p + q; });
        expect([&](float* out) { triad(x, y, out, 3.0F, first, last, stores); },
               [](float p, float q) { return p + 3.0F * q; });
      }
    }
  }
}

TEST_P(Stream, WritersKeepInfinitiesAndNaN) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const Stores stores : {Stores::ordinary, Stores::nontemporal}) {
    std::vector<float> a(100, 1.0F);
    std::vector<float> out(100);
    for (const std::size_t at : {std::size_t{0}, std::size_t{50}, std::size_t{99}}) a[at] = infinity;
    copy(a.data(), out.data(), 0, 100, stores);
    EXPECT_EQ(out, a);
    triad(a.data(), a.data(), out.data(), -1.0F, 0, 100, stores);
    for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(std::isnan(out[i]), a[i] == infinity) << i;
  }
}

TEST(StreamWriters, EmptyRangesTouchNothing) {
  for (const Stores stores : {Stores::ordinary, Stores::nontemporal}) {
    copy(nullptr, nullptr, 5, 5, stores);
    scale(nullptr, nullptr, 1, 5, 4, stores);
    add(nullptr, nullptr, nullptr, 0, 0, stores);
    triad(nullptr, nullptr, nullptr, 1, 0, -1, stores);
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
