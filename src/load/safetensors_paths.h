// Where in a model a stored module sits, by its path: in which layer, beside the layers, or in a part that
// decoding text does not run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace memwall {

enum class Region : std::uint8_t {
  layer,
  outside,  // before or after the layers
  // The rest is no part of a decode step.
  vision,
  audio,
  next_token,  // multi-token prediction
  draft,       // Medusa's and EAGLE's heads
  beyond,      // layers that the configuration does not count
  head_copy,   // the lm_head of a model whose head is its embedding
  other_head,  // of a reward model or a classifier
  rotary,
  mask,
  scales,  // of activations and KV caches
  adapter,
  elsewhere,
};
inline constexpr std::size_t kRegions = 14;

struct StoredPath {
  Region region = Region::outside;
  std::int64_t layer = 0;
  // Which of several alike it is: 1 of "self_attn.1.q_proj"; -1 where there is one.
  std::int32_t ordinal = -1;
  std::string path;  // inside the layer; "#" for the number of an expert: "mlp.experts.#.up_proj"
};

StoredPath stored_path(std::string_view module);

}  // namespace memwall
