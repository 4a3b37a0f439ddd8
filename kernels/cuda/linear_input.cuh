// x of a linear's launch on its way to shared memory: gathered, normalised, widened, and in the order in
// which lanes will read it.
#pragma once

#include "kernels/cuda/linear.h"
#include "kernels/cuda/linear_values.cuh"

namespace memwall::cuda {

// The rows of x that the kernel's columns are.
template <class X>
struct LinearRowsOfX {
  const X* x;
  const std::uint32_t* tokens;  // null: row c
  std::int64_t in;
  bool aligned;  // rows begin at multiples of 16 bytes

  static constexpr int kPiece = static_cast<int>(16 / sizeof(X));

  MEMWALL_DEVICE const X* row(unsigned column) const {
    const std::int64_t index = tokens == nullptr ? column : load(tokens + column);
    return x + index * in;
  }
  // Elements [k, k + kPiece), zeros past `in`.
  MEMWALL_DEVICE void piece(const X* row, std::int64_t k, float (&values)[kPiece]) const {
    if (aligned && k + kPiece <= in) {
      widen_activations(load(reinterpret_cast<const Vec16*>(row + k)), X{}, values);
      return;
    }
    MEMWALL_UNROLL
    for (int i = 0; i < kPiece; ++i) values[i] = k + i < in ? widen(load(row + k + i)) : 0.0F;
  }
};

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
      sum(rows, columns, pass == 1);
      if (thread_x() < columns) {
        const float average = total(thread_x()) / width;
        if (pass == 0) mean[thread_x()] = average;
        if (pass == 1) deviation[thread_x()] = reciprocal_root(average + p.epsilon);
      }
      sync_threads();
    }
  }

 private:
  // Of each column's x, or of (x - mean)^2, in parts.
  MEMWALL_DEVICE void sum(const Rows& rows, unsigned columns, bool squares) const {
    for (unsigned unit = warp(); unit < columns * kParts; unit += kLinearWarps) {
      const unsigned column = unit / kParts;
      const X* row = rows.row(column);
      const float centre = mean[column];
      float result = 0;
      for (std::int64_t k = (unit % kParts * kWarp + lane()) * kPiece; k < rows.in;
           k += kParts * kWarp * kPiece) {
        float values[kPiece];
        rows.piece(row, k, values);
        MEMWALL_UNROLL
        for (int i = 0; i < kPiece; ++i) {
          const float d = k + i < rows.in ? values[i] - centre : 0.0F;
          result += squares ? d * d : d;
        }
      }
      result = warp_sum(result);
      if (lane() == 0) parts[unit] = result;
    }
    sync_threads();
  }
  MEMWALL_DEVICE float total(unsigned column) const {
    float result = 0;
    for (unsigned part = 0; part < kParts; ++part) result += parts[column * kParts + part];
    return result;
  }
};

// Elements of `in` [first, first + tiles * tile) of each column, as f32. The vectors of 4 that the 8 lanes of
// a row read at once lie side by side: [tile][column][vector of the lane's][lane].
template <WeightCode Code, int Columns>
MEMWALL_DEVICE void stage_linear_input(const LinearParams& p,
                                       const LinearRowsOfX<typename WeightValues<Code>::Activation>& rows,
                                       unsigned columns, std::int64_t first, unsigned tiles,
                                       const float* mean, const float* deviation, Vec16* to) {
  constexpr unsigned kVector = WeightValues<Code>::kVector;
  constexpr unsigned kPiece = WeightValues<Code>::kPiece;
  constexpr unsigned kLanePieces = kVector / kPiece;
  constexpr unsigned kTilePieces = kLanePieces * kLinearLanes;
  const unsigned pieces = tiles * kTilePieces;
  for (unsigned i = thread_x(); i < pieces * columns; i += kLinearThreads) {
    const unsigned column = i / pieces;
    const unsigned piece = i % pieces;
    const std::int64_t k = first + static_cast<std::int64_t>(piece) * kPiece;
    float values[kPiece];
    rows.piece(rows.row(column), k, values);
    if (p.norm != LinearNorm::none) {
      float weight[kPiece];
      float bias[kPiece] = {};
      load_piece(p.norm_type, p.norm_weight, k, weight);
      if (p.norm_bias != nullptr) load_piece(p.norm_type, p.norm_bias, k, bias);
      const float centre = mean[column];
      const float scale = deviation[column];
      // Past the row stays 0, since weights and biases are 0 there.
      MEMWALL_UNROLL
      for (unsigned e = 0; e < kPiece; ++e) values[e] = (values[e] - centre) * scale * weight[e] + bias[e];
    }
    const unsigned within = piece % kTilePieces;
    const unsigned in_lane = within % kLanePieces * (kPiece / 4);
    Vec16* at = to + (piece / kTilePieces * Columns + column) * (kVector / 4 * kLinearLanes) +
                in_lane * kLinearLanes + within / kLanePieces;
    MEMWALL_UNROLL
    for (unsigned q = 0; q < kPiece / 4; ++q) {
      Vec16 four;
      MEMWALL_UNROLL
      for (unsigned e = 0; e < 4; ++e) four.word[e] = float_as_bits(values[4 * q + e]);
      at[q * kLinearLanes] = four;
    }
  }
}

}  // namespace memwall::cuda
