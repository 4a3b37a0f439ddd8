#include "checkpoint/ggml_types.h"

#include <algorithm>
#include <array>

#include "input/suggest.h"

namespace memwall {
namespace {

// Numbers: enum ggml_type in ggml/include/ggml.h. Sizes: the block structs of ggml/src/ggml-common.h, which
// GGML_QUANT_SIZES in gguf-py/gguf/constants.py repeats. All of github.com/ggml-org/llama.cpp; Q2_0, its
// newest (pull request 24448, June 2026), holds 64 weights a block, though a fork wrote 128 under its number.
constexpr std::array kTypes = {
    GgmlType{0, "F32", 1, 4},
    GgmlType{1, "F16", 1, 2},
    GgmlType{2, "Q4_0", 32, 18},
    GgmlType{3, "Q4_1", 32, 20},
    GgmlType{6, "Q5_0", 32, 22},
    GgmlType{7, "Q5_1", 32, 24},
    GgmlType{8, "Q8_0", 32, 34},
    GgmlType{9, "Q8_1", 32, 36},
    GgmlType{10, "Q2_K", 256, 84},
    GgmlType{11, "Q3_K", 256, 110},
    GgmlType{12, "Q4_K", 256, 144},
    GgmlType{13, "Q5_K", 256, 176},
    GgmlType{14, "Q6_K", 256, 210},
    GgmlType{15, "Q8_K", 256, 292},
    GgmlType{16, "IQ2_XXS", 256, 66},
    GgmlType{17, "IQ2_XS", 256, 74},
    GgmlType{18, "IQ3_XXS", 256, 98},
    GgmlType{19, "IQ1_S", 256, 50},
    GgmlType{20, "IQ4_NL", 32, 18},
    GgmlType{21, "IQ3_S", 256, 110},
    GgmlType{22, "IQ2_S", 256, 82},
    GgmlType{23, "IQ4_XS", 256, 136},
    GgmlType{24, "I8", 1, 1},
    GgmlType{25, "I16", 1, 2},
    GgmlType{26, "I32", 1, 4},
    GgmlType{27, "I64", 1, 8},
    GgmlType{28, "F64", 1, 8},
    GgmlType{29, "IQ1_M", 256, 56},
    GgmlType{30, "BF16", 1, 2},
    GgmlType{34, "TQ1_0", 256, 54},
    GgmlType{35, "TQ2_0", 256, 66},
    GgmlType{39, "MXFP4", 32, 17},
    GgmlType{40, "NVFP4", 64, 36},
    GgmlType{41, "Q1_0", 128, 18},
    GgmlType{42, "Q2_0", 64, 18},
    // ik_llama.cpp's, by ggml.h and ggml-common.h of github.com/ikawrakow/ik_llama.cpp; some begin each row
    // with its scale (row_meta_size in ggml.c).
    GgmlType{133, "Q6_0", 32, 26, 0, true},
    GgmlType{134, "IQ1_BN", 64, 13, 2, true},
    GgmlType{135, "IQ2_BN", 64, 16, 4, true},
    GgmlType{137, "IQ2_K", 256, 76, 0, true},
    GgmlType{138, "IQ3_K", 256, 110, 0, true},
    GgmlType{139, "IQ4_K", 256, 144, 0, true},
    GgmlType{140, "IQ5_K", 256, 176, 0, true},
    GgmlType{141, "IQ6_K", 256, 212, 0, true},
    GgmlType{144, "IQ4_KS", 256, 136, 4, true},
    GgmlType{145, "IQ2_KS", 256, 70, 2, true},
    GgmlType{146, "IQ4_KSS", 256, 128, 4, true},
    GgmlType{151, "Q8_KV", 32, 32, 8, true},
    GgmlType{152, "IQ5_KS", 256, 168, 4, true},
    GgmlType{153, "IQ2_KT", 256, 68, 4, true},
    GgmlType{154, "IQ3_KT", 256, 100, 4, true},
    GgmlType{155, "IQ4_KT", 256, 128, 4, true},
    GgmlType{156, "IQ3_KS", 256, 102, 2, true},
    GgmlType{157, "IQ2_KL", 256, 86, 2, true},
    GgmlType{158, "IQ1_KT", 256, 56, 4, true},
    GgmlType{202, "Q4_0_R8", 32, 18, 0, true},
    GgmlType{206, "Q5_0_R4", 32, 22, 0, true},
    GgmlType{208, "Q8_0_R8", 32, 34, 0, true},
    GgmlType{210, "Q2_K_R4", 256, 84, 0, true},
    GgmlType{211, "Q3_K_R4", 256, 110, 0, true},
    GgmlType{212, "Q4_K_R4", 256, 144, 0, true},
    GgmlType{213, "Q5_K_R4", 256, 176, 0, true},
    GgmlType{214, "Q6_K_R4", 256, 210, 0, true},
    GgmlType{216, "IQ2_XXS_R4", 256, 66, 0, true},
    GgmlType{217, "IQ2_XS_R4", 256, 74, 0, true},
    GgmlType{218, "IQ3_XXS_R4", 256, 98, 0, true},
    GgmlType{219, "IQ1_S_R4", 32, 6, 2, true},
    GgmlType{220, "IQ4_NL_R4", 32, 18, 0, true},
    GgmlType{221, "IQ3_S_R4", 256, 110, 0, true},
    GgmlType{222, "IQ2_S_R4", 256, 82, 0, true},
    GgmlType{223, "IQ4_XS_R8", 256, 136, 0, true},
    GgmlType{229, "IQ1_M_R4", 32, 7, 2, true},
    GgmlType{230, "BF16_R16", 1, 2, 0, true},
    GgmlType{233, "Q6_0_R4", 32, 26, 0, true},
    GgmlType{335, "IQ2_BN_R4", 64, 16, 4, true},
    GgmlType{337, "IQ2_K_R4", 256, 76, 0, true},
    GgmlType{338, "IQ3_K_R4", 256, 110, 0, true},
    GgmlType{339, "IQ4_K_R4", 256, 144, 0, true},
    GgmlType{340, "IQ5_K_R4", 256, 176, 0, true},
    GgmlType{344, "IQ4_KS_R4", 256, 136, 4, true},
    GgmlType{352, "IQ5_KS_R4", 256, 168, 4, true},
    GgmlType{399, "Q8_K_R8", 256, 258, 0, true},
};

struct RemovedType {
  std::uint32_t id;
  std::string_view name;
};

constexpr std::array kRemoved = {
    RemovedType{4, "Q4_2"},        RemovedType{5, "Q4_3"},        RemovedType{31, "Q4_0_4_4"},
    RemovedType{32, "Q4_0_4_8"},   RemovedType{33, "Q4_0_8_8"},   RemovedType{36, "IQ4_NL_4_4"},
    RemovedType{37, "IQ4_NL_4_8"}, RemovedType{38, "IQ4_NL_8_8"},
};

}  // namespace

const GgmlType* find_ggml_type(std::uint32_t id) {
  const auto* found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& type) { return type.id == id; });
  return found == kTypes.end() ? nullptr : found;
}

const GgmlType* find_ggml_type(std::string_view name) {
  const auto* found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& type) { return type.name == name; });
  return found == kTypes.end() ? nullptr : found;
}

std::string_view removed_ggml_type(std::uint32_t id) {
  const auto* found =
      std::find_if(kRemoved.begin(), kRemoved.end(), [&](const auto& type) { return type.id == id; });
  return found == kRemoved.end() ? std::string_view{} : found->name;
}

bool may_be_ggml_type(std::uint32_t id) { return id < 1024; }

std::optional<Format> weight_format(const GgmlType& type) {
  std::string_view name = type.name;
  if (type.row_bytes > 0) return std::nullopt;
  for (const std::string_view repacked : {"_R4", "_R8", "_R16"}) {
    if (type.fork && name.ends_with(repacked)) name.remove_suffix(repacked.size());
  }
  const std::optional<Format> format = find_format(lower_case(name));
  if (!format || storage_bytes(*format, 1, type.block) != type.bytes) return std::nullopt;
  return format;
}

}  // namespace memwall
