// NVIDIA's ModelOpt and AMD's Quark: algorithms by module.
#include <fmt/format.h>

#include <algorithm>

#include "huggingface/quantization_scheme.h"

namespace memwall {
namespace {

using Section = QuantizationSection;
using Scheme = QuantizationScheme;

constexpr std::size_t kMostModules = 100;
constexpr Format kF8Blocks{FormatKind::f8_e4m3_b128, 0, false};

// With AWQ's pre_quant_scale, 16 bits an input.
StoredAs with_input_scale(StoredAs as) {
  as.column_bytes = 2;
  return as;
}

// ModelOpt's quant_algo (modelopt/torch/export/quant_utils.py); nothing where the name is not known.
std::optional<StoredAs> algorithm_format(const Section& section, const std::string& algorithm) {
  const auto any_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), algorithm) != names.end();
  };
  if (any_of({"fp8"})) return kF8;
  if (any_of({"fp8_per_channel_per_token", "fp8_pc_pt", "fp8_per_channel_per_token_rcp"})) return kF8Channel;
  if (any_of({"fp8_pb_wo", "fp8_pb_real", "fp8_pb", "fp8_block_scales", "fp8_2d_blockwise_weight_only"}))
    return kF8Blocks;
  if (any_of({"nvfp4", "w4a16_nvfp4", "w4a8_nvfp4_fp8"})) return kNvfp4;
  if (any_of({"nvfp4_awq"})) return with_input_scale(kNvfp4);
  if (any_of({"mxfp4", "w4a8_mxfp4_fp8", "w4a16_mxfp4", "w4a8_mxfp4_mxfp8"})) return kMxfp4;
  if (any_of({"mxfp8"})) return kMxfp8;
  if (any_of({"int4_awq", "w4a16_awq", "w4a8_awq", "w4a16"})) {
    const bool zero = section.flag_or("has_zero_point", false);
    const std::int64_t group = section.integer_or("group_size", section.integer_or("awq_block_size", 128));
    const Format format = int_format(section, 4, group, zero ? ZeroPoints::packed : ZeroPoints::none);
    return algorithm == "w4a16" ? StoredAs(format) : with_input_scale(format);
  }
  if (any_of({"int8_sq", "w8a8_sq_per_channel"})) return with_input_scale(kInt8Channel);
  if (any_of({"w8a16", "int8", "int8_wo", "int8_weight_only"})) return kInt8Channel;
  return std::nullopt;
}

StoredAs known_algorithm(const Section& section, const std::string& algorithm) {
  if (const std::optional<StoredAs> format = algorithm_format(section, algorithm)) return *format;
  section.fail(
      fmt::format("quant_algo '{}' is not supported; FP8, NVFP4, MXFP4, MXFP8, W4A16_AWQ, W4A8_AWQ, "
                  "INT8_SQ and their kin are",
                  excerpt(algorithm)));
}

// "quantized_layers": an algorithm for each module. Routers and the head are quantised where they are named.
void add_modules(const Section& layers, Scheme& scheme) {
  std::vector<std::pair<StoredAs, ModuleList>> lists;
  for (std::size_t i = 0; i < layers.value().keys.size(); ++i) {
    const Section own(layers.file(), layers.value().items[i]);
    const std::string algorithm = own.word_or("quant_algo", "");
    if (algorithm == "none") continue;
    const StoredAs format = known_algorithm(own, algorithm);
    auto at = std::find_if(lists.begin(), lists.end(), [&](const auto& l) { return l.first == format; });
    if (at == lists.end()) at = lists.insert(at, {format, ModuleList()});
    layers.add_module(own.value(), layers.value().keys[i], at->second);
  }
  for (auto& [format, list] : lists) {
    scheme.rules.push_back({.roles = kAll, .format = format, .modules = std::move(list)});
  }
}

// Quark's tensor specification: dtype, qscheme, group_size.
StoredAs quark_spec(const Section& spec) {
  const std::string type = spec.word_or("dtype", "");
  const std::string scheme = spec.word_or("qscheme", "per_tensor");
  const std::int64_t group = scheme == "per_group" ? spec.integer_or("group_size", 128) : -1;
  const bool f8 = type.rfind("fp8", 0) == 0;
  if (f8 && scheme == "per_tensor") return kF8;
  if (f8 && scheme == "per_channel") return kF8Channel;
  if (f8 && scheme == "per_block") {
    constexpr Range kSides{1, 1 << 20};
    const json::Value* block = spec.find("block_size");
    if (block == nullptr || block->items.size() != 2) return kF8Blocks;
    const std::int64_t rows = json::as_integer(spec.file(), block->items[0], "block_size", kSides);
    const std::int64_t columns = json::as_integer(spec.file(), block->items[1], "block_size", kSides);
    return stored_in_units(kF8Blocks, 1, 1, 4, rows, columns);
  }
  if (f8 && group == 32) return kMxfp8;
  if (f8 && group > 0) return stored_in_units(kF8Channel, 1, 1, 4, 1, group);
  if (type == "fp4" && group == 32) return kMxfp4;
  if (type == "fp4" && group == 16) return kNvfp4;
  if (type.rfind("fp6", 0) == 0 && group == 32)  // MXFP6: four values in three bytes
    return stored_in_units({FormatKind::int6_group, 32, false}, 3, 4, 1, 1, 32);
  if (type == "int8" && scheme == "per_tensor") return stored_in_units(kInt8Channel, 1, 1, 4, 0, 0);
  if ((type == "int4" || type == "int8" || type == "int2" || type == "int3") && scheme != "per_tensor") {
    return int_format(spec, type[3] - '0', group,
                      spec.flag_or("symmetric", true) ? ZeroPoints::none : ZeroPoints::packed);
  }
  if ((type == "uint4" || type == "uint8") && scheme != "per_tensor")
    return int_format(spec, type[4] - '0', group, ZeroPoints::packed);
  spec.fail(
      fmt::format("quark's dtype '{}' with qscheme '{}' is not supported", excerpt(type), excerpt(scheme)));
}

// A list: weights that are quantised twice. The narrowest is what is stored; the other's scales are not
// counted.
std::optional<StoredAs> quark_format(const Section& section, Scheme& scheme) {
  const json::Value* weight = section.find("weight");
  if (weight == nullptr) return std::nullopt;
  if (weight->kind != json::Kind::array) {
    if (weight->kind != json::Kind::object) section.fail(*weight, "quark's weight must be an object");
    return quark_spec(Section(section.file(), *weight));
  }
  std::optional<StoredAs> narrowest;
  for (const json::Value& item : weight->items) {
    const StoredAs one = quark_spec(Section(section.file(), item));
    if (!narrowest || bits_per_weight(one.format) < bits_per_weight(narrowest->format)) narrowest = one;
  }
  if (weight->items.size() > 1)
    scheme.doubts.emplace_back("its weights are quantised twice: the scales of one step are not counted");
  return narrowest;
}

}  // namespace

void add_modelopt_rules(const QuantizationSection& section, const QuantizedModel& model,
                        QuantizationScheme& scheme) {
  const std::string algorithm = section.word_or("quant_algo", "");
  const bool mixed = algorithm == "mixed_precision" || algorithm.empty();
  const std::string experts = section.word_or("moe_quant_algo", "");
  for (const char* key : {"pre_quant_scale", "has_zero_point"})
    section.find(key);  // follow from the algorithm
  if (const std::optional<Section> layers = section.section("quantized_layers")) {
    section.find("config_groups");  // says the same by format
    section.find("group_size");
    add_modules(*layers, scheme);
  } else if (!experts.empty()) {
    section.find("config_groups");
    scheme.rules.push_back(
        {.roles = kExperts, .format = known_algorithm(section, experts), .modules = std::nullopt});
  } else if (mixed) {
    QuantizedModel wide = model;  // scales are f32, whatever the model's type
    wide.dtype = {FormatKind::f32, 0, false};
    add_groups(section, wide, scheme);
  } else if (algorithm != "none") {
    section.find("config_groups");
    section.find("group_size");
    scheme.rules.push_back(
        {.roles = kEveryLayer, .format = known_algorithm(section, algorithm), .modules = std::nullopt});
  }
}

QuantizationScheme read_modelopt(const QuantizationSection& section, const QuantizedModel& model) {
  Scheme scheme;
  add_modelopt_rules(section, model, scheme);
  if (scheme.rules.empty() && section.word_or("quant_algo", "") != "none")
    section.fail("ModelOpt needs quant_algo, quantized_layers or config_groups");
  keep_modules(section, {"ignore", "exclude_modules"}, scheme);
  const char* kv = section.find("kv_cache_scheme") != nullptr ? "kv_cache_scheme" : "kv_cache_quant_algo";
  section.find("kv_cache_quant_algo");
  scheme.kv = kv_format(section, kv, scheme);
  return scheme;
}

QuantizationScheme read_quark(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  Scheme scheme;
  const std::optional<Section> global = section.section("global_quant_config");
  if (!global) section.fail("quark needs global_quant_config");
  if (const std::optional<StoredAs> format = quark_format(*global, scheme)) add_every_layer(scheme, *format);
  if (const std::optional<Section> types = section.section("layer_type_quant_config")) {
    for (std::size_t i = 0; i < types->value().items.size() && i < kMostModules; ++i) {
      const Section own(section.file(), types->value().items[i]);
      const std::optional<StoredAs> format = quark_format(own, scheme);
      const std::string& type = types->value().keys[i];
      if (type.find("Linear") != std::string::npos && format) {
        add_every_layer(scheme, *format);
      } else if (format) {
        scheme.doubts.push_back(
            fmt::format("its layer_type_quant_config names '{}', which is not known", excerpt(type)));
      }
    }
  }
  if (const std::optional<Section> layers = section.section("layer_quant_config")) {
    if (layers->value().items.size() > kMostModules) layers->fail("more than 100 layer_quant_config entries");
    for (std::size_t i = 0; i < layers->value().items.size(); ++i) {
      const Section own(section.file(), layers->value().items[i]);
      QuantizationRule rule{
          .roles = kEveryLayer | kHead, .format = quark_format(own, scheme), .modules = ModuleList()};
      section.add_module(own.value(), layers->value().keys[i], *rule.modules);
      scheme.rules.push_back(std::move(rule));
    }
  }
  keep_modules(section, {"exclude"}, scheme);
  const std::optional<Section> output = global->section("output_tensors");
  const std::optional<Section> cache = section.section("kv_cache_quant_config");
  bool f8 = section.find("kv_cache_group") != nullptr && output &&
            output->word_or("dtype", "").rfind("fp8", 0) == 0;
  for (std::size_t i = 0; cache && i < cache->value().items.size(); ++i) {
    const Section own(section.file(), cache->value().items[i]);
    const std::optional<Section> values = own.section("output_tensors");
    f8 = f8 || (values && values->word_or("dtype", "").rfind("fp8", 0) == 0);
  }
  if (f8) scheme.kv = KvFormat::f8_e4m3;
  return scheme;
}

}  // namespace memwall
