// Rows of activations that attention reads and writes: queries, the newest token, outputs.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/kv_values.cuh"

namespace memwall::cuda {

// Element `i` of a row of d_k activations, turned where the launch turns. All it loads is independent.
template <class T>
MEMWALL_DEVICE float turned_element(const AttentionParams& p, const T* row, int i) {
  const int half = p.d_k / 2;
  const bool turns = p.cosines != nullptr && i < 2 * half;
  const int pair = i < half ? i : i - half;
  const float own = widen(load(row + i));
  const float other = turns ? widen(load(row + (i < half ? i + half : pair))) : 0.0F;
  const float cosine = turns ? load(p.cosines + pair) : 1.0F;
  const float sine = turns ? load(p.sines + pair) : 0.0F;
  return own * cosine + (i < half ? -other : other) * sine;
}

// The newest token of one head (of all sequences', counted through) into the cache.
template <class Activation, class Element>
MEMWALL_DEVICE void append_token(const AttentionParams& p, std::int64_t head, unsigned threads) {
  const auto* new_k = static_cast<const Activation*>(p.new_k) + head * p.d_k;
  auto* k = reinterpret_cast<Element*>(p.k + ((head + 1) * p.held - 1) * p.k_pitch);
  MEMWALL_KEEP_LOOP
  for (int i = static_cast<int>(thread_x()); i < p.d_k; i += static_cast<int>(threads)) {
    Element value;
    narrow(turned_element(p, new_k, i), &value);
    store(k + i, value);
  }
  if (p.new_v == nullptr) return;  // values are a part of the keys
  const auto* new_v = static_cast<const Activation*>(p.new_v) + head * p.d_v;
  auto* v = reinterpret_cast<Element*>(p.v + ((head + 1) * p.held - 1) * p.v_pitch);
  MEMWALL_KEEP_LOOP
  for (int i = static_cast<int>(thread_x()); i < p.d_v; i += static_cast<int>(threads)) {
    Element value;
    narrow(widen(load(new_v + i)), &value);
    store(v + i, value);
  }
}

// Where the part of this block leaves its sums and statistics: [parts, group, d_v] and [parts, group, 2] a
// head.
MEMWALL_DEVICE std::int64_t partial_floats_a_head(const AttentionParams& p) {
  const std::int64_t floats = static_cast<std::int64_t>(p.parts) * p.group * (p.d_v + 2);
  return (floats + 31) / 32 * 32;
}

template <class Activation>
MEMWALL_DEVICE void put_output(void* y, std::int64_t i, float value) {
  Activation narrowed;
  narrow(value, &narrowed);
  store(static_cast<Activation*>(y) + i, narrowed);
}

// The merged sums of `rows` rows of p.d_v columns, `pitch` floats from part to part, into y from `first` on;
// weights are [rows, parts].
template <class Activation, class V>
MEMWALL_DEVICE void put_merged(const AttentionParams& p, const float* sums, std::int64_t pitch,
                               const float* weights, int rows, std::int64_t first, unsigned threads) {
  constexpr int kColumns = sizeof(V) / 4;
  MEMWALL_KEEP_LOOP
  for (int i = static_cast<int>(thread_x()) * kColumns; i < rows * p.d_v;
       i += static_cast<int>(threads) * kColumns) {
    float merged[kColumns];
    merge_sums<V>(sums + i, pitch, p.parts, weights + i / p.d_v * p.parts, merged);
    MEMWALL_UNROLL
    for (int c = 0; c < kColumns; ++c) put_output<Activation>(p.y, first + i + c, merged[c]);
  }
}
template <class Activation>
MEMWALL_DEVICE void put_merged(const AttentionParams& p, const float* sums, std::int64_t pitch,
                               const float* weights, int rows, std::int64_t first, unsigned threads) {
  if (p.d_v % 4 == 0) {
    put_merged<Activation, Vec16>(p, sums, pitch, weights, rows, first, threads);
  } else {
    put_merged<Activation, float>(p, sums, pitch, weights, rows, first, threads);
  }
}

// What a block has summed: `rows` query heads of one KV head from `first_row` on.
struct BlockRows {
  std::int64_t head;  // of all sequences' KV heads
  int part;
  int first_row;
  int rows;
  std::int64_t counter;  // in `arrived`
};

// The block's outputs, or its part of them; the last block to come merges the parts. `sums` (rows `pitch`
// apart) and `statistics` ({maximum, sum of weights} a row) lie in shared memory; `scratch`, which may be
// theirs, has room for 16 bytes and rows * parts floats. All threads come.
template <class Activation>
MEMWALL_DEVICE void finish_rows(const AttentionParams& p, const BlockRows& at, const float* sums, int pitch,
                                const float* statistics, unsigned threads, std::byte* scratch) {
  const int group = p.group;
  const int width = p.d_v;
  const std::int64_t first = (at.head * group + at.first_row) * width;
  const auto step = static_cast<int>(threads);
  if (p.parts == 1) {
    MEMWALL_KEEP_LOOP
    for (int i = static_cast<int>(thread_x()); i < at.rows * width; i += step) {
      const float weight = statistics[i / width * 2 + 1];
      put_output<Activation>(p.y, first + i, weight > 0 ? sums[i / width * pitch + i % width] / weight : 0);
    }
    return;
  }
  const int all = group * width;
  float* own = p.partials + at.head * partial_floats_a_head(p);
  float* own_statistics = own + static_cast<std::int64_t>(p.parts) * all + at.first_row * 2;
  own += at.first_row * width;
  MEMWALL_KEEP_LOOP
  for (int i = static_cast<int>(thread_x()); i < at.rows * width; i += step)
    store(own + static_cast<std::int64_t>(at.part) * all + i, sums[i / width * pitch + i % width]);
  MEMWALL_KEEP_LOOP
  for (int i = static_cast<int>(thread_x()); i < at.rows * 2; i += step)
    store(own_statistics + at.part * group * 2 + i, statistics[i]);
  sync_threads();
  auto* before = reinterpret_cast<unsigned*>(scratch);
  if (thread_x() == 0) *before = fetch_add(p.arrived + at.counter, 1);
  sync_threads();
  if (*before != static_cast<unsigned>(p.parts) - 1) return;
  auto* weights = reinterpret_cast<float*>(scratch + 16);
  MEMWALL_KEEP_LOOP
  for (int row = static_cast<int>(warp()); row < at.rows; row += step / kWarp)
    merge_weights(own_statistics + row * 2, group * 2, p.parts, weights + row * p.parts);
  sync_threads();
  put_merged<Activation>(p, own, all, weights, at.rows, first, threads);
  if (thread_x() == 0) store(p.arrived + at.counter, 0U);
}

}  // namespace memwall::cuda
