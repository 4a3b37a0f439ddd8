#include "kernels/cpu/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "attention_inputs.h"

namespace memwall::cpu {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

class AttentionOnEverySet : public OnEverySet {};
MEMWALL_ON_EVERY_SET(AttentionOnEverySet);

TEST_P(AttentionOnEverySet, DecodeHoldsToFloat64) {
  const AttentionCase shapes[] = {
      {1, 1, 0, 1, 1, 64, 64},      {2, 3, 0, 3, 1, 5, 7},         {1, 63, 0, 8, 1, 64, 64},
      {1, 64, 0, 6, 2, 64, 64},     {2, 65, 0, 8, 8, 33, 33},      {1, 1000, 0, 8, 1, 128, 96},
      {1, 1001, 17, 3, 1, 96, 128}, {1, 70, 70, 2, 2, 1, 1},       {2, 70, 1000, 4, 2, 16, 1},
      {1, 130, 1, 5, 1, 80, 80},    {1, 300, 64, 16, 2, 192, 128}, {1, 100, 0, 7, 1, 200, 48},
  };
  for (const KvFormat format : kEveryKvFormat) {
    for (const AttentionCase& shape : shapes) {
      AttentionInputs in(format, shape, AttentionRun::decode);
      in.decode();
      ASSERT_NO_FATAL_FAILURE(in.check_decode());
    }
  }
}

TEST_P(AttentionOnEverySet, DecodeOverChunksAndChosenTokens) {
  const AttentionCase shapes[] = {
      {1, 100, 0, 4, 2, 32, 32, 64},    {1, 128, 0, 4, 2, 32, 32, 64},    {2, 37, 0, 4, 1, 24, 20, 100},
      {1, 90, 0, 2, 2, 16, 16, 30},     {2, 200, 0, 4, 2, 33, 40, 0, 70}, {1, 65, 0, 5, 1, 128, 64, 0, 1},
      {1, 300, 0, 8, 2, 64, 7, 0, 130}, {1, 40, 0, 2, 1, 48, 48, 0, 40},
  };
  for (const KvFormat format : kEveryKvFormat) {
    for (const AttentionCase& shape : shapes) {
      AttentionInputs in(format, shape, AttentionRun::decode);
      in.decode();
      ASSERT_NO_FATAL_FAILURE(in.check_decode());
    }
  }
}

// The parts of any number of threads give the result of the whole, and the same bits every time.
TEST_P(AttentionOnEverySet, PartsMergeToTheWhole) {
  const AttentionCase shapes[] = {
      {1, 700, 0, 4, 1, 64, 64},         {2, 301, 250, 6, 2, 40, 24},  {1, 17, 0, 2, 1, 8, 8},
      {1, 500, 0, 4, 2, 32, 16, 0, 333}, {1, 96, 0, 2, 1, 16, 16, 32},
  };
  for (const KvFormat format : {KvFormat::f16, KvFormat::int8}) {
    for (const AttentionCase& shape : shapes) {
      for (const int threads : {1, 2, 3, 7}) {
        AttentionInputs in(format, shape, AttentionRun::decode);
        in.decode(threads, threads);  // with 17 tokens some parts are empty
        ASSERT_NO_FATAL_FAILURE(in.check_decode());
        AttentionInputs again(format, shape, AttentionRun::decode);
        again.decode(threads, threads);
        EXPECT_EQ(in.y, again.y);
      }
    }
  }
}

TEST_P(AttentionOnEverySet, PrefillHoldsToFloat64) {
  const AttentionCase shapes[] = {
      {1, 1, 0, 1, 1, 64, 64},       {2, 5, 0, 3, 1, 5, 7},       {1, 64, 0, 2, 1, 32, 32},
      {1, 65, 0, 2, 2, 33, 17},      {1, 200, 0, 8, 1, 16, 24},   {1, 200, 1, 3, 3, 16, 16},
      {1, 201, 40, 4, 2, 24, 8},     {2, 150, 100, 2, 1, 20, 20}, {1, 80, 500, 1, 1, 48, 1},
      {1, 150, 0, 2, 1, 16, 16, 70},
  };
  for (const KvFormat format : kEveryKvFormat) {
    for (const AttentionCase& shape : shapes) {
      AttentionInputs in(format, shape, AttentionRun::prefill);
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

// Tokens and elements of a key are taken 512 at a time: a tile of rows whose softmax is carried from one pass
// to the next, a chunk that begins where a tile's first rows are past the first pass and its last ones see
// none of it, and a depth and a width of more than one pass.
TEST_P(AttentionOnEverySet, PrefillInSeveralPasses) {
  const AttentionCase shapes[] = {
      {1, 512, 0, 1, 1, 8, 8},    {1, 513, 0, 2, 1, 8, 40},       {1, 1100, 0, 1, 1, 16, 24},
      {1, 1060, 520, 2, 2, 8, 8}, {1, 1050, 0, 1, 1, 8, 16, 600}, {1, 40, 0, 2, 1, 513, 530},
      {1, 30, 0, 1, 1, 1030, 16},
  };
  for (const KvFormat format : {KvFormat::f32, KvFormat::bf16, KvFormat::int8}) {
    for (const AttentionCase& shape : shapes) {
      AttentionInputs in(format, shape, AttentionRun::prefill);
      in.prefill(0, shape.heads);
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        for (std::int64_t row = 0; row < shape.context; ++row) {
          ASSERT_NO_FATAL_FAILURE(in.check_row(0, row, in.seen(row), head));
        }
      }
    }
  }
}

// Decode with the last row of a prefill must agree with it: two implementations of one formula.
TEST_P(AttentionOnEverySet, DecodeIsPrefillsLastRow) {
  const AttentionCase shape{1, 150, 90, 6, 2, 64, 32};
  AttentionInputs long_run(KvFormat::f16, shape, AttentionRun::prefill);
  long_run.prefill(0, shape.heads);
  AttentionInputs step(KvFormat::f16, shape, AttentionRun::decode);
  step.op.q = long_run.q.data() + (shape.context - 1) * shape.heads * shape.d_k;
  step.decode();
  for (std::int64_t i = 0; i < shape.heads * shape.d_v; ++i) {
    EXPECT_NEAR(step.y[i], long_run.y[(shape.context - 1) * shape.heads * shape.d_v + i], 1e-5F);
  }
}

TEST_P(AttentionOnEverySet, SplitRangesGiveTheSameBits) {
  const AttentionCase shape{2, 100, 0, 6, 3, 40, 24};
  AttentionInputs whole(KvFormat::bf16, shape, AttentionRun::decode);
  whole.decode();
  AttentionInputs parts(KvFormat::bf16, shape, AttentionRun::decode);
  parts.decode(1, 4);
  EXPECT_EQ(whole.y, parts.y);

  AttentionInputs prefilled(KvFormat::bf16, shape, AttentionRun::prefill);
  prefilled.prefill(0, 12);
  AttentionInputs in_parts(KvFormat::bf16, shape, AttentionRun::prefill);
  in_parts.prefill(0, 5);
  in_parts.prefill(5, 12);
  EXPECT_EQ(prefilled.y, in_parts.y);
}

// Scores in the thousands: exp would overflow without the running maximum, and late tokens take over.
TEST_P(AttentionOnEverySet, LargeScoresDoNotOverflow) {
  const AttentionCase shape{1, 200, 0, 2, 1, 16, 16};
  for (const std::int64_t splits : {1, 3}) {
    AttentionInputs in(KvFormat::f32, shape, AttentionRun::decode, 2000.0F);
    in.decode(splits);
    for (const float value : in.y) EXPECT_TRUE(std::isfinite(value));
    const std::vector<double> want =
        attention_in_f64(in.q.data() + 16, in.k, in.v, 0, 16, 0.25, tokens_between(0, 200));
    for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(static_cast<double>(in.y[16 + i]), want[i], 1e-2);
  }
}

// One head of width 1 whose query is 1: a token's score is its key.
AttentionInputs plain_scores(std::int64_t context, float key, float value) {
  AttentionInputs in(KvFormat::f32, {1, context, 0, 1, 1, 1, 1}, AttentionRun::decode);
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
    AttentionInputs in = plain_scores(129, kMinusInf, 5.0F);
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
  AttentionInputs in = plain_scores(100, 0.5F, 2.0F);
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
    AttentionInputs in(KvFormat::f32, {1, 100, 0, 2, 2, 1, 1}, AttentionRun::decode);
    in.k.set(0, place, std::nanf(""));
    in.decode();
    EXPECT_TRUE(std::isnan(in.y[0])) << place;
    EXPECT_TRUE(std::isfinite(in.y[1]));
  }
}

// e4m3's NaN is one too.
TEST_P(AttentionOnEverySet, NanInEightBits) {
  AttentionInputs in(KvFormat::f8_e4m3, {1, 40, 0, 2, 2, 16, 16}, AttentionRun::decode);
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
