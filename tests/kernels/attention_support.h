// What the tests of attention, latents and the indexer share: caches with known values, attention in float64.
#pragma once

#include <algorithm>
#include <memory>
#include <thread>

#include "kernels/cpu/kv_cache.h"
#include "support.h"

namespace memwall::cpu {

inline const KvFormat kEveryKvFormat[] = {KvFormat::f32, KvFormat::f16, KvFormat::bf16, KvFormat::f8_e4m3,
                                          KvFormat::int8};

// `tokens` random rows of a format, of magnitude 2 at most; every seventh int8 scale is zero.
inline std::vector<std::uint8_t> random_rows(KvFormat format, std::int64_t tokens, std::int64_t width,
                                             unsigned seed) {
  const std::int64_t row_bytes = kv_vector_bytes(format, width);
  std::vector<std::uint8_t> rows(static_cast<std::size_t>(tokens * row_bytes));
  const std::vector<float> values = random_floats(tokens * width, seed);
  std::mt19937 engine(seed);
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::uint8_t* row = rows.data() + t * row_bytes;
    if (format == KvFormat::f8_e4m3 || format == KvFormat::int8) {
      for (std::int64_t i = 0; i < width; ++i) {
        row[i] = static_cast<std::uint8_t>(engine());
        if (format == KvFormat::f8_e4m3) row[i] &= 0xBF;  // below 2
      }
      const float scale = t % 7 == 6 ? 0.0F : 0.002F + 0.01F * static_cast<float>(engine() % 100) / 100.0F;
      const std::uint16_t bits = f32_to_f16(scale);
      if (format == KvFormat::int8) std::memcpy(row + width, &bits, sizeof bits);
      continue;
    }
    const FormatKind kind = format == KvFormat::f32   ? FormatKind::f32
                            : format == KvFormat::f16 ? FormatKind::f16
                                                      : FormatKind::bf16;
    pack_row({kind, 0, false}, values.data() + t * width, width, row);
  }
  return rows;
}

// `heads` heads of `tokens` tokens in a layout: exactly its bytes, padding of 0xFF (NaN where there is one),
// and the values that they stand for.
struct TestCache {
  TestCache(const KvLayout& own, std::int64_t all_heads, std::int64_t all_tokens, unsigned seed)
      : layout(own), heads(all_heads), tokens(all_tokens) {
    const std::int64_t head_bytes = layout.bytes(tokens);
    std::vector<std::uint8_t> all(static_cast<std::size_t>(heads * head_bytes), 0xFF);
    const std::vector<std::uint8_t> rows = random_rows(layout.format, heads * tokens, layout.width, seed);
    values.resize(static_cast<std::size_t>(heads * tokens * layout.width));
    for (std::int64_t i = 0; i < heads * tokens; ++i) {
      std::uint8_t* head = all.data() + i / tokens * head_bytes;
      write_kv(layout, head, i % tokens, rows.data() + i * kv_vector_bytes(layout.format, layout.width));
      read_kv(layout, head, i % tokens, values.data() + i * layout.width);
    }
    // Off the alignment of a vector, on that of an element.
    bytes = std::make_unique<Exact<std::uint8_t>>(all, layout.format == KvFormat::f32 ? 4 : 2);
  }
  const float* token(std::int64_t head, std::int64_t t) const {
    return values.data() + (head * tokens + t) * layout.width;
  }
  // f32 alone: sets every element of a token.
  void set(std::int64_t head, std::int64_t t, float value) {
    const std::vector<float> row(static_cast<std::size_t>(layout.width), value);
    write_kv(layout, bytes->data() + head * layout.bytes(tokens), t, row.data());
    std::fill_n(values.data() + (head * tokens + t) * layout.width, layout.width, value);
  }

  KvLayout layout;
  std::int64_t heads;
  std::int64_t tokens;
  std::vector<float> values;
  std::unique_ptr<Exact<std::uint8_t>> bytes;
};

// Softmax attention in f64 of one query over the given tokens of a head; zeros where there are none.
inline std::vector<double> attention_in_f64(const float* q, const TestCache& k, const TestCache& v,
                                            std::int64_t head, std::int64_t width, double scale,
                                            const std::vector<std::int32_t>& tokens) {
  std::vector<double> scores;
  for (const std::int32_t t : tokens) {
    double dot = 0.0;
    for (std::int64_t i = 0; i < k.layout.width; ++i) {
      dot += static_cast<double>(q[i]) * static_cast<double>(k.token(head, t)[i]);
    }
    scores.push_back(dot * scale);
  }
  std::vector<double> result(static_cast<std::size_t>(width), 0.0);
  if (tokens.empty()) return result;
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    for (std::int64_t i = 0; i < width; ++i) {
      result[static_cast<std::size_t>(i)] +=
          scores[t] / sum * static_cast<double>(v.token(head, tokens[t])[i]);
    }
  }
  return result;
}

inline std::vector<std::int32_t> tokens_between(std::int64_t first, std::int64_t last) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t t = first; t < last; ++t) tokens.push_back(static_cast<std::int32_t>(t));
  return tokens;
}

// Every third token or so, ascending.
inline std::vector<std::int32_t> scattered_tokens(std::int64_t count, std::int64_t of) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<std::int32_t>(i * of / count));
  return tokens;
}

// Calls work(first, last) for `threads` contiguous ranges of tasks, side by side.
template <typename Work>
void on_threads(std::int64_t tasks, int threads, const Work& work) {
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] { work(tasks * i / threads, tasks * (i + 1) / threads); });
  }
  for (std::thread& thread : running) thread.join();
}

}  // namespace memwall::cpu
