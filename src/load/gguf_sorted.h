// The tensors of a GGUF file by where they go.
#pragma once

#include <vector>

#include "load/gguf_tensors.h"
#include "model/model.h"

namespace memwall {

struct GgufSorted {
  GgufTensors outside;              // of the layers
  std::vector<GgufTensors> layers;  // those that a decode step runs
  std::vector<Extra> extras;        // what it does not run
};

// Throws InputError where a tensor is of a layer that the metadata do not count.
GgufSorted sort_gguf_tensors(const GgufSource& source);

}  // namespace memwall
