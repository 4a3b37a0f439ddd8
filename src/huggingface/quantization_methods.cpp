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

// GPTQModel's "dynamic": regular expressions, "-:" for what stays, "+:" or nothing for other settings.
void gptq_dynamic(const Section& section, std::int64_t bits, std::int64_t group, std::int64_t column_bytes,
                  Scheme& scheme) {
  const std::optional<Section> dynamic = section.section("dynamic");
  if (!dynamic) return;
  for (std::size_t i = dynamic->value().keys.size(); i-- > 0;) {  // the first that matches counts
    std::string_view pattern = dynamic->value().keys[i];
    const Section own(section.file(), dynamic->value().items[i]);
    const bool keeps = pattern.substr(0, 2) == "-:";
    if (keeps || pattern.substr(0, 2) == "+:") pattern.remove_prefix(2);
    QuantizationRule rule{.roles = kEveryLayer | kHead, .format = std::nullopt, .modules = ModuleList()};
    if (!keeps) {
      StoredAs format = int_format(section, own.integer_or("bits", bits), own.integer_or("group_size", group),
                                   ZeroPoints::packed);
      format.column_bytes = own.find("desc_act") == nullptr  ? column_bytes
                            : own.flag_or("desc_act", false) ? 4
                                                             : 0;
      rule.format = format;
    }
    section.add_regex(own.value(), pattern, *rule.modules);
    scheme.rules.push_back(std::move(rule));
  }
}

// The packings of a file that are counted alike; others are doubted.
void check_packing(const Section& section, std::initializer_list<const char*> keys, Scheme& scheme) {
  for (const char* key : keys) {
    const std::string format = section.word_or(key, "gptq");
    bool known = format.find("gptq") != std::string::npos;
    for (const char* name : {"marlin", "gemm", "gemv", "gemv_fast", "exllama", "ipex", "llm_awq"})
      known = known || format == name;
    if (!known) {
      scheme.doubts.push_back(fmt::format("its {} '{}' is not known and counted as gptq's and awq's are", key,
                                          json::printable(format)));
    }
  }
}

// AutoGPTQ's and GPTQModel's QuantLinear: qweight, qzeros whatever `sym` says, f16 scales. g_idx, 4 bytes an
// input, is read with desc_act only, and counted there; Marlin's own files have no zero points.
Scheme gptq(const Section& section, const QuantizedModel& /*model*/) {
  const std::int64_t bits = section.integer_or("bits", 4);
  const std::int64_t group = section.integer_or("group_size", 128);
  const bool marlin =
      section.flag_or("is_marlin_format", false) || section.word_or("checkpoint_format", "gptq") == "marlin";
  StoredAs format = int_format(section, bits, group, marlin ? ZeroPoints::none : ZeroPoints::packed);
  if (section.flag_or("desc_act", false) && !marlin) format.column_bytes = 4;
  Scheme scheme;
  check_packing(section, {"checkpoint_format", "format"}, scheme);
  ModuleList only;
  if (const json::Value* inside = section.find("modules_in_block_to_quantize")) {
    if (inside->kind != json::Kind::array)
      section.fail(*inside, "modules_in_block_to_quantize must be a list");
    for (const json::Value& item : inside->items) {
      const bool nested = item.kind == json::Kind::array;
      for (const json::Value& name : nested ? item.items : std::vector<json::Value>{item}) {
        section.add_module(name, json::as_text(section.file(), name, "a module's name"), only);
      }
    }
  }
  if (only.empty()) {
    add_every_layer(scheme, format);
  } else {
    scheme.rules.push_back({.roles = kEveryLayer, .format = format, .modules = std::move(only)});
  }
  if (section.flag_or("lm_head", false)) {
    scheme.rules.push_back({.roles = kHead, .format = format, .modules = std::nullopt});
  }
  gptq_dynamic(section, bits, group, format.column_bytes, scheme);
  keep_listed(section, scheme);
  return scheme;
}

// AutoAWQ's WQLinear: qweight, qzeros, f16 scales. Its exclude_layers_to_not_quantize leaves out whatever
// name holds a listed text. The forms for matrix-vector kernels pad qzeros and scales; they are counted
// unpadded.
Scheme awq(const Section& section, const QuantizedModel& /*model*/) {
  const std::int64_t bits = section.integer_or("bits", section.integer_or("w_bit", 4));
  const std::int64_t group = section.integer_or("group_size", section.integer_or("q_group_size", 128));
  const bool zero = section.flag_or("zero_point", true);
  Scheme scheme;
  check_packing(section, {"version", "checkpoint_format", "format"}, scheme);
  add_every_layer(scheme, int_format(section, bits, group, zero ? ZeroPoints::packed : ZeroPoints::none));
  ModuleList kept;
  if (const json::Value* listed = section.find("modules_to_not_convert")) {
    if (listed->kind != json::Kind::array)
      section.fail(*listed, "modules_to_not_convert must be a list of names");
    for (const json::Value& item : listed->items) {
      section.add_part(item, json::as_text(section.file(), item, "a module's name"), kept);
    }
  }
  if (!kept.empty())
    scheme.rules.push_back({.roles = kAll, .format = std::nullopt, .modules = std::move(kept)});
  keep_modules(section, {"ignore", "ignored_layers", "skip_modules"}, scheme);
  return scheme;
}

// AutoRound packs as GPTQ and AWQ do unless its data type is another; "extra_config" makes exceptions.
StoredAs auto_round_format(const Section& section, const Section& outer) {
  const std::string type = section.word_or("data_type", outer.word_or("data_type", "int"));
  const std::int64_t bits = section.integer_or("bits", outer.integer_or("bits", 4));
  const std::int64_t group = section.integer_or("group_size", outer.integer_or("group_size", 128));
  if (type.rfind("mx_fp", 0) == 0) return bits == 8 ? kMxfp8 : kMxfp4;
  if (type.rfind("nv_fp", 0) == 0) return kNvfp4;
  if (type.rfind("fp8", 0) == 0 || (type.rfind("fp", 0) == 0 && bits == 8)) {
    return group == 0 ? kF8 : kF8Channel;  // a tensor, or a row
  }
  if (type.rfind("int", 0) != 0 || type.rfind("int_asym_dq", 0) == 0 || type.rfind("int_sym_dq", 0) == 0) {
    section.fail(fmt::format("data_type '{}' is not supported", json::printable(type)));
  }
  return int_format(section, bits, group, ZeroPoints::packed);
}

std::optional<StoredAs> auto_round_exception(const Section& own, const Section& outer) {
  const std::string type = own.word_or("data_type", outer.word_or("data_type", "int"));
  if (own.integer_or("bits", outer.integer_or("bits", 4)) >= 16 || type == "float") return std::nullopt;
  return auto_round_format(own, outer);
}

Scheme auto_round(const Section& section, const QuantizedModel& /*model*/) {
  for (const char* key : {"packing_format", "zero_point", "lm_head", "provider"}) section.find(key);
  Scheme scheme = of_one_format(section, auto_round_format(section, section));
  if (const std::optional<Section> extra = section.section("extra_config")) {
    add_exceptions(*extra, extra->value(), true, auto_round_exception, section, scheme);
  }
  if (section.flag_or("quant_lm_head", false)) {
    scheme.rules.insert(
        scheme.rules.begin(),
        {.roles = kHead, .format = auto_round_format(section, section), .modules = std::nullopt});
  }
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

struct Known {
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
    Known{"fp8", fp8},
    Known{"fbgemm_fp8", fbgemm_fp8},
    Known{"w8a8_fp8", fbgemm_fp8},
    Known{"w8a8_int8", w8a8_int8},
    Known{"mxfp4", mxfp4},
    Known{"gptq", gptq},
    Known{"gptq_marlin", gptq},
    Known{"awq", awq},
    Known{"awq_marlin", awq},
    Known{"auto_round", auto_round},
    Known{"intel/auto_round", auto_round},
    Known{"bitsandbytes", bitsandbytes},
    Known{"mlx", read_mlx},
    Known{"hqq", read_hqq},
    Known{"eetq", eetq},
    Known{"quanto", read_quanto},
    Known{"torchao", read_torchao},
    Known{"bitnet", read_bitnet},
    Known{"compressed_tensors", read_compressed_tensors},
    Known{"modelopt", read_modelopt},
    Known{"modelopt_fp4", read_modelopt},
    Known{"modelopt_mixed", read_modelopt},
    Known{"quark", read_quark},
    Known{"aqlm", read_aqlm},
    Known{"vptq", read_vptq},
    Known{"higgs", read_higgs},
    Known{"spqr", read_spqr},
    Known{"sinq", read_sinq},
    Known{"fp_quant", read_fp_quant},
    Known{"fouroversix", read_four_over_six},
    Known{"gemma", read_gemma},
    Known{"metal", read_metal},
    Known{"exl2", read_exl},
    Known{"exl3", read_exl},
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
  for (const Known& known : kMethods) {
    if (method == known.name) return known.read(section, model);
  }
  std::string names;
  for (const Known& known : kMethods) {
    if (std::string_view(known.name).find("_marlin") == std::string_view::npos) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    }
  }
  const std::string what = method.empty()
                               ? "no quant_method is stated"
                               : fmt::format("quant_method '{}' is not supported", json::printable(method));
  section.fail(fmt::format("{}; supported are {}", what, names));
}

}  // namespace memwall
