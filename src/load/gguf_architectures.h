// What llama.cpp knows of an architecture and its files do not say.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace memwall {

// Which layers attend to a window, where attention.sliding_window is set.
struct GgufSliding {
  enum class Layers : std::uint8_t {
    none,         // llama.cpp ignores the key
    pattern_key,  // attention.sliding_window_pattern says, and must be there
    by_period,    // all but every `period`-th, unless that key says otherwise
  };
  Layers layers = Layers::none;
  std::int32_t period = 0;
  bool full_first = false;   // the first of a period is the full one, not the last
  std::int64_t window = 0;   // where the key is missing
  bool chunks = false;       // the tokens of the running chunk, of `window` tokens whatever the key says
  std::int32_t only_at = 0;  // slides in models of that many layers only; 0: in all
};

enum class GgufRotary : std::uint8_t {
  always,
  never,          // learned positions, ALiBi or none
  in_windows,     // the sliding layers only, where there are any
  three_of_four,  // all but every fourth layer
  by_key,         // where rope.scaling.finetuned is not false
};

struct GgufArchitecture {
  const char* name;
  ActivationKind activation = ActivationKind::silu;
  GgufRotary rotary = GgufRotary::always;
  GgufSliding sliding{};
  bool gated = true;              // its MLPs and experts
  bool own_head = false;          // output.weight must be there; else the embedding stands in for it
  bool final_norm = true;         // output_norm has weights
  const char* refusal = nullptr;  // why a file of it is no model to decode with
  const char* note = nullptr;     // a warning that goes with every model of it
};

// nullptr where it is not known.
const GgufArchitecture* find_gguf_architecture(std::string_view name);
const std::vector<GgufArchitecture>& gguf_architectures();

}  // namespace memwall
