// x of a linear's launch on its way to shared memory: gathered, widened, normalised, and in the order in
// which lanes will read it.
#pragma once

#include "kernels/cuda/linear.h"
#include "kernels/cuda/linear_values.cuh"

namespace memwall::cuda {

// The rows of x that the kernel's columns are, read 16 bytes at a time.
template <class X>
struct LinearRowsOfX {
  const X* x;
  const std::uint32_t* tokens;  // null: row c
  std::int64_t in;
  bool aligned;  // rows begin at multiples of 16 bytes, and a piece lies within a row or past it

  static constexpr int kPiece = static_cast<int>(16 / sizeof(X));
  static constexpr int kInFlight = 4;

  MEMWALL_DEVICE const X* row(unsigned column) const {
    const std::int64_t index = tokens == nullptr ? column : load(tokens + column);
    return x + index * in;
  }
  MEMWALL_DEVICE Vec16 piece_aligned(const X* row, std::int64_t k) const {
    if (k >= in) return Vec16{};
    return load(reinterpret_cast<const Vec16*>(row + k));
  }
  // Elements [k, k + kPiece), zeros past `in`.
  MEMWALL_DEVICE void piece_unaligned(const X* row, std::int64_t k, float (&values)[kPiece]) const {
    MEMWALL_UNROLL
    for (int i = 0; i < kPiece; ++i) values[i] = k + i < in ? widen(load(row + k + i)) : 0.0F;
  }
};

// Means and deviations of x's rows, for a norm.
template <class X, int Columns>
struct LinearNormStatistics {
  using Rows = LinearRowsOfX<X>;
  static constexpr int kPiece = Rows::kPiece;
  static constexpr unsigned kParts = Columns < kLinearWarps ? kLinearWarps / Columns : 1;
  static_assert((kParts * Columns + 2 * Columns) * 4 <= kLinearRoomBytes - 16);

  float* mean;       // [Columns]
  float* deviation;  // 1 / deviation, [Columns]
  float* parts;      // [Columns][kParts]

  static MEMWALL_DEVICE LinearNormStatistics at(std::byte* room) {
    auto* floats = reinterpret_cast<float*>(room);
    return {floats, floats + Columns, floats + 2 * Columns};
  }

  // By all threads, which meet here. A layer norm's columns are summed first for the mean; then squares are.
  MEMWALL_DEVICE void compute(const LinearParams& p, const Rows& rows, unsigned columns) const {
    const float width = static_cast<float>(p.in);
    if (thread_x() < columns) mean[thread_x()] = 0;
    sync_threads();
    MEMWALL_NO_UNROLL
    for (int pass = p.norm == LinearNorm::layer ? 0 : 1; pass < 2; ++pass) {
      MEMWALL_NO_UNROLL
      for (unsigned unit = warp(); unit < columns * kParts; unit += kLinearWarps) {
        const unsigned column = unit / kParts;
        const float sum = warp_sum(sum_of(rows, rows.row(column), unit % kParts, mean[column], pass == 1));
        if (lane() == 0) parts[unit] = sum;
      }
      sync_threads();
      if (thread_x() < columns) {
        float total = 0;
        for (unsigned part = 0; part < kParts; ++part) total += parts[thread_x() * kParts + part];
        if (pass == 0) mean[thread_x()] = total / width;
        if (pass == 1) deviation[thread_x()] = reciprocal_root(total / width + p.epsilon);
      }
      sync_threads();
    }
  }

 private:
  // A lane's share of the sum of x - mean, or its square, over a part of a row.
  static MEMWALL_DEVICE float sum_of(const Rows& rows, const X* row, unsigned part, float centre,
                                     bool squares) {
    constexpr std::int64_t kStride = kParts * kWarp * kPiece;
    constexpr int kInFlight = Rows::kInFlight;
    std::int64_t k = (part * kWarp + lane()) * kPiece;
    float sum = 0;
    if (rows.aligned) {
      MEMWALL_NO_UNROLL
      for (; k < rows.in; k += kInFlight * kStride) {
        Vec16 raw[kInFlight];
        MEMWALL_UNROLL
        for (int u = 0; u < kInFlight; ++u) raw[u] = rows.piece_aligned(row, k + u * kStride);
        MEMWALL_UNROLL
        for (int u = 0; u < kInFlight; ++u) {
          float values[kPiece];
          widen_activations(raw[u], X{}, values);
          if (k + u * kStride < rows.in) sum += sum_piece(values, kPiece, centre, squares);
        }
      }
      return sum;
    }
    MEMWALL_NO_UNROLL
    for (; k < rows.in; k += kStride) {
      float values[kPiece];
      rows.piece_unaligned(row, k, values);
      sum += sum_piece(values, rows.in - k, centre, squares);
    }
    return sum;
  }
  static MEMWALL_DEVICE float sum_piece(const float (&values)[kPiece], std::int64_t count, float centre,
                                        bool squares) {
    float sum = 0;
    MEMWALL_UNROLL
    for (int i = 0; i < kPiece; ++i) {
      const float d = i < count ? values[i] - centre : 0.0F;
      sum = fmaf(d, squares ? d : 1.0F, sum);
    }
    return sum;
  }
};

// Elements of `in` from `first` on, `tiles` tiles of each column, as f32. The vectors of 4 that the 8 lanes
// of a row read at once lie side by side: [tile][column][vector of the lane's][lane].
template <WeightCode Code, int Columns>
struct LinearStage {
  using X = typename WeightValues<Code>::Activation;
  using Rows = LinearRowsOfX<X>;
  static constexpr unsigned kVector = WeightValues<Code>::kVector;
  static constexpr unsigned kPiece = Rows::kPiece;  // 16 bytes of x
  static constexpr unsigned kLanePieces = kVector / kPiece;
  static constexpr unsigned kTilePieces = kLanePieces * kLinearLanes;

  const Rows& rows;
  unsigned columns;
  std::int64_t first;
  unsigned pieces;  // a column's
  Vec16* to;

  // By all threads; none meet here.
  MEMWALL_DEVICE void copy() const {
    const unsigned count = pieces * columns;
    if (!rows.aligned) {
      MEMWALL_NO_UNROLL
      for (unsigned i = thread_x(); i < count; i += kLinearThreads) {
        float values[kPiece];
        rows.piece_unaligned(rows.row(column_of(i)), k_of(i), values);
        put(i, values);
      }
      return;
    }
    constexpr int kInFlight = Columns == 1 ? Rows::kInFlight : 2;  // sums wait in registers meanwhile
    MEMWALL_NO_UNROLL
    for (unsigned i = thread_x(); i < count; i += kInFlight * kLinearThreads) {
      Vec16 raw[kInFlight];
      MEMWALL_UNROLL
      for (int u = 0; u < kInFlight; ++u) {
        const unsigned j = i + u * kLinearThreads;
        raw[u] = Vec16{};
        if (j < count) raw[u] = rows.piece_aligned(rows.row(column_of(j)), k_of(j));
      }
      MEMWALL_UNROLL
      for (int u = 0; u < kInFlight; ++u) {
        const unsigned j = i + u * kLinearThreads;
        float values[kPiece];
        widen_activations(raw[u], X{}, values);
        if (j < count) put(j, values);
      }
    }
  }

  // What this thread copied becomes (x - mean) / deviation * weight + bias. Past the row stays 0, since
  // weights and biases are.
  MEMWALL_DEVICE void normalise(const LinearParams& p, const float* mean, const float* deviation) const {
    MEMWALL_NO_UNROLL
    for (unsigned i = thread_x(); i < pieces * columns; i += kLinearThreads) {
      const float centre = mean[column_of(i)];
      const float scale = deviation[column_of(i)];
      MEMWALL_NO_UNROLL
      for (unsigned q = 0; q < kPiece / 4; ++q) {
        float weight[4];
        float bias[4] = {};
        load_four(p.norm_type, p.norm_weight, k_of(i) + 4 * q, weight);
        if (p.norm_bias != nullptr) load_four(p.norm_type, p.norm_bias, k_of(i) + 4 * q, bias);
        Vec16* at = place_of(i) + q * kLinearLanes;
        Vec16 four = *at;
        MEMWALL_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float value = (bits_as_float(four.word[e]) - centre) * scale;
          four.word[e] = float_as_bits(fmaf(value, weight[e], bias[e]));
        }
        *at = four;
      }
    }
  }

 private:
  MEMWALL_DEVICE unsigned column_of(unsigned i) const { return Columns == 1 ? 0 : i / pieces; }
  MEMWALL_DEVICE unsigned piece_of(unsigned i) const { return Columns == 1 ? i : i % pieces; }
  MEMWALL_DEVICE std::int64_t k_of(unsigned i) const {
    return first + static_cast<std::int64_t>(piece_of(i)) * kPiece;
  }
  MEMWALL_DEVICE Vec16* place_of(unsigned i) const {
    const unsigned piece = piece_of(i);
    const unsigned within = piece % kTilePieces;
    return to + (piece / kTilePieces * Columns + column_of(i)) * (kVector / 4 * kLinearLanes) +
           within % kLanePieces * (kPiece / 4) * kLinearLanes + within / kLanePieces;
  }
  MEMWALL_DEVICE void put(unsigned i, const float (&values)[kPiece]) const {
    Vec16* at = place_of(i);
    MEMWALL_UNROLL
    for (unsigned q = 0; q < kPiece / 4; ++q) {
      Vec16 four;
      MEMWALL_UNROLL
      for (unsigned e = 0; e < 4; ++e) four.word[e] = float_as_bits(values[4 * q + e]);
      at[q * kLinearLanes] = four;
    }
  }
};

}  // namespace memwall::cuda
