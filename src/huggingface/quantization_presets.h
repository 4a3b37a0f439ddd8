// What compressed-tensors says of a group's weights, in full or by a preset's name.
#pragma once

#include <cstdint>
#include <string>

#include "huggingface/quantization_scheme.h"

namespace memwall {

// compressed-tensors' QuantizationArgs: num_bits, type, strategy, group_size, symmetric. ModelOpt leaves the
// strategy out.
struct GroupWeights {
  std::int64_t bits = 8;
  bool integers = true;
  std::string strategy;
  std::int64_t group = 0;
  bool symmetric = true;
  std::int64_t block_rows = 0;
  std::int64_t block_columns = 0;
  bool input_index = false;  // weight_g_idx: which group an input belongs to, an int32 each
};

// PRESET_SCHEMES of compressed-tensors 0.20.1 (quantization/quant_scheme.py): what a group's name stands for
// where its value is the list of its targets alone.
struct GroupPreset {
  std::string name;  // in lower case
  bool quantised = true;
  bool activations = false;
  GroupWeights weights = {};
};

// By its name in either case. Throws InputError at `at`, with the known names, where there is none.
const GroupPreset& find_preset(const QuantizationSection& at, const std::string& name);

}  // namespace memwall
