#include "kernels/cuda/kv.h"

#include <algorithm>

namespace memwall::cuda {

TokenSplit split_tokens(std::int64_t heads, std::int64_t tiles, std::int64_t resident, std::int64_t least,
                        std::int64_t most) {
  constexpr double kGood = 0.9;  // of the blocks' places taken in the last wave and those before
  most = std::clamp<std::int64_t>(tiles / least, 1, most);
  std::int64_t chosen = 1;
  double best = 0;
  for (std::int64_t parts = 1; parts <= most; ++parts) {
    const std::int64_t blocks = heads * parts;
    const std::int64_t waves = (blocks + resident - 1) / resident;
    if (waves > 2 && parts > 1) break;
    const double taken = static_cast<double>(blocks) / static_cast<double>(waves * resident);
    if (taken <= best) continue;
    best = taken;
    chosen = parts;
    if (taken >= kGood) break;
  }
  TokenSplit split;
  split.tiles_each = static_cast<int>(std::max<std::int64_t>(1, (tiles + chosen - 1) / chosen));
  split.parts =
      static_cast<int>(std::max<std::int64_t>(1, (tiles + split.tiles_each - 1) / split.tiles_each));
  return split;
}

}  // namespace memwall::cuda
