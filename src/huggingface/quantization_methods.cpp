// The methods of transformers' quantization_config that one format describes, each by the code that writes
// its checkpoints. Beside what is counted, those hold a few values a tensor: activation scales, shapes,
// tables.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "huggingface/quantization_scheme.h"

namespace memwall {
namespace {

using Section = QuantizationSection;
using Scheme = QuantizationScheme;

// transformers' finegrained_fp8.py: an f32 weight_scale_inv a block. "ue8m0" says that the scales are powers
// of two: DeepSeek-V4 stores them in 8 bits, DeepSeek-V3.1 and V3.2 in f32 (deepseek-ai/DeepSeek-V3 issue 961
// prints some that no 8 bits hold).
StoredAs fp8_format(const Section& section, const QuantizedModel& model) {
  constexpr std::array<std::string_view, 9> kTypes = {"e4m3",     "e4m3fn",        "e4m3fnuz",
                                                      "fp8_e4m3", "float8_e4m3fn", "float8_e4m3fnuz",
                                                      "e5m2",     "fp8_e5m2",      "float8_e5m2"};
  section.known_word("fmt", "", kTypes);  // all a byte a weight
  const json::Value* block = section.find("weight_block_size");
  if (block == nullptr) return kF8;
  constexpr Range kSides{1, 1 << 20};
  if (block->kind != json::Kind::array || block->items.size() != 2) {
    section.fail(*block, "weight_block_size must be a list of two numbers");
  }
  const std::int64_t rows = json::as_integer(section.file(), block->items[0], "weight_block_size", kSides);
  const std::int64_t columns = json::as_integer(section.file(), block->items[1], "weight_block_size", kSides);
  const bool f32_scales = section.word_or("scale_fmt", "") != "ue8m0" || model.type == "deepseek_v3" ||
                          model.type == "deepseek_v32";
  const Format format{f32_scales ? FormatKind::f8_e4m3_b128 : FormatKind::f8_e4m3_b128_e8, 0, false};
  if (rows == 128 && columns == 128) return format;
  return stored_in_units(format, 1, 1, f32_scales ? 4 : 1, rows, columns);
}

Scheme fp8(const Section& section, const QuantizedModel& model) {
  const StoredAs format = fp8_format(section, model);
  Scheme scheme;
  add_every_layer(scheme, format);
  if (section.word_or("expert_dtype", model.expert_dtype) == "fp4") {
    scheme.rules.push_back({.roles = kExperts, .format = kMxfp4, .modules = std::nullopt});
  }
  // ModelOpt on top of an fp8 checkpoint: the modules that its lists leave out stay in fp8, and are not
  // widened (vllm-project/recipes issue 541: DeepSeek-V4's experts in NVFP4).
  const bool on_top = section.find("quantized_layers") != nullptr ||
                      section.find("moe_quant_algo") != nullptr || section.find("config_groups") != nullptr;
  if (on_top) {
    add_modelopt_rules(section, model, scheme);
    ModuleList kept;
    section.add_modules({"ignore", "exclude_modules"}, kept);
    const bool by_name =
        section.find("quantized_layers") != nullptr || section.find("moe_quant_algo") != nullptr;
    if (!by_name && !kept.empty())
      scheme.rules.push_back({.roles = kEveryLayer, .format = format, .modules = std::move(kept)});
    scheme.kv = kv_format(section, "kv_cache_quant_algo", scheme);
  } else if (section.find("kv_cache_scheme") != nullptr) {  // AutoFP8: "static"
    scheme.kv = KvFormat::f8_e4m3;
  }
  // DeepSeek's inference/model.py keeps these in 16 bits or more whatever the configuration lists.
  ModuleList kept;
  for (const char* name : {"indexer.weights_proj", "compressor", "indexer.kv_proj", "indexer.gate_proj"}) {
    kept.add(name);
  }
  scheme.rules.push_back({.roles = kAll, .format = std::nullopt, .modules = std::move(kept)});
  if (!on_top) keep_listed(section, scheme);
  return scheme;
}

// gpt-oss: the experts alone.
Scheme mxfp4(const Section& section, const QuantizedModel& /*model*/) {
  Scheme scheme;
  scheme.rules.push_back({.roles = kExperts, .format = kMxfp4, .modules = std::nullopt});
  keep_listed(section, scheme);
  return scheme;
}

// bitsandbytes' functional.py: an f32 absmax for 64 values, with double quantisation 8 bits and an f32 for
// 256 of those; int8 with an f32 a row. FP4 is stored as NF4 is.
Scheme bitsandbytes(const Section& section, const QuantizedModel& /*model*/) {
  if (section.flag_or("load_in_8bit", section.flag_or("_load_in_8bit", false))) {
    return of_transformers(section, kInt8Channel);
  }
  if (!section.flag_or("load_in_4bit", section.flag_or("_load_in_4bit", false))) {
    section.fail("bitsandbytes needs load_in_8bit or load_in_4bit");
  }
  constexpr std::array<std::string_view, 2> kTypes = {"nf4", "fp4"};
  section.known_word("bnb_4bit_quant_type", "fp4", kTypes);
  const bool twice = section.flag_or("bnb_4bit_use_double_quant", false);
  return of_transformers(section, Format{twice ? FormatKind::nf4_dq : FormatKind::nf4, 0, false});
}

// Files that AutoRound wrote as another method's.
bool is_auto_round(const Section& section) {
  return section.find("autoround_version") != nullptr || section.find("extra_config") != nullptr;
}

// vLLM's and SGLang's own: a scale a row.
Scheme w8a8_int8(const Section& section, const QuantizedModel& /*model*/) {
  return of_one_format(section, kInt8Channel);
}

using Method = Scheme (*)(const Section&, const QuantizedModel&);

struct NamedMethod {
  const char* name;
  Method read;
};

Scheme fbgemm_fp8(const Section& section, const QuantizedModel& /*model*/) {
  return of_one_format(section, kF8Channel);
}

// EetqLinear: 8-bit weights, an f16 scale a row.
Scheme eetq(const Section& section, const QuantizedModel& /*model*/) {
  section.word_or("weights", "int8");
  return of_transformers(section, stored_in_units(kInt8Channel, 1, 1, 2, 1, 0));
}

// By quant_method, '-' as '_'.
constexpr std::array kMethods = {
    NamedMethod{"fp8", fp8},
    NamedMethod{"fbgemm_fp8", fbgemm_fp8},
    NamedMethod{"w8a8_fp8", fbgemm_fp8},
    NamedMethod{"w8a8_int8", w8a8_int8},
    NamedMethod{"mxfp4", mxfp4},
    NamedMethod{"gptq", read_gptq},
    NamedMethod{"gptq_marlin", read_gptq},
    NamedMethod{"awq", read_awq},
    NamedMethod{"awq_marlin", read_awq},
    NamedMethod{"auto_round", read_auto_round},
    NamedMethod{"intel/auto_round", read_auto_round},
    NamedMethod{"bitsandbytes", bitsandbytes},
    NamedMethod{"mlx", read_mlx},
    NamedMethod{"hqq", read_hqq},
    NamedMethod{"eetq", eetq},
    NamedMethod{"quanto", read_quanto},
    NamedMethod{"torchao", read_torchao},
    NamedMethod{"bitnet", read_bitnet},
    NamedMethod{"compressed_tensors", read_compressed_tensors},
    NamedMethod{"modelopt", read_modelopt},
    NamedMethod{"modelopt_fp4", read_modelopt},
    NamedMethod{"modelopt_mixed", read_modelopt},
    NamedMethod{"quark", read_quark},
    NamedMethod{"aqlm", read_aqlm},
    NamedMethod{"vptq", read_vptq},
    NamedMethod{"higgs", read_higgs},
    NamedMethod{"spqr", read_spqr},
    NamedMethod{"sinq", read_sinq},
    NamedMethod{"fp_quant", read_fp_quant},
    NamedMethod{"fouroversix", read_four_over_six},
    NamedMethod{"gemma", read_gemma},
    NamedMethod{"metal", read_metal},
    NamedMethod{"exl2", read_exl},
    NamedMethod{"exl3", read_exl},
};

// Files beside a config.json, and some configs, leave the method to be told from the keys.
std::string method_of(const Section& section) {
  const std::string method = section.word_or("quant_method", "");
  if (!method.empty()) return method;
  const auto has = [&](std::string_view key) { return section.find(key) != nullptr; };
  if (has("quant_algo") || has("quantized_layers")) return "modelopt";
  if (has("config_groups")) return "compressed_tensors";
  if (has("load_in_4bit") || has("load_in_8bit")) return "bitsandbytes";
  if (has("desc_act") || has("damp_percent") || has("true_sequential")) return "gptq";
  if (has("zero_point") || has("w_bit") || has("q_group_size")) return "awq";
  if (has("weight_block_size")) return "fp8";
  return has("bits") && has("group_size") ? "mlx" : "";
}

}  // namespace

QuantizationScheme read_quantization(const QuantizationSection& section, const QuantizedModel& model) {
  std::string method = method_of(section);
  if ((method == "gptq" || method == "awq") && is_auto_round(section)) method = "auto_round";
  for (const NamedMethod& known : kMethods) {
    if (method == known.name) return known.read(section, model);
  }
  std::string names;
  for (const NamedMethod& known : kMethods) {
    if (std::string_view(known.name).find("_marlin") == std::string_view::npos) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    }
  }
  const std::string what = method.empty()
                               ? "no quant_method is stated"
                               : fmt::format("quant_method '{}' is not supported", excerpt(method));
  section.fail(fmt::format("{}; supported are {}", what, names));
}

}  // namespace memwall
