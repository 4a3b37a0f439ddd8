#include "kernels/cpu/kv_cache.h"

#include <gtest/gtest.h>

#include "attention_support.h"

namespace memwall::cpu {
namespace {

TEST(KvCache, BytesAreTheFormatsAndAPanelsPadding) {
  for (const KvFormat format : kEveryKvFormat) {
    const std::int64_t token = kv_vector_bytes(format, 24);
    EXPECT_EQ((KvLayout{format, KvOrder::rows, 24}.bytes(17)), 17 * token);
    EXPECT_EQ((KvLayout{format, KvOrder::key_panels, 24}.bytes(17)), 32 * token);
    EXPECT_EQ((KvLayout{format, KvOrder::value_panels, 24}.bytes(32)), 32 * token);
    EXPECT_EQ((KvLayout{format, KvOrder::key_panels, 24}.bytes(0)), 0);
  }
}

TEST(KvCache, ElementsLieWhereTheHeaderSays) {
  constexpr std::int64_t kWidth = 3;
  const std::vector<std::uint8_t> row = {1, 2, 3, 0x00, 0x3C};  // int8, with a scale of 1
  std::vector<std::uint8_t> cache(2 * 16 * 5, 0);
  write_kv({KvFormat::int8, KvOrder::key_panels, kWidth}, cache.data(), 18, row.data());
  EXPECT_EQ(cache[80 + 0 * 16 + 2], 1);
  EXPECT_EQ(cache[80 + 2 * 16 + 2], 3);
  EXPECT_EQ(cache[80 + 48 + 2 * 2 + 1], 0x3C);
  cache.assign(cache.size(), 0);
  write_kv({KvFormat::int8, KvOrder::value_panels, kWidth}, cache.data(), 18, row.data());
  EXPECT_EQ(cache[80 + 2 * 3 + 0], 1);
  EXPECT_EQ(cache[80 + 2 * 3 + 2], 3);
  EXPECT_EQ(cache[80 + 48 + 2 * 2 + 1], 0x3C);
  cache.assign(cache.size(), 0);
  write_kv({KvFormat::int8, KvOrder::rows, kWidth}, cache.data(), 18, row.data());
  EXPECT_EQ(cache[18 * 5], 1);
  EXPECT_EQ(cache[18 * 5 + 4], 0x3C);
}

TEST(KvCache, WhatIsWrittenIsReadBack) {
  for (const KvFormat format : kEveryKvFormat) {
    for (const KvOrder order : {KvOrder::key_panels, KvOrder::value_panels, KvOrder::rows}) {
      const KvLayout layout{format, order, 7};
      const KvLayout plain{format, KvOrder::rows, 7};
      const std::vector<std::uint8_t> rows = random_rows(format, 40, 7, 5);
      std::vector<std::uint8_t> cache(static_cast<std::size_t>(layout.bytes(40)));
      const std::int64_t row_bytes = kv_vector_bytes(format, 7);
      for (std::int64_t t = 0; t < 40; ++t) write_kv(layout, cache.data(), t, rows.data() + t * row_bytes);
      for (std::int64_t t = 0; t < 40; ++t) {
        float got[7];
        float want[7];
        read_kv(layout, cache.data(), t, got);
        read_kv(plain, rows.data(), t, want);
        for (int i = 0; i < 7; ++i) EXPECT_EQ(got[i], want[i]);
      }
    }
  }
}

}  // namespace
}  // namespace memwall::cpu
