#include "huggingface/quantization_presets.h"

#include <fmt/format.h>

#include <vector>

namespace memwall {
namespace {

const std::vector<GroupPreset>& presets() {
  static const GroupWeights int8{.bits = 8, .integers = true, .strategy = "channel"};
  static const GroupWeights int4{.bits = 4, .integers = true, .strategy = "group", .group = 128};
  static const GroupWeights fp4{.bits = 4, .integers = false, .strategy = "group", .group = 16};
  static const GroupWeights mxfp4{.bits = 4, .integers = false, .strategy = "group", .group = 32};
  static const GroupWeights mxfp8{.bits = 8, .integers = false, .strategy = "group", .group = 32};
  static const GroupWeights fp8_channel{.bits = 8, .integers = false, .strategy = "channel"};
  static const std::vector<GroupPreset> all = {
      {"unquantized", false},
      {"w8a16", true, false, int8},
      {"w4a16", true, false, int4},
      {"w4a16_asym",
       true,
       false,
       {.bits = 4, .integers = true, .strategy = "group", .group = 128, .symmetric = false}},
      {"w8a8", true, true, int8},
      {"int8", true, true, int8},
      {"w4a8", true, true, int4},
      {"w4afp8", true, true, int4},
      {"fp8", true, true, {.bits = 8, .integers = false, .strategy = "tensor"}},
      {"fp8_dynamic", true, true, fp8_channel},
      {"fp8_block",
       true,
       true,
       {.bits = 8, .integers = false, .strategy = "block", .block_rows = 128, .block_columns = 128}},
      {"nvfp4a16", true, false, fp4},
      {"nvfp4", true, true, fp4},
      {"mxfp4a16", true, false, mxfp4},
      {"mxfp4", true, true, mxfp4},
      {"mxfp8a16", true, false, mxfp8},
      {"mxfp8", true, true, mxfp8},
  };
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
  at.fail(fmt::format("a list of targets needs a preset's name, and '{}' is none; {} are",
                      json::printable(name), known));
}

}  // namespace memwall
