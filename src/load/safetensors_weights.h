// The tensors of a safetensors checkpoint sorted by the weight they belong to. Quantised weights are several:
// packed values, scales, zero points.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"
#include "format/format.h"

namespace memwall {

// One weight as stored, or one bias. Lives no longer than the checkpoint.
struct StoredWeight {
  struct Part {
    std::string_view name;  // behind the module: "qweight"; "" for a parameter that is its own module
    const StoredTensor* tensor = nullptr;
  };

  std::string_view module;  // "model.layers.0.mlp.up_proj"
  bool bias = false;
  std::vector<Part> parts{};

  const StoredTensor* find(std::string_view name) const;
  // The values; of a weight that only has scales, the largest of these.
  const StoredTensor& main() const;
  bool only_scales() const;  // of activations or caches: no values
  std::int64_t bytes() const;
};

// In the order of their first tensors; every tensor is a part of one.
std::vector<StoredWeight> stored_weights(const Checkpoint& checkpoint);

// True where both are stored alike: the same parts, of the same types and shapes.
bool stored_alike(const StoredWeight& a, const StoredWeight& b);

// What a weight's tensors say of it.
struct WeightReading {
  std::vector<std::int64_t>
      shape;  // of the values, rows along the last; empty where the file keeps a flat list
  std::int64_t elements = 0;
  Format format;
};

// What is known of a weight beforehand; 0: nothing. Packed values alone do not tell how many they are.
struct WeightHint {
  std::int64_t elements = 0;
  std::int64_t in = 0;
};

// Throws std::overflow_error.
WeightReading read_weight(const StoredWeight& weight, WeightHint hint = {});

}  // namespace memwall
