// The body of linear.h. Each weight is loaded once, 16 bytes a lane, a step ahead of its use, and widened
// once for all columns; x waits in shared memory as f32. Products and sums are f32's.
#pragma once

#include <type_traits>

#include "kernels/cuda/linear.h"
#include "kernels/cuda/linear_input.cuh"
#include "kernels/cuda/linear_output.cuh"
#include "kernels/cuda/linear_values.cuh"
#include "kernels/cuda/platform.cuh"

namespace memwall::cuda {

template <WeightCode Code, ScaleRule Rule, int Columns>
struct LinearKernel {
  using Params = LinearParams;
  using Values = WeightValues<Code>;
  using X = typename Values::Activation;
  static constexpr unsigned kThreads = kLinearThreads;
  // A multiprocessor's at least: said to the compiler, it uses their 128 registers a thread and spills none.
  static constexpr unsigned kMinBlocks = 2;
  static constexpr int kRows = kLinearLaneRows;
  static constexpr int kUnroll = linear_unroll(Code, Columns);
  static constexpr int kVector = Values::kVector;
  static constexpr bool kHasZeros = Rule == ScaleRule::group_zero;
  static constexpr bool kGrouped = Rule == ScaleRule::group || kHasZeros || Rule == ScaleRule::block128;
  static constexpr std::uint32_t kOne = 0x3C00;  // f16
  static constexpr unsigned kScaleBytes = Rule == ScaleRule::block128 ? 4 : 2;
  // A group's scale multiplies its sums where these are fewer than its weights, else its weights.
  static constexpr bool kScalesSums = kGrouped && Columns <= 4;
  // 16 columns of a word are enough to keep a warp busy, and to fill its registers.
  static constexpr bool kWordByWord = Columns == 16 && kVector >= 16;
  // Sums of a row and column that do not wait for each other.
  static constexpr int kChains = Columns == 1 ? 2 : 1;
  static constexpr int kSums = Columns * kChains;
  static constexpr int kTileWeights = kLinearLanes * kVector;
  static constexpr int kTileVectors = kVector / 4 * kLinearLanes;  // of x as f32, a column

  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    MEMWALL_NO_UNROLL
    for (unsigned first = 0; first < columns_of(p); first += Columns) {
      if (first > 0) sync_threads();  // the sums before this are read
      run_columns(p, first, shared);
    }
  }

 private:
  // What this block works on.
  struct Place {
    int segment = 0;
    std::int64_t block = 0;      // of the segment's rows, or of both gated ones' in turn
    std::int64_t matrix_at = 0;  // bytes
    std::int64_t bias_at = 0;    // elements
    std::int64_t y_row = 0;
  };

  // A lane's rows: its first one's parts, and the others `step` rows on.
  struct Rows {
    const std::byte* quants;
    const std::byte* scales;  // the row's or block's first
    const std::byte* zeros;
    unsigned step;
    bool exist[kRows];
  };

  // A row's part of a tile.
  struct Part {
    Vec16 codes;
    std::uint32_t scale;  // bits: f16, or f32 of blocks
    std::uint32_t zero;   // the byte that holds it
  };

  static MEMWALL_DEVICE Place place_of(const Params& p) {
    Place place;
    if (!p.gated) {
      MEMWALL_UNROLL
      for (int s = 1; s < kMostLinearSegments; ++s)
        if (s < p.segment_count && block_x() >= p.segments[s].first_block) place.segment = s;
    }
    place.block = block_x() - p.segments[place.segment].first_block;
    if (p.entries == nullptr) return place;
    const std::uint32_t matrix = load(&p.entries[block_y()].matrix);
    const std::uint32_t first = load(&p.entries[block_y()].first);
    const std::int64_t at = (p.matrix_offset + matrix) % p.matrices;
    place.matrix_at = at * p.matrix_stride;
    place.bias_at = at * p.bias_stride;
    place.y_row = first;
    return place;
  }

  // Places, columns and rows of x are made where they are used: kept, they would crowd the loop's registers.
  static MEMWALL_DEVICE unsigned columns_of(const Params& p) {
    if (p.entries != nullptr) return load(&p.entries[block_y()].count);
    return static_cast<unsigned>(p.columns);
  }
  static MEMWALL_DEVICE unsigned columns_from(const Params& p, unsigned first) {
    const unsigned left = columns_of(p) - first;
    return left < Columns ? left : Columns;
  }
  static MEMWALL_DEVICE LinearRowsOfX<X> rows_of_x(const Params& p, unsigned first_column) {
    LinearRowsOfX<X> rows{static_cast<const X*>(p.x), nullptr, p.in,
                          p.in * static_cast<std::int64_t>(sizeof(X)) % 16 == 0};
    if (p.entries == nullptr) {
      rows.x += first_column * p.in;
    } else {
      rows.tokens = p.tokens + load(&p.entries[block_y()].first) + first_column;
    }
    return rows;
  }

  static MEMWALL_DEVICE std::int64_t rows_a_block(const Params& p) {
    return (kLinearWarps * kLinearWarpRows) >> p.warps_shift;
  }

  // Rows i and i + 4 of the block: gated ones alternate.
  static MEMWALL_DEVICE Rows rows_of(const Params& p, const Place& place, unsigned i) {
    std::int64_t row = place.block * rows_a_block(p) + i;
    const std::byte* quants = p.segments[place.segment].quants;
    const std::byte* scales = p.segments[place.segment].scales;
    const std::byte* zeros = p.segments[place.segment].zeros;
    const std::int64_t out = p.segments[place.segment].out;
    Rows rows;
    rows.step = kWarp / kLinearLanes;
    if (p.gated) {
      quants = row % 2 == 0 ? quants : p.segments[1].quants;
      scales = row % 2 == 0 ? scales : p.segments[1].scales;
      zeros = row % 2 == 0 ? zeros : p.segments[1].zeros;
      row /= 2;
      rows.step /= 2;
    }
    MEMWALL_UNROLL
    for (int r = 0; r < kRows; ++r) rows.exist[r] = row + r * rows.step < out;
    const std::int64_t scale_row = Rule == ScaleRule::block128 ? row / 128 : row;
    rows.quants = quants + place.matrix_at + row * p.pitch;
    rows.scales = scales + place.matrix_at + scale_row * p.groups * kScaleBytes;
    rows.zeros = zeros + place.matrix_at + row * p.zero_pitch;
    return rows;
  }

  // Sums are scaled last. 8-bit weights share their kernel with grouped ones, whose scales then are 1.
  static MEMWALL_DEVICE bool scales_row(const Params& p) {
    if constexpr (Code == WeightCode::i8) return p.groups == 0;
    return Rule == ScaleRule::tensor || Rule == ScaleRule::row;
  }

  // The group that a vector of a row belongs to.
  static MEMWALL_DEVICE int group_of(const Params& p, int vector) { return vector >> p.vector_shift; }

  // Offsets from the lane's first row are 32 bits wide, so that its rows share the registers of one address.
  static MEMWALL_DEVICE Part fetch(const Params& p, const Rows& rows, int r, int vector) {
    Part part = {};
    if (!rows.exist[r] || vector * 16U >= static_cast<unsigned>(p.pitch)) return part;
    const unsigned below = r * rows.step;
    const unsigned offset = below * static_cast<unsigned>(p.pitch) + vector * 16U;
    part.codes = load_streaming(reinterpret_cast<const Vec16*>(rows.quants + offset));
    if constexpr (kGrouped) {
      const auto group = static_cast<unsigned>(group_of(p, vector));
      // Rows a few apart lie in one block of 128.
      const unsigned own = Rule == ScaleRule::block128 ? 0 : below * static_cast<unsigned>(p.groups);
      const std::byte* scale = rows.scales + (own + group) * kScaleBytes;
      part.scale = kOne;
      if constexpr (Rule == ScaleRule::block128) {
        part.scale = load(reinterpret_cast<const std::uint32_t*>(scale));
      } else if (!scales_row(p)) {
        part.scale = load(reinterpret_cast<const Half*>(scale)).bits;
      }
      if constexpr (kHasZeros) {
        const unsigned zero = below * static_cast<unsigned>(p.zero_pitch) + group / 2;
        part.zero = load(reinterpret_cast<const std::uint8_t*>(rows.zeros + zero));
      }
    }
    return part;
  }

  static MEMWALL_DEVICE float scale_of(const Part& part) {
    if constexpr (Rule == ScaleRule::block128) {
      return bits_as_float(part.scale);
    } else {
      return widen(Half{static_cast<std::uint16_t>(part.scale)});
    }
  }

  // sums += the tile's products. `x`: the tile's, at this lane.
  static MEMWALL_DEVICE void multiply(const Part (&parts)[kRows], int group, const Vec16* x,
                                      float (&sums)[kRows][kSums]) {
    constexpr int kPieces = kVector / 4;
    float scale[kRows];
    std::uint32_t zero[kRows];
    Vec16 codes[kRows];
    MEMWALL_UNROLL
    for (int r = 0; r < kRows; ++r) {
      scale[r] = kGrouped ? scale_of(parts[r]) : 1.0F;
      zero[r] = kHasZeros ? (parts[r].zero >> (group % 2 * 4)) & 15U : 8U;
      codes[r] = parts[r].codes;
    }
    if constexpr (kScalesSums) {
      float grouped[kRows][kSums] = {};
      MEMWALL_UNROLL
      for (int piece = 0; piece < kPieces; ++piece)
        multiply_piece(codes, piece, scale, zero, x + piece * kLinearLanes, grouped);
      MEMWALL_UNROLL
      for (int r = 0; r < kRows; ++r) {
        MEMWALL_UNROLL
        for (int s = 0; s < kSums; ++s) sums[r][s] = fmaf(scale[r], grouped[r][s], sums[r][s]);
      }
    } else if constexpr (kWordByWord) {
      constexpr int kWordPieces = kPieces / 4;
      MEMWALL_NO_UNROLL
      for (int word = 0; word < 4; ++word) {
        MEMWALL_UNROLL
        for (int piece = 0; piece < kWordPieces; ++piece)
          multiply_piece(codes, piece, scale, zero, x + (word * kWordPieces + piece) * kLinearLanes, sums);
        // The next word becomes the first: registers have no index.
        MEMWALL_UNROLL
        for (int r = 0; r < kRows; ++r) {
          MEMWALL_UNROLL
          for (int i = 0; i < 3; ++i) codes[r].word[i] = codes[r].word[i + 1];
        }
      }
    } else {
      MEMWALL_UNROLL
      for (int piece = 0; piece < kPieces; ++piece)
        multiply_piece(codes, piece, scale, zero, x + piece * kLinearLanes, sums);
    }
  }

  // Four weights a row with all columns' four of x.
  static MEMWALL_DEVICE void multiply_piece(const Vec16 (&codes)[kRows], int piece,
                                            const float (&scale)[kRows], const std::uint32_t (&zero)[kRows],
                                            const Vec16* x, float (&sums)[kRows][kSums]) {
    float w[kRows][4];
    MEMWALL_UNROLL
    for (int r = 0; r < kRows; ++r) {
      Values::widen(codes[r], piece, zero[r], w[r]);
      if constexpr (kGrouped && !kScalesSums) {
        MEMWALL_UNROLL
        for (int e = 0; e < 4; ++e) w[r][e] *= scale[r];
      }
    }
    MEMWALL_UNROLL
    for (int c = 0; c < Columns; ++c) {
      const Vec16 four = x[c * kTileVectors];
      MEMWALL_UNROLL
      for (int r = 0; r < kRows; ++r) {
        MEMWALL_UNROLL
        for (int e = 0; e < 4; ++e) {
          float& sum = sums[r][c * kChains + e % kChains];
          sum = fmaf(w[r][e], bits_as_float(four.word[e]), sum);
        }
      }
    }
  }

  static MEMWALL_DEVICE void run_columns(const Params& p, unsigned first_column, std::byte* shared) {
    const unsigned warps_a_row = 1U << p.warps_shift;
    const int own = static_cast<int>(warp() & (warps_a_row - 1));  // of its row's warps
    const unsigned warp_row = (warp() >> p.warps_shift) * kLinearWarpRows;
    const Rows rows = rows_of(p, place_of(p), warp_row + lane() / kLinearLanes);
    const int tiles = static_cast<int>((p.pitch + kLinearTileBytes - 1) / kLinearTileBytes);
    const int step_tiles = kUnroll << p.warps_shift;
    const int first_step = static_cast<int>(block_z()) * p.steps_a_split;
    int last_step = (tiles + step_tiles - 1) / step_tiles;
    if (first_step + p.steps_a_split < last_step) last_step = first_step + p.steps_a_split;
    const int lane_vector = static_cast<int>(lane() % kLinearLanes);

    // The first step's weights are on their way before x is.
    int tile = first_step * step_tiles + own * kUnroll;  // of the step's first
    Part parts[kUnroll][kRows];
    MEMWALL_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      MEMWALL_UNROLL
      for (int r = 0; r < kRows; ++r)
        parts[u][r] = fetch(p, rows, r, (tile + u) * kLinearLanes + lane_vector);
    }

    const auto statistics = LinearNormStatistics<X, Columns>::at(shared);
    if (p.norm != LinearNorm::none)
      statistics.compute(p, rows_of_x(p, first_column), columns_from(p, first_column));
    auto* staged = reinterpret_cast<Vec16*>(shared + kLinearRoomBytes);

    float sums[kRows][kSums];
    MEMWALL_UNROLL
    for (int r = 0; r < kRows; ++r) {
      MEMWALL_UNROLL
      for (int s = 0; s < kSums; ++s) sums[r][s] = 0;
    }
    int chunk = first_step;  // the step that x is staged from
    MEMWALL_NO_UNROLL
    for (int step = first_step; step < last_step; ++step, tile += step_tiles) {
      if (step == first_step || step == chunk + p.chunk_steps) {
        if (step != first_step) sync_threads();  // the chunk before is read
        chunk = step;
        int staged_tiles = p.chunk_steps * step_tiles;
        const int left = tiles - step * step_tiles;
        if (left < staged_tiles) staged_tiles = left;
        using Stage = LinearStage<Code, Columns>;
        const LinearRowsOfX<X> x_rows = rows_of_x(p, first_column);
        const Stage stage{x_rows, columns_from(p, first_column),
                          static_cast<std::int64_t>(step) * step_tiles * kTileWeights,
                          static_cast<unsigned>(staged_tiles) * Stage::kTilePieces, staged};
        stage.copy();
        if (p.norm != LinearNorm::none) stage.normalise(p, statistics.mean, statistics.deviation);
        sync_threads();
      }
      // Past the last step there is nothing to load.
      const int next = step + 1 < last_step ? tile + step_tiles : tiles;
      MEMWALL_UNROLL
      for (int u = 0; u < kUnroll; ++u) {
        if (tile + u < tiles) {  // the same for the whole warp
          const int group = kHasZeros ? group_of(p, (tile + u) * kLinearLanes + lane_vector) : 0;
          const int staged_tile = tile + u - chunk * step_tiles;
          multiply(parts[u], group, staged + staged_tile * (Columns * kTileVectors) + lane_vector, sums);
        }
        MEMWALL_UNROLL
        for (int r = 0; r < kRows; ++r)
          parts[u][r] = fetch(p, rows, r, (next + u) * kLinearLanes + lane_vector);
      }
    }
    sync_threads();  // x is read, and makes room for sums
    auto* shared_sums = reinterpret_cast<float*>(shared + kLinearRoomBytes);
    gather(sums, shared_sums);
    sync_threads();
    auto* vote = reinterpret_cast<unsigned*>(shared + kLinearRoomBytes - 16);
    finish(p, first_column, shared_sums, vote);
  }

  // A row's sums from its 8 lanes, to [warp][row of the warp][column].
  static MEMWALL_DEVICE void gather(const float (&sums)[kRows][kSums], float* to) {
    MEMWALL_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const unsigned row = warp() * kLinearWarpRows + r * (kWarp / kLinearLanes) + lane() / kLinearLanes;
      MEMWALL_UNROLL
      for (int c = 0; c < Columns; ++c) {
        float sum = sums[r][c * kChains];
        if (kChains == 2) sum += sums[r][c * kChains + kChains - 1];
        MEMWALL_UNROLL
        for (unsigned mask = kLinearLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
        if (lane() % kLinearLanes == static_cast<unsigned>(c % kLinearLanes)) to[row * Columns + c] = sum;
      }
    }
  }

  // Of row i of the block: its warps' sums, in their order.
  static MEMWALL_DEVICE float block_sum(const Params& p, const float* sums, unsigned i, unsigned column) {
    const unsigned first_warp = i / kLinearWarpRows << p.warps_shift;
    const float* from = sums + (first_warp * kLinearWarpRows + i % kLinearWarpRows) * Columns + column;
    float sum = 0;
    MEMWALL_NO_UNROLL
    for (unsigned w = 0; w < 1U << p.warps_shift; ++w) sum += from[w * kLinearWarpRows * Columns];
    return sum;
  }

  static MEMWALL_DEVICE void finish(const Params& p, unsigned first_column, const float* sums,
                                    unsigned* vote) {
    const unsigned columns = columns_from(p, first_column);
    const Place place = place_of(p);
    const auto block_rows = static_cast<unsigned>(rows_a_block(p));
    const unsigned count = block_rows * columns;
    const std::int64_t splits = p.splits;
    float* partials = p.partials;
    if (splits > 1) {
      // The last block of a row to come adds up what all left, in their order.
      partials += block_x() * splits * block_rows * Columns;
      float* own = partials + static_cast<std::int64_t>(block_z()) * block_rows * Columns;
      MEMWALL_NO_UNROLL
      for (unsigned i = thread_x(); i < count; i += kThreads)
        store(own + i, block_sum(p, sums, i % block_rows, i / block_rows));
      sync_threads();
      if (thread_x() == 0) {
        *vote = fetch_add(p.counters + block_x(), 1U);
        if (*vote + 1 == splits) store(p.counters + block_x(), 0U);  // for the next launch
      }
      sync_threads();
      if (*vote + 1 != splits) return;
    }
    const auto sum_of = [&](unsigned i, unsigned column) {
      if (splits == 1) return block_sum(p, sums, i, column);
      float sum = 0;
      for (std::int64_t z = 0; z < splits; ++z)
        sum += load_fresh(partials + z * block_rows * Columns + column * block_rows + i);
      return sum;
    };
    const LinearOutput<X> output{p, place.y_row + first_column, place.bias_at};
    const LinearSegment& segment = p.segments[place.segment];
    MEMWALL_NO_UNROLL
    for (unsigned at = thread_x(); at < count; at += kThreads) {
      const unsigned i = at % block_rows;
      const unsigned column = at / block_rows;
      const std::int64_t block_row = place.block * block_rows + i;
      const std::int64_t row = p.gated ? block_row / 2 : block_row;
      if (row >= segment.out || (p.gated && i % 2 != 0)) continue;
      float result = 1;
      MEMWALL_NO_UNROLL
      for (unsigned factor = 0; factor < (p.gated ? 2U : 1U); ++factor) {
        const LinearSegment& of = factor == 0 ? segment : p.segments[1];
        float value = sum_of(i + factor, column);
        if (scales_row(p)) {
          const auto* scale = reinterpret_cast<const float*>(of.scales + place.matrix_at);
          value *= load(scale + row * p.row_scale_stride);
        }
        value = output.with_bias(of, row, value);
        result *= factor == 0 ? activate(p.activation, value) : value;
      }
      output.write(segment, row, column, result);
    }
  }
};

template <class Run>
void dispatch(const LinearLaunch& launch, Run&& run) {
  const auto with_columns = [&](auto code, auto rule) {
    constexpr WeightCode kCode = decltype(code)::value;
    constexpr ScaleRule kRule = decltype(rule)::value;
    switch (launch.columns) {
      case 1:
        return run.template operator()<LinearKernel<kCode, kRule, 1>>(launch.geometry, launch.params);
      case 2:
        return run.template operator()<LinearKernel<kCode, kRule, 2>>(launch.geometry, launch.params);
      case 4:
        return run.template operator()<LinearKernel<kCode, kRule, 4>>(launch.geometry, launch.params);
      case 8:
        return run.template operator()<LinearKernel<kCode, kRule, 8>>(launch.geometry, launch.params);
      default:
        return run.template operator()<LinearKernel<kCode, kRule, 16>>(launch.geometry, launch.params);
    }
  };
  using Code = WeightCode;
  using Rule = ScaleRule;
  switch (launch.code) {
    case Code::f32:
      return with_columns(std::integral_constant<Code, Code::f32>{},
                          std::integral_constant<Rule, Rule::none>{});
    case Code::f16:
      return with_columns(std::integral_constant<Code, Code::f16>{},
                          std::integral_constant<Rule, Rule::none>{});
    case Code::bf16:
      return with_columns(std::integral_constant<Code, Code::bf16>{},
                          std::integral_constant<Rule, Rule::none>{});
    case Code::f8:
      if (launch.rule == Rule::block128)
        return with_columns(std::integral_constant<Code, Code::f8>{},
                            std::integral_constant<Rule, Rule::block128>{});
      return with_columns(std::integral_constant<Code, Code::f8>{},
                          std::integral_constant<Rule, Rule::row>{});
    case Code::i8:  // a row's scale is left to the end, and its groups' are 1
      return with_columns(std::integral_constant<Code, Code::i8>{},
                          std::integral_constant<Rule, Rule::group>{});
    case Code::u4:
      if (launch.rule == Rule::group_zero)
        return with_columns(std::integral_constant<Code, Code::u4>{},
                            std::integral_constant<Rule, Rule::group_zero>{});
      return with_columns(std::integral_constant<Code, Code::u4>{},
                          std::integral_constant<Rule, Rule::group>{});
  }
}

}  // namespace memwall::cuda
