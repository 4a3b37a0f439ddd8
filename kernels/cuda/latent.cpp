#include "kernels/cuda/latent.h"

#include <cmath>

namespace memwall::cuda {
namespace {

constexpr std::int64_t kHeadTile = 16;
constexpr std::int64_t kNarrow = 64;  // rows that leave room for 8 tiles of heads

int head_tiles_of(const AttentionShape& s) {
  if (s.group() <= kHeadTile) return 1;
  if (s.group() <= 2 * kHeadTile) return 2;
  return s.group() > 4 * kHeadTile && s.d_k <= kNarrow && s.d_v <= kNarrow ? 8 : 4;
}

}  // namespace

bool staged_takes(KvElement element, std::int64_t d_k, std::int64_t d_v, bool one_row) {
  constexpr std::int64_t kMostColumns = 576;
  constexpr std::int64_t kMostValues = 512;
  if (element == KvElement::f32) return false;
  const std::int64_t unit = 16 / kv_element_bytes(element);
  if (d_k % unit != 0 || d_v % unit != 0 || d_v > kMostValues || (one_row && d_v > d_k)) return false;
  return staged_tile(element, d_k, d_v, one_row).columns <= kMostColumns;
}

LatentLaunch staged_launch(const AttentionShape& s, bool one_row, int multiprocessors) {
  LatentLaunch launch;
  launch.element = s.element;
  launch.head_tiles = head_tiles_of(s);
  const std::int64_t heads = s.seqs * s.kv_heads * staged_reads(s);
  // Registers hold the queries and sums of four tiles of heads once; and a part's sums weigh as much as some
  // hundred latents.
  const std::int64_t resident = launch.head_tiles >= 4 ? 1 : 2;
  const std::int64_t least = launch.head_tiles >= 4 ? 8 : 4;
  const TokenSplit split =
      split_tokens(heads, (s.read + kTileTokens - 1) / kTileTokens, multiprocessors * resident, least);
  LatentParams& p = launch.params;
  p.tile = staged_tile(s.element, s.d_k, s.d_v, one_row);
  p.k_pitch = static_cast<int>(kv_pitch(s.element, s.d_k));
  p.v_pitch = one_row ? 0 : static_cast<int>(kv_pitch(s.element, s.d_v));
  p.held = s.held;
  p.read = s.read;
  p.tiles_each = split.tiles_each;
  p.parts = split.parts;
  p.heads = static_cast<int>(s.heads);
  p.kv_heads = static_cast<int>(s.kv_heads);
  p.group = static_cast<int>(s.group());
  p.d_k = static_cast<int>(s.d_k);
  p.d_v = static_cast<int>(s.d_v);
  p.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.d_k)));
  launch.geometry.grid_x = static_cast<unsigned>(heads);
  launch.geometry.grid_y = static_cast<unsigned>(split.parts);
  launch.geometry.threads = kStagedThreads;
  launch.geometry.shared_bytes = static_cast<unsigned>(p.tile.shared_bytes);
  return launch;
}

LatentLaunch merge_launch(const LatentLaunch& launch) {
  const AttentionParams& p = launch.params;
  LatentLaunch merge = launch;
  merge.merge = true;
  const std::int64_t blocks_a_head =
      (p.group + kHeadTile * launch.head_tiles - 1) / (kHeadTile * launch.head_tiles);
  merge.geometry = {};
  merge.geometry.grid_x = static_cast<unsigned>(launch.geometry.grid_x / blocks_a_head * p.group);
  merge.geometry.threads = kMergeThreads;
  merge.geometry.shared_bytes = kMostParts * 4;
  return merge;
}

std::int64_t staged_reads(const AttentionShape& s) {
  const std::int64_t rows = kHeadTile * head_tiles_of(s);
  return (s.group() + rows - 1) / rows;
}

}  // namespace memwall::cuda
