#include "kernels/cpu/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "attention_support.h"

namespace memwall::cpu {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

struct Shape {
  std::int64_t seqs, context, window, heads, kv_heads, d_k, d_v;
  std::int64_t chunk = 0;
  std::int64_t top_k = 0;
};

std::string describe(const Shape& s) {
  return std::to_string(s.seqs) + " seqs, context " + std::to_string(s.context) + ", window " +
         std::to_string(s.window) + ", heads " + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) +
         ", d " + std::to_string(s.d_k) + "/" + std::to_string(s.d_v) + ", chunk " + std::to_string(s.chunk) +
         ", top_k " + std::to_string(s.top_k);
}

enum class Run : std::uint8_t { decode, prefill };

// The inputs of one shape: a query row a sequence in decode, one a token in prefill.
struct Inputs {
  Inputs(KvFormat format, const Shape& s, Run run, float spread = 2.0F)
      : shape(s),
        rows(run == Run::decode ? 1 : s.context),
        k({format, order(s, run, KvOrder::key_panels), s.d_k}, s.seqs * s.kv_heads, s.context, 1),
        v({format, order(s, run, KvOrder::value_panels), s.d_v}, s.seqs * s.kv_heads, s.context, 2),
        q(random_floats(s.seqs * rows * s.heads * s.d_k, 3, -spread, spread)),
        q_exact(q, 1),
        y(static_cast<std::size_t>(s.seqs * rows * s.heads * s.d_v), std::nanf("")) {
    op.kv = format;
    op.k = k.bytes->data();
    op.v = v.bytes->data();
    op.q = q_exact.data();
    op.y = y.data();
    op.seqs = s.seqs;
    op.context = s.context;
    op.window = s.window;
    op.chunk = s.chunk;
    op.heads = s.heads;
    op.kv_heads = s.kv_heads;
    op.d_k = s.d_k;
    op.d_v = s.d_v;
    if (s.top_k == 0) return;
    for (std::int64_t seq = 0; seq < s.seqs; ++seq) {
      const auto own = scattered_tokens(s.top_k, s.context);
      chosen.insert(chosen.end(), own.begin(), own.end());
    }
    op.chosen = chosen.data();
    op.top_k = s.top_k;
  }
  static KvOrder order(const Shape& s, Run run, KvOrder panels) {
    return run == Run::prefill || s.top_k > 0 ? KvOrder::rows : panels;
  }

  void decode(std::int64_t splits = 1, int threads = 1) {
    const std::vector<float> none(static_cast<std::size_t>(attention_scratch_floats(op)), std::nanf(""));
    Exact<float> partials(
        std::vector<float>(static_cast<std::size_t>(attention_partial_floats(op, splits)), std::nanf("")));
    on_threads(op.seqs * op.kv_heads * splits, threads, [&](std::int64_t first, std::int64_t last) {
      Exact<float> scratch(none);
      attention_decode(op, splits, first, last, scratch.data(), partials.data());
    });
    on_threads(op.seqs * op.kv_heads, threads, [&](std::int64_t first, std::int64_t last) {
      attention_merge(op, splits, first, last, partials.data());
    });
  }
  void prefill(std::int64_t first, std::int64_t last) {
    Exact<float> scratch(
        std::vector<float>(static_cast<std::size_t>(prefill_scratch_floats(op)), std::nanf("")));
    attention_prefill(op, first, last, scratch.data());
  }

  std::vector<std::int32_t> seen(std::int64_t token) const {
    if (shape.top_k > 0) return scattered_tokens(shape.top_k, shape.context);
    std::int64_t first = 0;
    if (shape.window > 0) first = std::max<std::int64_t>(0, token + 1 - shape.window);
    if (shape.chunk > 0) first = token / shape.chunk * shape.chunk;
    return tokens_between(first, token + 1);
  }

  void check_row(std::int64_t seq, std::int64_t row, const std::vector<std::int32_t>& tokens,
                 std::int64_t head) const {
    const std::int64_t at = (seq * rows + row) * shape.heads + head;
    const std::vector<double> want = attention_in_f64(
        q.data() + at * shape.d_k, k, v, seq * shape.kv_heads + head / (shape.heads / shape.kv_heads),
        shape.d_v, 1 / std::sqrt(static_cast<double>(shape.d_k)), tokens);
    for (std::int64_t i = 0; i < shape.d_v; ++i) {
      // |V| <= 2 and the weights sum to 1. A score is at most 4 sqrt(d_k), and an error e in it changes a
      // weight by the factor 1 + e.
      ASSERT_NEAR(static_cast<double>(y[static_cast<std::size_t>(at * shape.d_v + i)]),
                  want[static_cast<std::size_t>(i)], 3e-5)
          << kv_format_name(op.kv) << ", " << describe(shape) << ", seq " << seq << " row " << row << " head "
          << head;
    }
  }
  void check_decode() const {
    // The token to come stands at `context`: in a chunked layer, it sees those since the last multiple.
    const std::vector<std::int32_t> tokens =
        shape.chunk > 0 ? tokens_between(shape.context / shape.chunk * shape.chunk, shape.context)
                        : seen(shape.context - 1);
    for (std::int64_t seq = 0; seq < shape.seqs; ++seq) {
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        ASSERT_NO_FATAL_FAILURE(check_row(seq, 0, tokens, head));
      }
    }
  }

  Shape shape;
  std::int64_t rows;
  TestCache k;
  TestCache v;
  std::vector<float> q;
  Exact<float> q_exact;
  std::vector<float> y;
  std::vector<std::int32_t> chosen;
  Attention op;
};

class AttentionOnEverySet : public OnEverySet {};
MEMWALL_ON_EVERY_SET(AttentionOnEverySet);

TEST_P(AttentionOnEverySet, DecodeHoldsToFloat64) {
  const Shape shapes[] = {
      {1, 1, 0, 1, 1, 64, 64},      {2, 3, 0, 3, 1, 5, 7},         {1, 63, 0, 8, 1, 64, 64},
      {1, 64, 0, 6, 2, 64, 64},     {2, 65, 0, 8, 8, 33, 33},      {1, 1000, 0, 8, 1, 128, 96},
      {1, 1001, 17, 3, 1, 96, 128}, {1, 70, 70, 2, 2, 1, 1},       {2, 70, 1000, 4, 2, 16, 1},
      {1, 130, 1, 5, 1, 80, 80},    {1, 300, 64, 16, 2, 192, 128}, {1, 100, 0, 7, 1, 200, 48},
  };
  for (const KvFormat format : kEveryKvFormat) {
    for (const Shape& shape : shapes) {
      Inputs in(format, shape, Run::decode);
      in.decode();
      ASSERT_NO_FATAL_FAILURE(in.check_decode());
    }
  }
}

TEST_P(AttentionOnEverySet, DecodeOverChunksAndChosenTokens) {
  const Shape shapes[] = {
      {1, 100, 0, 4, 2, 32, 32, 64},    {1, 128, 0, 4, 2, 32, 32, 64},    {2, 37, 0, 4, 1, 24, 20, 100},
      {1, 90, 0, 2, 2, 16, 16, 30},     {2, 200, 0, 4, 2, 33, 40, 0, 70}, {1, 65, 0, 5, 1, 128, 64, 0, 1},
      {1, 300, 0, 8, 2, 64, 7, 0, 130}, {1, 40, 0, 2, 1, 48, 48, 0, 40},
  };
  for (const KvFormat format : kEveryKvFormat) {
    for (const Shape& shape : shapes) {
      Inputs in(format, shape, Run::decode);
      in.decode();
      ASSERT_NO_FATAL_FAILURE(in.check_decode());
    }
  }
}

// The parts of any number of threads give the result of the whole, and the same bits every time.
TEST_P(AttentionOnEverySet, PartsMergeToTheWhole) {
  const Shape shapes[] = {
      {1, 700, 0, 4, 1, 64, 64},         {2, 301, 250, 6, 2, 40, 24},  {1, 17, 0, 2, 1, 8, 8},
      {1, 500, 0, 4, 2, 32, 16, 0, 333}, {1, 96, 0, 2, 1, 16, 16, 32},
  };
  for (const KvFormat format : {KvFormat::f16, KvFormat::int8}) {
    for (const Shape& shape : shapes) {
      for (const int threads : {1, 2, 3, 7}) {
        Inputs in(format, shape, Run::decode);
        in.decode(threads, threads);  // with 17 tokens some parts are empty
        ASSERT_NO_FATAL_FAILURE(in.check_decode());
        Inputs again(format, shape, Run::decode);
        again.decode(threads, threads);
        EXPECT_EQ(in.y, again.y);
      }
    }
  }
}

TEST_P(AttentionOnEverySet, PrefillHoldsToFloat64) {
  const Shape shapes[] = {
      {1, 1, 0, 1, 1, 64, 64},       {2, 5, 0, 3, 1, 5, 7},       {1, 64, 0, 2, 1, 32, 32},
      {1, 65, 0, 2, 2, 33, 17},      {1, 200, 0, 8, 1, 16, 24},   {1, 200, 1, 3, 3, 16, 16},
      {1, 201, 40, 4, 2, 24, 8},     {2, 150, 100, 2, 1, 20, 20}, {1, 80, 500, 1, 1, 48, 1},
      {1, 150, 0, 2, 1, 16, 16, 70},
  };
  for (const KvFormat format : kEveryKvFormat) {
    for (const Shape& shape : shapes) {
      Inputs in(format, shape, Run::prefill);
      in.prefill(0, shape.seqs * shape.heads);
      for (std::int64_t seq = 0; seq < shape.seqs; ++seq) {
        for (std::int64_t head = 0; head < shape.heads; ++head) {
          for (std::int64_t row = 0; row < shape.context; ++row) {
            ASSERT_NO_FATAL_FAILURE(in.check_row(seq, row, in.seen(row), head));
          }
        }
      }
    }
  }
}

// Decode with the last row of a prefill must agree with it: two implementations of one formula.
TEST_P(AttentionOnEverySet, DecodeIsPrefillsLastRow) {
  const Shape shape{1, 150, 90, 6, 2, 64, 32};
  Inputs long_run(KvFormat::f16, shape, Run::prefill);
  long_run.prefill(0, shape.heads);
  Inputs step(KvFormat::f16, shape, Run::decode);
  step.op.q = long_run.q.data() + (shape.context - 1) * shape.heads * shape.d_k;
  step.decode();
  for (std::int64_t i = 0; i < shape.heads * shape.d_v; ++i) {
    EXPECT_NEAR(step.y[i], long_run.y[(shape.context - 1) * shape.heads * shape.d_v + i], 1e-5F);
  }
}

TEST_P(AttentionOnEverySet, SplitRangesGiveTheSameBits) {
  const Shape shape{2, 100, 0, 6, 3, 40, 24};
  Inputs whole(KvFormat::bf16, shape, Run::decode);
  whole.decode();
  Inputs parts(KvFormat::bf16, shape, Run::decode);
  parts.decode(1, 4);
  EXPECT_EQ(whole.y, parts.y);

  Inputs prefilled(KvFormat::bf16, shape, Run::prefill);
  prefilled.prefill(0, 12);
  Inputs in_parts(KvFormat::bf16, shape, Run::prefill);
  in_parts.prefill(0, 5);
  in_parts.prefill(5, 12);
  EXPECT_EQ(prefilled.y, in_parts.y);
}

// Scores in the thousands: exp would overflow without the running maximum, and late tokens take over.
TEST_P(AttentionOnEverySet, LargeScoresDoNotOverflow) {
  const Shape shape{1, 200, 0, 2, 1, 16, 16};
  for (const std::int64_t splits : {1, 3}) {
    Inputs in(KvFormat::f32, shape, Run::decode, 2000.0F);
    in.decode(splits);
    for (const float value : in.y) EXPECT_TRUE(std::isfinite(value));
    const std::vector<double> want =
        attention_in_f64(in.q.data() + 16, in.k, in.v, 0, 16, 0.25, tokens_between(0, 200));
    for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(static_cast<double>(in.y[16 + i]), want[i], 1e-2);
  }
}

// One head of width 1 whose query is 1: a token's score is its key.
Inputs plain_scores(std::int64_t context, float key, float value) {
  Inputs in(KvFormat::f32, {1, context, 0, 1, 1, 1, 1}, Run::decode);
  in.q_exact.data()[0] = 1.0F;
  for (std::int64_t t = 0; t < context; ++t) {
    in.k.set(0, t, key);
    in.v.set(0, t, value);
  }
  return in;
}

// A whole block of tokens scored -inf, then a finite one: it alone counts, and nothing is NaN.
TEST_P(AttentionOnEverySet, TokensAtMinusInfinityWeighNothing) {
  for (const std::int64_t splits : {1, 2, 3}) {
    Inputs in = plain_scores(129, kMinusInf, 5.0F);
    in.decode(splits);
    EXPECT_EQ(in.y[0], 0.0F);  // no token is left
    in.k.set(0, 128, 1.0F);
    in.v.set(0, 128, 7.0F);
    in.decode(splits);
    EXPECT_EQ(in.y[0], 7.0F);
    in.k.set(0, 128, kMinusInf);
    in.k.set(0, 0, 1.0F);
    in.decode(splits);
    EXPECT_EQ(in.y[0], 5.0F);
    in.k.set(0, 128, std::nanf(""));
    in.decode(splits);
    EXPECT_TRUE(std::isnan(in.y[0]));
  }
}

// Infinities and NaN in what a window leaves out change nothing.
TEST_P(AttentionOnEverySet, WhatIsNotSeenDoesNotCount) {
  Inputs in = plain_scores(100, 0.5F, 2.0F);
  in.op.window = 45;
  for (std::int64_t t = 0; t < 55; ++t) {
    in.k.set(0, t, std::nanf(""));
    in.v.set(0, t, t % 2 == 0 ? std::nanf("") : kMinusInf);
  }
  in.decode();
  EXPECT_FLOAT_EQ(in.y[0], 2.0F);
}

// A NaN key anywhere makes its whole head NaN, as the formula has it; another head is not touched.
TEST_P(AttentionOnEverySet, NanSpreadsOverItsHeadAlone) {
  for (const std::int64_t place : {0, 3, 63, 64, 99}) {
    Inputs in(KvFormat::f32, {1, 100, 0, 2, 2, 1, 1}, Run::decode);
    in.k.set(0, place, std::nanf(""));
    in.decode();
    EXPECT_TRUE(std::isnan(in.y[0])) << place;
    EXPECT_TRUE(std::isfinite(in.y[1]));
  }
}

// e4m3's NaN is one too.
TEST_P(AttentionOnEverySet, NanInEightBits) {
  Inputs in(KvFormat::f8_e4m3, {1, 40, 0, 2, 2, 16, 16}, Run::decode);
  const std::vector<std::uint8_t> row(16, 0x7F);
  write_kv(in.k.layout, in.k.bytes->data(), 20, row.data());
  in.decode();
  EXPECT_TRUE(std::isnan(in.y[0]));
  EXPECT_TRUE(std::isfinite(in.y[16]));
}

TEST(Attention, RefusesWhatItCannotCompute) {
  float x[512] = {};
  Attention good;
  good.kv = KvFormat::f32;
  good.k = good.v = good.q = good.y = x;
  good.seqs = good.context = good.d_k = good.d_v = 1;
  good.heads = 4;
  good.kv_heads = 2;
  EXPECT_NO_THROW(attention_decode(good, 1, 0, 0, x, nullptr));
  Attention op = good;
  op.heads = 3;
  EXPECT_THROW(attention_decode(op, 1, 0, 1, x, nullptr), std::invalid_argument);
  EXPECT_THROW(attention_prefill(op, 0, 1, x), std::invalid_argument);
  op = good;
  op.context = 0;
  EXPECT_THROW(attention_decode(op, 1, 0, 1, x, nullptr), std::invalid_argument);
  op = good;
  op.chunk = -1;
  EXPECT_THROW(attention_scratch_floats(op), std::invalid_argument);
}

}  // namespace
}  // namespace memwall::cpu
