// One case of attention over a cache, run in parts or whole, and held to float64.
#pragma once

#include <cmath>

#include "attention_support.h"
#include "kernels/cpu/attention.h"

namespace memwall::cpu {

struct AttentionCase {
  std::int64_t seqs, context, window, heads, kv_heads, d_k, d_v;
  std::int64_t chunk = 0;
  std::int64_t top_k = 0;
};

inline std::string describe(const AttentionCase& s) {
  return std::to_string(s.seqs) + " seqs, context " + std::to_string(s.context) + ", window " +
         std::to_string(s.window) + ", heads " + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) +
         ", d " + std::to_string(s.d_k) + "/" + std::to_string(s.d_v) + ", chunk " + std::to_string(s.chunk) +
         ", top_k " + std::to_string(s.top_k);
}

enum class AttentionRun : std::uint8_t { decode, prefill };

// The inputs of one shape: a query row a sequence in decode, one a token in prefill.
struct AttentionInputs {
  AttentionInputs(KvFormat format, const AttentionCase& s, AttentionRun run, float spread = 2.0F)
      : shape(s),
        rows(run == AttentionRun::decode ? 1 : s.context),
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
  static KvOrder order(const AttentionCase& s, AttentionRun run, KvOrder panels) {
    return run == AttentionRun::prefill || s.top_k > 0 ? KvOrder::rows : panels;
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

  AttentionCase shape;
  std::int64_t rows;
  TestCache k;
  TestCache v;
  std::vector<float> q;
  Exact<float> q_exact;
  std::vector<float> y;
  std::vector<std::int32_t> chosen;
  Attention op;
};

}  // namespace memwall::cpu
