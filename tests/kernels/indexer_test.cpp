#include "kernels/cpu/indexer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "attention_support.h"

namespace memwall::cpu {
namespace {

struct IndexerInputs {
  IndexerInputs(KvFormat format, std::int64_t seqs, std::int64_t keys, std::int64_t heads, std::int64_t width)
      : cache({format, KvOrder::key_panels, width}, seqs, keys, 1),
        q(random_floats(seqs * heads * width, 3)),
        weights(random_floats(seqs * heads, 4)),
        scores(static_cast<std::size_t>(seqs * keys), std::nanf("")) {
    op.kv = format;
    op.cache = cache.bytes->data();
    op.q = q.data();
    op.weights = weights.data();
    op.scores = scores.data();
    op.seqs = seqs;
    op.keys = keys;
    op.heads = heads;
    op.width = width;
  }

  void run(std::int64_t splits, int threads) {
    const std::vector<float> none(static_cast<std::size_t>(indexer_scratch_floats(op)), std::nanf(""));
    on_threads(op.seqs * splits, threads, [&](std::int64_t first, std::int64_t last) {
      Exact<float> scratch(none);
      indexer_scores(op, splits, first, last, scratch.data());
    });
  }

  void check() const {
    for (std::int64_t i = 0; i < op.seqs * op.keys; ++i) {
      const std::int64_t seq = i / op.keys;
      double sum = 0.0;
      for (std::int64_t h = seq * op.heads; h < (seq + 1) * op.heads; ++h) {
        double dot = 0.0;
        for (std::int64_t j = 0; j < op.width; ++j) {
          dot += static_cast<double>(q[static_cast<std::size_t>(h * op.width + j)]) *
                 static_cast<double>(cache.token(seq, i % op.keys)[j]);
        }
        sum += static_cast<double>(weights[static_cast<std::size_t>(h)]) * std::max(0.0, dot);
      }
      // Heads times width products of at most 2, whose roundings of 2^-24 walk randomly.
      const double terms = static_cast<double>(op.heads * op.width);
      ASSERT_NEAR(static_cast<double>(scores[static_cast<std::size_t>(i)]), sum,
                  1e-6 * std::sqrt(terms) + 1e-6)
          << kv_format_name(op.kv) << " key " << i;
    }
  }

  TestCache cache;
  std::vector<float> q;
  std::vector<float> weights;
  std::vector<float> scores;
  Indexer op;
};

class IndexerOnEverySet : public OnEverySet {};
MEMWALL_ON_EVERY_SET(IndexerOnEverySet);

TEST_P(IndexerOnEverySet, ScoresHoldToFloat64AndPartsChangeNoBit) {
  struct {
    std::int64_t seqs, keys, heads, width;
  } const shapes[] = {{1, 1, 1, 1}, {1, 100, 8, 32}, {2, 65, 5, 7}, {1, 300, 64, 128}, {3, 17, 3, 200}};
  for (const KvFormat format : kEveryKvFormat) {
    for (const auto& s : shapes) {
      IndexerInputs whole(format, s.seqs, s.keys, s.heads, s.width);
      whole.run(1, 1);
      ASSERT_NO_FATAL_FAILURE(whole.check());
      for (const int threads : {2, 3, 7}) {
        IndexerInputs parts(format, s.seqs, s.keys, s.heads, s.width);
        parts.run(threads, threads);
        EXPECT_EQ(whole.scores, parts.scores);
      }
    }
  }
}

std::vector<std::int32_t> top(const std::vector<float>& scores, std::int64_t k) {
  std::vector<std::uint32_t> room(scores.size() * 2);
  std::vector<std::int32_t> chosen(static_cast<std::size_t>(std::min<std::int64_t>(k, scores.size())), -1);
  choose_top(scores.data(), static_cast<std::int64_t>(scores.size()), k, room.data(), chosen.data());
  return chosen;
}

TEST(Indexer, TheBestAreChosenInOrder) {
  using Indices = std::vector<std::int32_t>;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(top({3, 1, 2}, 2), (Indices{0, 2}));
  EXPECT_EQ(top({-3, -1, -2, 0}, 2), (Indices{1, 3}));
  EXPECT_EQ(top({5, 5, 5, 5}, 2), (Indices{0, 1}));
  EXPECT_EQ(top({0.0F, -0.0F, 1}, 2), (Indices{0, 2}));
  EXPECT_EQ(top({1, 2}, 5), (Indices{0, 1}));
  EXPECT_EQ(top({-kInf, kInf, std::nanf(""), 1}, 2), (Indices{1, 2}));
  EXPECT_EQ(top({1, 2}, 0), Indices{});
  EXPECT_EQ(top({}, 3), Indices{});
}

TEST(Indexer, ManyAgreeWithASort) {
  const std::vector<float> scores = random_floats(5000, 9);
  std::vector<float> sorted = scores;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const std::vector<std::int32_t> chosen = top(scores, 700);
  ASSERT_EQ(chosen.size(), 700U);
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  for (const std::int32_t i : chosen) EXPECT_GE(scores[static_cast<std::size_t>(i)], sorted[699]);
}

TEST(Indexer, RefusesWhatItCannotCompute) {
  IndexerInputs in(KvFormat::f16, 1, 4, 1, 4);
  in.op.heads = 0;
  EXPECT_THROW(indexer_scratch_floats(in.op), std::invalid_argument);
}

}  // namespace
}  // namespace memwall::cpu
