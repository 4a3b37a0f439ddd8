#include "kernels/cpu/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "support.h"

namespace memwall::cpu {
namespace {

Format plain(KvFormat kv) {
  switch (kv) {
    case KvFormat::f16:
      return {FormatKind::f16, 0, false};
    case KvFormat::bf16:
      return {FormatKind::bf16, 0, false};
    default:
      return {FormatKind::f32, 0, false};
  }
}

struct Shape {
  std::int64_t seqs, context, window, heads, kv_heads, d_k, d_v;
};

std::string describe(const Shape& s) {
  return std::to_string(s.seqs) + " seqs, context " + std::to_string(s.context) + ", window " +
         std::to_string(s.window) + ", heads " + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) +
         ", d " + std::to_string(s.d_k) + "/" + std::to_string(s.d_v);
}

// The inputs of one shape; `rows` query rows a sequence (1, or the context for prefill).
struct Inputs {
  Inputs(KvFormat format, const Shape& s, std::int64_t query_rows, float spread = 2.0F)
      : shape(s),
        rows(query_rows),
        k(plain(format), random_floats(s.seqs * s.kv_heads * s.context * s.d_k, 1),
          s.seqs * s.kv_heads * s.context, s.d_k),
        v(plain(format), random_floats(s.seqs * s.kv_heads * s.context * s.d_v, 2),
          s.seqs * s.kv_heads * s.context, s.d_v),
        k_bytes(k.bytes, 4),
        v_bytes(v.bytes, 4),
        q(random_floats(s.seqs * query_rows * s.heads * s.d_k, 3, -spread, spread)),
        q_exact(q, 1),
        y(static_cast<std::size_t>(s.seqs * query_rows * s.heads * s.d_v), std::nanf("")) {
    op.kv = format;
    op.k = k_bytes.data();
    op.v = v_bytes.data();
    op.q = q_exact.data();
    op.y = y.data();
    op.seqs = s.seqs;
    op.context = s.context;
    op.window = s.window;
    op.heads = s.heads;
    op.kv_heads = s.kv_heads;
    op.d_k = s.d_k;
    op.d_v = s.d_v;
  }

  // Softmax attention in f64 of query row `row` of a sequence, which stands at token `token`.
  std::vector<double> expected(std::int64_t seq, std::int64_t row, std::int64_t token,
                               std::int64_t head) const {
    const std::int64_t first = shape.window > 0 ? std::max<std::int64_t>(0, token + 1 - shape.window) : 0;
    const std::int64_t cache = (seq * shape.kv_heads + head / (shape.heads / shape.kv_heads)) * shape.context;
    const float* query = q.data() + ((seq * rows + row) * shape.heads + head) * shape.d_k;
    std::vector<double> scores;
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t t = first; t <= token; ++t) {
      double dot = 0.0;
      for (std::int64_t i = 0; i < shape.d_k; ++i) {
        dot += static_cast<double>(query[i]) * static_cast<double>(k.values[(cache + t) * shape.d_k + i]);
      }
      scores.push_back(dot / std::sqrt(static_cast<double>(shape.d_k)));
      largest = std::max(largest, scores.back());
    }
    double sum = 0.0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    std::vector<double> result(static_cast<std::size_t>(shape.d_v), 0.0);
    for (std::int64_t t = first; t <= token; ++t) {
      const double weight = scores[static_cast<std::size_t>(t - first)] / sum;
      for (std::int64_t i = 0; i < shape.d_v; ++i) {
        result[static_cast<std::size_t>(i)] +=
            weight * static_cast<double>(v.values[(cache + t) * shape.d_v + i]);
      }
    }
    return result;
  }

  void check_row(std::int64_t seq, std::int64_t row, std::int64_t token, std::int64_t head) const {
    const std::vector<double> want = expected(seq, row, token, head);
    const float* got = y.data() + ((seq * rows + row) * shape.heads + head) * shape.d_v;
    for (std::int64_t i = 0; i < shape.d_v; ++i) {
      // |V| <= 1 and the weights sum to 1. A score is at most 2 sqrt(d_k), and an error e in it changes a
      // weight by the factor 1 + e.
      ASSERT_NEAR(static_cast<double>(got[i]), want[static_cast<std::size_t>(i)], 1e-5)
          << describe(shape) << " seq " << seq << " row " << row << " head " << head;
    }
  }

  Shape shape;
  std::int64_t rows;
  Packed k;
  Packed v;
  Exact<std::uint8_t> k_bytes;
  Exact<std::uint8_t> v_bytes;
  std::vector<float> q;
  Exact<float> q_exact;
  std::vector<float> y;
  Attention op;
};

const KvFormat kFormats[] = {KvFormat::f32, KvFormat::f16, KvFormat::bf16};

class AttentionOnEverySet : public OnEverySet {};
MEMWALL_ON_EVERY_SET(AttentionOnEverySet);

void decode(Inputs& in, std::int64_t first, std::int64_t last) {
  Exact<float> scratch(
      std::vector<float>(static_cast<std::size_t>(attention_scratch_floats(in.op)), std::nanf("")));
  attention_decode(in.op, first, last, scratch.data());
}

void prefill(Inputs& in, std::int64_t first, std::int64_t last) {
  Exact<float> scratch(
      std::vector<float>(static_cast<std::size_t>(prefill_scratch_floats(in.op)), std::nanf("")));
  attention_prefill(in.op, first, last, scratch.data());
}

TEST_P(AttentionOnEverySet, DecodeHoldsToFloat64) {
  const Shape shapes[] = {
      {1, 1, 0, 1, 1, 64, 64},      {2, 3, 0, 3, 1, 5, 7},         {1, 63, 0, 8, 1, 64, 64},
      {1, 64, 0, 6, 2, 64, 64},     {2, 65, 0, 8, 8, 33, 33},      {1, 1000, 0, 8, 1, 128, 96},
      {1, 1001, 17, 3, 1, 96, 128}, {1, 70, 70, 2, 2, 1, 1},       {2, 70, 1000, 4, 2, 16, 1},
      {1, 130, 1, 5, 1, 80, 80},    {1, 300, 64, 16, 2, 192, 128},
  };
  for (const KvFormat format : kFormats) {
    for (const Shape& shape : shapes) {
      Inputs in(format, shape, 1);
      decode(in, 0, shape.seqs * shape.kv_heads);
      for (std::int64_t seq = 0; seq < shape.seqs; ++seq) {
        for (std::int64_t head = 0; head < shape.heads; ++head) {
          ASSERT_NO_FATAL_FAILURE(in.check_row(seq, 0, shape.context - 1, head));
        }
      }
    }
  }
}

TEST_P(AttentionOnEverySet, PrefillHoldsToFloat64) {
  const Shape shapes[] = {
      {1, 1, 0, 1, 1, 64, 64},   {2, 5, 0, 3, 1, 5, 7},       {1, 64, 0, 2, 1, 32, 32},
      {1, 65, 0, 2, 2, 33, 17},  {1, 200, 0, 8, 1, 16, 24},   {1, 200, 1, 3, 3, 16, 16},
      {1, 201, 40, 4, 2, 24, 8}, {2, 150, 100, 2, 1, 20, 20}, {1, 80, 500, 1, 1, 48, 1},
  };
  for (const KvFormat format : kFormats) {
    for (const Shape& shape : shapes) {
      Inputs in(format, shape, shape.context);
      prefill(in, 0, shape.seqs * shape.heads);
      for (std::int64_t seq = 0; seq < shape.seqs; ++seq) {
        for (std::int64_t head = 0; head < shape.heads; ++head) {
          for (std::int64_t row = 0; row < shape.context; ++row) {
            ASSERT_NO_FATAL_FAILURE(in.check_row(seq, row, row, head));
          }
        }
      }
    }
  }
}

// Decode with the last row of a prefill must agree with it: two implementations of one formula.
TEST_P(AttentionOnEverySet, DecodeIsPrefillsLastRow) {
  const Shape shape{1, 150, 90, 6, 2, 64, 32};
  Inputs long_run(KvFormat::f16, shape, shape.context);
  prefill(long_run, 0, shape.heads);
  Inputs step(KvFormat::f16, shape, 1);
  const float* last_row = long_run.q.data() + (shape.context - 1) * shape.heads * shape.d_k;
  step.op.q = last_row;
  decode(step, 0, shape.kv_heads);
  for (std::int64_t i = 0; i < shape.heads * shape.d_v; ++i) {
    EXPECT_NEAR(step.y[i], long_run.y[(shape.context - 1) * shape.heads * shape.d_v + i], 1e-5F);
  }
}

TEST_P(AttentionOnEverySet, SplitRangesGiveTheSameBits) {
  const Shape shape{2, 100, 0, 6, 3, 40, 24};
  Inputs whole(KvFormat::bf16, shape, 1);
  decode(whole, 0, 6);
  Inputs parts(KvFormat::bf16, shape, 1);
  decode(parts, 0, 1);
  decode(parts, 1, 4);
  decode(parts, 4, 4);
  decode(parts, 4, 6);
  EXPECT_EQ(whole.y, parts.y);

  Inputs prefilled(KvFormat::bf16, shape, shape.context);
  prefill(prefilled, 0, 12);
  Inputs in_parts(KvFormat::bf16, shape, shape.context);
  prefill(in_parts, 0, 5);
  prefill(in_parts, 5, 12);
  EXPECT_EQ(prefilled.y, in_parts.y);
}

// Scores in the thousands: exp would overflow without the running maximum, and late tokens take over.
TEST_P(AttentionOnEverySet, LargeScoresDoNotOverflow) {
  const Shape shape{1, 200, 0, 2, 1, 16, 16};
  Inputs in(KvFormat::f32, shape, 1, 2000.0F);
  decode(in, 0, 1);
  for (const float value : in.y) EXPECT_TRUE(std::isfinite(value));
  const std::vector<double> want = in.expected(0, 0, shape.context - 1, 1);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(static_cast<double>(in.y[16 + i]), want[i], 1e-2);
}

// A whole block of tokens scored -inf, then a finite one: it alone counts, and nothing is NaN.
TEST_P(AttentionOnEverySet, TokensAtMinusInfinityWeighNothing) {
  const std::int64_t context = 129;
  std::vector<float> k(static_cast<std::size_t>(context), -std::numeric_limits<float>::infinity());
  std::vector<float> v(static_cast<std::size_t>(context), 5.0F);
  k.back() = 1.0F;
  v.back() = 7.0F;
  const float q = 1.0F;
  float y = 0.0F;
  Attention op{KvFormat::f32, k.data(), v.data(), &q, &y, 1, context, 0, 1, 1, 1, 1};
  std::vector<float> scratch(static_cast<std::size_t>(attention_scratch_floats(op)));
  attention_decode(op, 0, 1, scratch.data());
  EXPECT_EQ(y, 7.0F);
  k.back() = std::nanf("");
  attention_decode(op, 0, 1, scratch.data());
  EXPECT_TRUE(std::isnan(y));
}

// A NaN key anywhere makes its whole head NaN, as the formula has it; another head is not touched.
TEST_P(AttentionOnEverySet, NanSpreadsOverItsHeadAlone) {
  const std::int64_t context = 100;
  for (const std::int64_t place : {0, 3, 63, 64, 99}) {
    std::vector<float> k(static_cast<std::size_t>(2 * context), 0.5F);
    const std::vector<float> v(k.size(), 1.0F);
    k[static_cast<std::size_t>(place)] = std::nanf("");
    const float q[] = {1.0F, 1.0F};
    float y[2] = {};
    const Attention op{KvFormat::f32, k.data(), v.data(), q, y, 1, context, 0, 2, 2, 1, 1};
    std::vector<float> scratch(static_cast<std::size_t>(attention_scratch_floats(op)));
    attention_decode(op, 0, 2, scratch.data());
    EXPECT_TRUE(std::isnan(y[0])) << place;
    EXPECT_FLOAT_EQ(y[1], 1.0F);
  }
}

TEST(Attention, RefusesWhatItCannotCompute) {
  EXPECT_TRUE(has_attention(KvFormat::f16));
  EXPECT_FALSE(has_attention(KvFormat::int8));
  EXPECT_FALSE(has_attention(KvFormat::f8_e4m3));
  float x[256] = {};
  const Attention good{KvFormat::f32, x, x, x, x, 1, 1, 0, 4, 2, 1, 1};
  EXPECT_NO_THROW(attention_decode(good, 0, 0, x));
  Attention op = good;
  op.kv = KvFormat::int8;
  EXPECT_THROW(attention_decode(op, 0, 1, x), std::invalid_argument);
  EXPECT_THROW(attention_prefill(op, 0, 1, x), std::invalid_argument);
  op = good;
  op.heads = 3;
  EXPECT_THROW(attention_decode(op, 0, 1, x), std::invalid_argument);
  op = good;
  op.context = 0;
  EXPECT_THROW(attention_decode(op, 0, 1, x), std::invalid_argument);
}

}  // namespace
}  // namespace memwall::cpu
