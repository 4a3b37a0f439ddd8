#include "bench/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "input/error.h"

namespace memwall {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

TEST(HugeBuffer, IsAlignedZeroedAndWritableToItsEnd) {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4096}, huge_page, huge_page + 1, 3 * huge_page}) {
    const HugeBuffer buffer(bytes);
    ASSERT_NE(buffer.data(), nullptr);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % huge_page, 0U);
    EXPECT_EQ(buffer.data()[bytes - 1], std::byte{0});
    std::memset(buffer.data(), 0xab, bytes);
    EXPECT_EQ(buffer.as<unsigned char>()[bytes - 1], 0xab);
  }
}

TEST(HugeBuffer, OfNothingOwnsNothing) {
  const HugeBuffer zero(0);
  EXPECT_EQ(zero.data(), nullptr);
  EXPECT_EQ(zero.size(), 0U);
  EXPECT_EQ(zero.huge_share(), 0);
  EXPECT_EQ(HugeBuffer().data(), nullptr);
}

TEST(HugeBuffer, MovesItsMapping) {
  HugeBuffer first(huge_page);
  std::byte* const data = first.data();
  data[0] = std::byte{7};
  HugeBuffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): that it is empty is the point
  EXPECT_EQ(first.size(), 0U);

  HugeBuffer third(4096);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), huge_page);
  EXPECT_EQ(third.data()[0], std::byte{7});
  EXPECT_EQ(second.data(), nullptr);  // NOLINT(bugprone-use-after-move)
}

// A kernel that runs over the end of its operand shall not read a neighbour's. The system call says
// without dying whether the byte may be read.
TEST(HugeBuffer, ThePageBehindItIsNoOnes) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const HugeBuffer buffer(huge_page);
  EXPECT_EQ(write(ends[1], buffer.data() + huge_page - 1, 1), 1);
  EXPECT_EQ(write(ends[1], buffer.data() + huge_page, 1), -1);
  EXPECT_EQ(errno, EFAULT);
  close(ends[0]);
  close(ends[1]);
}

// Without a page between them the system merges neighbours, and the touched one's pages count for the other.
TEST(HugeBuffer, NeighboursAreToldApart) {
  const HugeBuffer touched(2 * huge_page);
  const HugeBuffer untouched(2 * huge_page);
  std::memset(touched.data(), 1, touched.size());
  EXPECT_EQ(untouched.huge_share(), 0);
  EXPECT_GE(touched.huge_share(), 0);
  EXPECT_LE(touched.huge_share(), 1);
}

TEST(HugeBuffer, SaysHowMuchIsMissing) {
  try {
    const HugeBuffer buffer(std::size_t{1} << 46);
    FAIL() << "64 TiB granted";
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "needs 65536.0 GiB that this machine does not have");
  }
  EXPECT_THROW(HugeBuffer{std::numeric_limits<std::size_t>::max()}, RunError);
  EXPECT_THROW(HugeBuffer{std::numeric_limits<std::size_t>::max() / 2}, RunError);
}

double share_in(const std::string& text, std::uintptr_t first, std::uintptr_t last) {
  std::istringstream smaps(text);
  return huge_share_in(smaps, first, last);
}

constexpr const char* two_mappings =
    "00400000-00500000 r-xp 00000000 08:01 1234    /usr/bin/a program: with-dashes\n"
    "Size:               1024 kB\n"
    "Rss:                1024 kB\n"
    "AnonHugePages:         0 kB\n"
    "VmFlags: rd ex mr mw me\n"
    "7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \n"
    "Size:               8192 kB\n"
    "KernelPageSize:        4 kB\n"
    "Rss:                4096 kB\n"
    "Pss:                4096 kB\n"
    "AnonHugePages:      2048 kB\n"
    "ShmemPmdMapped:        0 kB\n"
    "THPeligible:           1\n"
    "VmFlags: rd wr mr mw me ac hg\n";

TEST(HugeShare, IsThatOfTheMappingsThatOverlap) {
  EXPECT_DOUBLE_EQ(share_in(two_mappings, 0x7f0000000000, 0x7f0000800000), 0.5);
  EXPECT_DOUBLE_EQ(share_in(two_mappings, 0x7f0000200000, 0x7f0000200001), 0.5);
  EXPECT_DOUBLE_EQ(share_in(two_mappings, 0x400000, 0x500000), 0);
  EXPECT_DOUBLE_EQ(share_in(two_mappings, 0x400000, 0x7f0000800000), 0.4);  // 2048 of 5120
}

TEST(HugeShare, IsZeroWhereItCannotBeTold) {
  EXPECT_EQ(share_in("", 0, 100), 0);
  EXPECT_EQ(share_in(two_mappings, 0x7f0000800000, 0x7f0000900000), 0) << "the end is exclusive";
  EXPECT_EQ(share_in("7f0000000000-7f0000800000 rw-p\nRss: 0 kB\nAnonHugePages: 0 kB\n", 0x7f0000000000,
                     0x7f0000000001),
            0);
  EXPECT_EQ(share_in("nonsense\n-\n12-\nRss:\nRss: many kB\n\n", 0, 100), 0);
}

// The first outputs of the reference splitmix64.c for seeds 0 and 1234567.
TEST(RandomFill, BitsAreSplitmix64) {
  std::vector<std::uint64_t> words(3);
  fill_random_bits(words, 0, 0);
  EXPECT_EQ(words[0], 0xe220a8397b1dcdafU);
  EXPECT_EQ(words[1], 0x6e789e6aa1b965f4U);
  EXPECT_EQ(words[2], 0x06c45d188009454fU);
  fill_random_bits(words, 1234567, 0);
  EXPECT_EQ(words[0], 6457827717110365317U);
  EXPECT_EQ(words[1], 3203168211198807973U);
}

TEST(RandomFill, SlicesEqualTheWhole) {
  constexpr std::size_t n = 1000;
  // The second start has the indices pass 2^32, where the floats' key changes.
  for (const std::uint64_t start : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 300}) {
    std::vector<std::uint64_t> words(n);
    std::vector<float> floats(n);
    fill_random_bits(words, 42, start);
    fill_random_floats(floats, 42, start);
    std::vector<std::uint64_t> word_slices(n);
    std::vector<float> float_slices(n);
    std::size_t first = 0;
    for (const std::size_t count : {1U, 0U, 16U, 299U, 183U, 501U}) {
      fill_random_bits(std::span(word_slices).subspan(first, count), 42, start + first);
      fill_random_floats(std::span(float_slices).subspan(first, count), 42, start + first);
      first += count;
    }
    ASSERT_EQ(first, n);
    EXPECT_EQ(word_slices, words);
    EXPECT_EQ(float_slices, floats);
  }
}

TEST(RandomFill, SeedsAndKeysDiffer) {
  std::vector<float> a(1000);
  std::vector<float> b(1000);
  fill_random_floats(a, 1, 0);
  const auto equal_values = [&] {
    int equal = 0;
    for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i] ? 1 : 0;
    return equal;
  };
  fill_random_floats(b, 2, 0);
  EXPECT_LT(equal_values(), 5);
  fill_random_floats(b, 1, std::uint64_t{1} << 32);
  EXPECT_LT(equal_values(), 5);
}

// Mean 0, variance 1/3, neighbours uncorrelated: standard errors at n = 10^6 are 0.0006, 0.0003, 0.0003.
TEST(RandomFill, FloatsAreUniform) {
  constexpr std::size_t n = 1000000;
  std::vector<float> values(n);
  fill_random_floats(values, 7, 12345);
  double sum = 0;
  double squares = 0;
  double products = 0;
  std::vector<int> bins(16, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const double value = values[i];
    ASSERT_GE(value, -1.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    squares += value * value;
    products += value * static_cast<double>(values[(i + 1) % n]);
    ++bins[static_cast<std::size_t>((value + 1) * 8)];
  }
  EXPECT_NEAR(sum / n, 0, 0.004);
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.002);
  EXPECT_NEAR(products / n, 0, 0.002);
  for (const int count : bins) EXPECT_NEAR(count, 62500, 1500);  // six standard deviations
}

TEST(RandomFill, BitsAreSetHalfTheTime) {
  std::vector<std::uint64_t> words(10000);
  fill_random_bits(words, 7, 0);
  for (unsigned bit = 0; bit < 64; ++bit) {
    int set = 0;
    for (const std::uint64_t word : words) set += static_cast<int>((word >> bit) & 1U);
    EXPECT_NEAR(set, 5000, 300) << bit;  // six standard deviations
  }
}

TEST(RandomFill, NothingIsFine) {
  fill_random_bits({}, 1, 0);
  fill_random_floats({}, 1, 0);
}

}  // namespace
}  // namespace memwall
