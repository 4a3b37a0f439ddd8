#include "kernels/cpu/latent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "attention_support.h"

namespace memwall::cpu {
namespace {

struct LatentInputs {
  LatentInputs(KvFormat format, std::int64_t seqs, std::int64_t entries, std::int64_t heads,
               std::int64_t rank, std::int64_t rope, std::int64_t top_k)
      : cache({format, KvOrder::rows, rank + rope}, seqs, entries, 1),
        q(random_floats(seqs * heads * (rank + rope), 3, -2.0F, 2.0F)),
        q_exact(q, 1),
        y(static_cast<std::size_t>(seqs * heads * rank), std::nanf("")) {
    op.kv = format;
    op.cache = cache.bytes->data();
    op.q = q_exact.data();
    op.y = y.data();
    op.seqs = seqs;
    op.entries = entries;
    op.heads = heads;
    op.rank = rank;
    op.rope = rope;
    op.scale = 0.125F;
    if (top_k == 0) return;
    for (std::int64_t seq = 0; seq < seqs; ++seq) {
      const auto own = scattered_tokens(top_k, entries);
      chosen.insert(chosen.end(), own.begin(), own.end());
    }
    op.chosen = chosen.data();
    op.top_k = top_k;
  }

  void decode(std::int64_t splits, int threads) {
    const std::vector<float> none(static_cast<std::size_t>(latent_scratch_floats(op)), std::nanf(""));
    Exact<float> partials(
        std::vector<float>(static_cast<std::size_t>(latent_partial_floats(op, splits)), std::nanf("")));
    on_threads(op.seqs * splits, threads, [&](std::int64_t first, std::int64_t last) {
      Exact<float> scratch(none);
      latent_decode(op, splits, first, last, scratch.data(), partials.data());
    });
    on_threads(op.seqs * op.heads, threads, [&](std::int64_t first, std::int64_t last) {
      latent_merge(op, splits, first, last, partials.data());
    });
  }

  void check() const {
    const std::vector<std::int32_t> tokens =
        op.top_k > 0 ? scattered_tokens(op.top_k, op.entries) : tokens_between(0, op.entries);
    for (std::int64_t row = 0; row < op.seqs * op.heads; ++row) {
      const std::vector<double> want =
          attention_in_f64(q.data() + row * cache.layout.width, cache, cache, row / op.heads, op.rank,
                           static_cast<double>(op.scale), tokens);
      for (std::int64_t i = 0; i < op.rank; ++i) {
        ASSERT_NEAR(static_cast<double>(y[static_cast<std::size_t>(row * op.rank + i)]),
                    want[static_cast<std::size_t>(i)], 5e-5)
            << kv_format_name(op.kv) << " entries " << op.entries << " heads " << op.heads << " rank "
            << op.rank << " row " << row;
      }
    }
  }

  TestCache cache;
  std::vector<float> q;
  Exact<float> q_exact;
  std::vector<float> y;
  std::vector<std::int32_t> chosen;
  LatentAttention op;
};

class LatentOnEverySet : public OnEverySet {};
MEMWALL_ON_EVERY_SET(LatentOnEverySet);

TEST_P(LatentOnEverySet, DecodeHoldsToFloat64) {
  struct {
    std::int64_t seqs, entries, heads, rank, rope, top_k;
  } const shapes[] = {{1, 1, 1, 1, 0, 0},     {1, 70, 16, 64, 16, 0}, {2, 33, 5, 7, 3, 0},
                      {1, 130, 3, 200, 5, 0}, {1, 100, 8, 32, 8, 37}, {2, 65, 4, 30, 2, 64}};
  for (const KvFormat format : kEveryKvFormat) {
    for (const auto& s : shapes) {
      LatentInputs in(format, s.seqs, s.entries, s.heads, s.rank, s.rope, s.top_k);
      in.decode(1, 1);
      ASSERT_NO_FATAL_FAILURE(in.check());
    }
  }
}

TEST_P(LatentOnEverySet, PartsMergeToTheWhole) {
  for (const int threads : {2, 3, 7}) {
    for (const std::int64_t top_k : {0, 90}) {
      LatentInputs in(KvFormat::bf16, 2, 150, 6, 48, 8, top_k);
      in.decode(threads, threads);
      ASSERT_NO_FATAL_FAILURE(in.check());
      LatentInputs again(KvFormat::bf16, 2, 150, 6, 48, 8, top_k);
      again.decode(threads, threads);
      EXPECT_EQ(in.y, again.y);
    }
  }
}

TEST(Latent, RefusesWhatItCannotCompute) {
  LatentInputs in(KvFormat::f16, 1, 4, 1, 4, 0, 0);
  in.op.rank = 0;
  EXPECT_THROW(latent_scratch_floats(in.op), std::invalid_argument);
  in.op.rank = 4;
  in.op.entries = 0;
  EXPECT_THROW(latent_decode(in.op, 1, 0, 1, nullptr, nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace memwall::cpu
