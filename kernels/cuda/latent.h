// Attention of one query token a sequence where many query heads read the same rows: latents (MLA, absorbed),
// and K and V under more than 16 query heads a KV head. Tiles of tokens are staged in shared memory, from
// which all the block's heads read them.
#pragma once

#include <cstdint>

#include "kernels/cuda/attention.h"

namespace memwall::cuda {

constexpr unsigned kStagedThreads = 256;
constexpr unsigned kMergeThreads = 128;

// Columns of a staged row, K and V filled up to 16 each, and how many tiles lie in shared memory at a time.
struct StagedTile {
  int value_column = 0;  // where the values begin
  int columns = 0;
  int stages = 2;  // 2 or 4
  std::int64_t shared_bytes = 0;
};

// Of the params: `v` null: a row's values are the first d_v elements of its keys. new_k is written as it is:
// cosines and sines are not read. With several parts a second launch, `merge`, makes y of the partials;
// `arrived` is not used.
struct LatentParams : AttentionParams {
  StagedTile tile;
};

struct LatentLaunch {
  KvElement element = KvElement::f16;
  int head_tiles = 1;  // of 16 query heads, a block's: 1, 2, 4 or (rows of up to 64 elements) 8
  bool merge = false;
  LatentParams params;
  Geometry geometry;
};

// `one_row`: values are a part of the keys.
constexpr StagedTile staged_tile(KvElement element, std::int64_t d_k, std::int64_t d_v, bool one_row) {
  constexpr std::int64_t kScoreBytes = 8 << 10;  // of the warps' scores
  StagedTile tile;
  tile.value_column = one_row ? 0 : static_cast<int>((d_k + 15) / 16 * 16);
  tile.columns = static_cast<int>((d_k + 15) / 16 * 16 + (one_row ? 0 : (d_v + 15) / 16 * 16));
  // Rows are 16 bytes longer, so that 8 of them lie in different banks. f8 is staged as it is, and widened
  // into one tile more.
  const std::int64_t widened = kTileTokens * (tile.columns * 2 + 16);
  const bool bytes = element == KvElement::f8_e4m3;
  const std::int64_t stage =
      bytes ? kTileTokens * (kv_pitch(element, d_k) + (one_row ? 0 : kv_pitch(element, d_v))) : widened;
  const std::int64_t fixed = kScoreBytes + (bytes ? widened : 0);
  tile.stages = fixed + 4 * stage <= 48 << 10 ? 4 : 2;
  tile.shared_bytes = fixed + tile.stages * stage;
  return tile;
}

// Whether such rows can be staged.
bool staged_takes(KvElement element, std::int64_t d_k, std::int64_t d_v, bool one_row);

// The launch, its params but for the pointers, of latents (`one_row`, kv_heads 1, scale to be set) or of K
// and V.
LatentLaunch staged_launch(const AttentionShape& shape, bool one_row, int multiprocessors);
// The merge after a launch with several parts.
LatentLaunch merge_launch(const LatentLaunch& launch);

// Blocks that read the same rows.
std::int64_t staged_reads(const AttentionShape& shape);

}  // namespace memwall::cuda
