#include "kernels/cuda/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/cuda/latent.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kHeadTile = 8;
constexpr std::int64_t kMostHeadTiles = 2;
constexpr std::int64_t kWidest = 256;

AttentionWidth width_of(const AttentionShape& s) {
  if (s.d_k <= 64 && s.d_v <= 64) return AttentionWidth::w64;
  return s.d_k <= 128 && s.d_v <= 128 ? AttentionWidth::w128 : AttentionWidth::w256;
}

// Of a block, as AttentionKernel and PlainAttentionKernel lay it out (which tests compare).
unsigned shared_bytes(const AttentionShape& s, const AttentionLaunch& launch) {
  if (launch.plain) {
    return static_cast<unsigned>(
        4 * (kTileTokens * (kPlainKeys + 1) + kPlainHeads * (kPlainKeys + kTileTokens + 3)));
  }
  constexpr std::int64_t kWarps = kAttentionThreads / kWarp;
  // What a row's lanes load at once, 64 bytes of K and 128 of V, may be more than the row.
  const std::int64_t bytes = kv_element_bytes(s.element);
  std::int64_t d_k = 256;
  std::int64_t d_v = 256;
  if (launch.width == AttentionWidth::w64) d_k = 64, d_v = bytes == 1 ? 128 : 64;
  if (launch.width == AttentionWidth::w128) d_k = d_v = 128;
  const std::int64_t rows = kHeadTile * launch.head_tiles;
  const std::int64_t layout = rows * ((d_k + 32) * 2 + kWarps * 8 + (d_v + 4) * 4) + 16;
  return static_cast<unsigned>(std::max<std::int64_t>(layout, rows * kMostParts * 4 + 16));
}

// Blocks that a multiprocessor runs at once, by the registers that such kernels take.
std::int64_t resident_blocks(const AttentionLaunch& launch) {
  if (launch.plain) return 2;
  switch (launch.width) {
    case AttentionWidth::w64:
      return 4;
    case AttentionWidth::w128:
      return 3;
    case AttentionWidth::w256:
      break;
  }
  return 2;
}

// All but the kernel.
void complete(AttentionLaunch& launch, const AttentionShape& s, int multiprocessors) {
  launch.element = s.element;
  const std::int64_t heads = s.seqs * s.kv_heads * (launch.plain ? plain_reads(s) : 1);
  // A tile a warp, at least.
  const std::int64_t least = launch.plain ? 2 : kAttentionThreads / kWarp;
  const TokenSplit split = split_tokens(heads, (s.read + kTileTokens - 1) / kTileTokens,
                                        multiprocessors * resident_blocks(launch), least);
  AttentionParams& p = launch.params;
  p.k_pitch = static_cast<int>(kv_pitch(s.element, s.d_k));
  p.v_pitch = static_cast<int>(kv_pitch(s.element, s.d_v));
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
  launch.geometry.threads = kAttentionThreads;
  launch.geometry.shared_bytes = shared_bytes(s, launch);
}

}  // namespace

AttentionWay attention_way(const AttentionShape& s, const ArchLimits& arch) {
  const bool tensor = kv_on_tensor_cores(s.element, arch);
  if (tensor && held_in_registers(s)) return AttentionWay::registers;
  if (tensor && s.group() > 1 && staged_takes(s.element, s.d_k, s.d_v, false)) return AttentionWay::staged;
  return plain_takes(s) ? AttentionWay::plain : AttentionWay::none;
}

bool held_in_registers(const AttentionShape& s) {
  if (s.d_k > kWidest || s.d_v > kWidest) return false;
  return s.group() <= (width_of(s) == AttentionWidth::w256 ? kHeadTile : kHeadTile * kMostHeadTiles);
}

bool plain_takes(const AttentionShape& s) { return s.d_k <= kPlainKeys && s.d_v <= kPlainValues; }

AttentionLaunch plain_attention_launch(const AttentionShape& s, int multiprocessors) {
  AttentionLaunch launch;
  launch.plain = true;
  complete(launch, s, multiprocessors);
  return launch;
}

AttentionLaunch attention_launch(const AttentionShape& s, const ArchLimits& arch, int multiprocessors) {
  if (attention_way(s, arch) != AttentionWay::registers) return plain_attention_launch(s, multiprocessors);
  AttentionLaunch launch;
  launch.width = width_of(s);
  launch.head_tiles = s.group() <= kHeadTile ? 1 : 2;
  complete(launch, s, multiprocessors);
  return launch;
}

std::int64_t attention_partial_floats(const AttentionParams& p, std::int64_t seqs) {
  if (p.parts == 1) return 0;
  const std::int64_t floats = static_cast<std::int64_t>(p.parts) * p.group * (p.d_v + 2);
  return seqs * p.kv_heads * ((floats + 31) / 32 * 32);
}

std::int64_t attention_counters(const AttentionShape& s) { return s.seqs * s.kv_heads * plain_reads(s); }

std::int64_t plain_reads(const AttentionShape& s) { return (s.group() + kPlainHeads - 1) / kPlainHeads; }

}  // namespace memwall::cuda
