#include "huggingface/quantization_presets.h"

#include <fmt/format.h>

#include <vector>

namespace memwall {
namespace {

GroupWeights integers(std::int64_t bits, const char* strategy, std::int64_t group, bool symmetric = true) {
  return {.bits = bits, .integers = true, .strategy = strategy, .group = group, .symmetric = symmetric};
}

GroupWeights floats(std::int64_t bits, const char* strategy, std::int64_t group = 0) {
  return {.bits = bits, .integers = false, .strategy = strategy, .group = group};
}

std::vector<GroupPreset> all_presets() {
  GroupWeights blocks = floats(8, "block");
  blocks.block_rows = 128;
  blocks.block_columns = 128;
  std::vector<GroupPreset> all = {
      {"unquantized", false, false, {}},
      {"w4a16_asym", true, false, integers(4, "group", 128, false)},
      {"w8a8", true, true, integers(8, "channel", 0)},
      {"int8", true, true, integers(8, "channel", 0)},
      {"w4afp8", true, true, integers(4, "group", 128)},
      {"fp8", true, true, floats(8, "tensor")},
      {"fp8_dynamic", true, true, floats(8, "channel")},
      {"fp8_block", true, true, blocks},
      {"nvfp4a16", true, false, floats(4, "group", 16)},
      {"nvfp4", true, true, floats(4, "group", 16)},
      {"mxfp4a16", true, false, floats(4, "group", 32)},
      {"mxfp4", true, true, floats(4, "group", 32)},
      {"mxfp4xfp8", true, true, floats(4, "group", 32)},
      {"mxfp6a16", true, false, floats(6, "group", 32)},
      {"mxfp6a8", true, true, floats(6, "group", 32)},
      {"mxfp8a16", true, false, floats(8, "group", 32)},
      {"mxfp8", true, true, floats(8, "group", 32)},
  };
  // _int_wnam: groups of 128 whatever the bits. W8A8 is of rows, above.
  for (std::int64_t bits = 2; bits <= 8; ++bits) {
    for (const std::int64_t activations : {4, 8, 16}) {
      if (bits > activations || (bits == 8 && activations == 8)) continue;
      all.push_back(
          {fmt::format("w{}a{}", bits, activations), true, activations < 16, integers(bits, "group", 128)});
    }
  }
  return all;
}

const std::vector<GroupPreset>& presets() {
  static const std::vector<GroupPreset> all = all_presets();
  return all;
}

}  // namespace

const GroupPreset& find_preset(const QuantizationSection& at, const std::string& name) {
  std::string lower = name;
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  std::string known;
  for (const GroupPreset& one : presets()) {
    if (one.name == lower) return one;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
  }
  at.fail(
      fmt::format("a list of targets needs a preset's name, and '{}' is none; {} are", excerpt(name), known));
}

}  // namespace memwall
