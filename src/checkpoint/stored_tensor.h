// A tensor as a checkpoint file stores it: the common ground of safetensors and GGUF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/checked.h"
#include "format/format.h"

namespace memwall {

struct StoredTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // slowest dimension first, as PyTorch prints it; empty for a scalar
  std::string type;                 // as the file names it: "BF16", "Q4_K"
  std::optional<Format> format;     // where the type alone is a weight format; F8_E4M3 keeps its scales apart
  std::int64_t bytes = 0;           // of its data in the file

  // Throws std::overflow_error where the product passes 2^63 - 1; the readers have refused such a file.
  std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count = checked_mul(count, extent);
    return count;
  }
};

}  // namespace memwall
