// compressed-tensors, NVIDIA's ModelOpt and AMD's Quark: their configurations name groups of modules and say
// how each is stored.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "huggingface/quantization_scheme.h"

namespace memwall {
namespace {

using Section = QuantizationSection;
using Scheme = QuantizationScheme;

constexpr std::size_t kMostGroups = 100;

constexpr Format kF8Blocks{FormatKind::f8_e4m3_b128, 0, false};

bool is_128(const json::Value& v) { return v.kind == json::Kind::number && v.text == "128"; }

// compressed-tensors' QuantizationArgs: num_bits, type, strategy, group_size, symmetric. ModelOpt leaves the
// strategy out.
Format weights_format(const Section& weights) {
  const std::int64_t bits = weights.integer_or("num_bits", 8);
  const std::string type = weights.word_or("type", "int");
  const std::int64_t group = weights.integer_or("group_size", 0);
  std::string strategy = weights.word_or("strategy", group > 0 ? "group" : group < 0 ? "channel" : "tensor");
  if (strategy == "tensor_group") strategy = "group";
  const bool grouped = strategy == "group";
  if (type == "float" && bits == 4 && grouped && group == 16) return kNvfp4;
  if (type == "float" && bits == 4 && grouped && group == 32) return kMxfp4;
  if (type == "float" && bits == 8 && grouped && group == 32) return kMxfp8;
  if (type == "float" && bits == 8 && strategy == "tensor") return kF8;
  if (type == "float" && bits == 8 && strategy == "channel") return kF8Channel;
  if (type == "float" && bits == 8 && strategy == "block") {
    const json::Value* block = weights.find("block_structure");
    if (block != nullptr && block->items.size() == 2 && is_128(block->items[0]) && is_128(block->items[1])) {
      return kF8Blocks;
    }
  }
  if (type == "int" && (grouped || strategy == "channel")) {
    const bool symmetric = weights.flag_or("symmetric", true);
    return int_format(weights, bits, grouped ? group : -1, symmetric ? ZeroPoints::none : ZeroPoints::packed);
  }
  weights.fail(fmt::format("weights of type '{}' with {} bits and strategy '{}'{} are not supported",
                           json::printable(type), bits, json::printable(strategy),
                           group > 0 ? fmt::format(" in groups of {}", group) : ""));
}

// Of `num_bits` and `type`, or of a name: "FP8".
std::optional<KvFormat> kv_format(const Section& section, const char* key, Scheme& scheme) {
  const json::Value* value = section.find(key);
  if (value == nullptr) return std::nullopt;
  std::string name;
  if (value->kind == json::Kind::object) {
    const Section scheme_of(section.file(), *value);
    name = fmt::format("{}{}", scheme_of.word_or("type", "float") == "int" ? "int" : "fp",
                       scheme_of.integer_or("num_bits", 8));
  } else {
    name = section.word_or(key, "");
  }
  if (name == "fp8") return KvFormat::f8_e4m3;
  if (name == "int8") return KvFormat::int8;
  if (name != "none" && !name.empty()) {
    scheme.warnings.push_back(fmt::format(
        "the configuration's KV cache format '{}' is not known and not applied", json::printable(name)));
  }
  return std::nullopt;
}

// Rules for config_groups: those that name classes ("Linear") first, so that names overrule them.
void add_groups(const Section& section, Scheme& scheme) {
  const std::optional<Section> groups = section.section("config_groups");
  if (!groups) return;
  if (groups->value().items.size() > kMostGroups) groups->fail("more than 100 config_groups");
  std::vector<QuantizationRule> by_name;
  for (const json::Value& item : groups->value().items) {
    const Section group(section.file(), item);
    const std::optional<Section> weights = group.section("weights");
    if (!weights) continue;  // activations alone
    const Format format = weights_format(*weights);
    const json::Value* targets = group.find("targets");
    bool every = targets == nullptr;
    ModuleList names;
    if (targets != nullptr && targets->kind != json::Kind::array)
      group.fail(*targets, "targets must be a list");
    for (std::size_t i = 0; targets != nullptr && i < targets->items.size(); ++i) {
      const std::string& target = json::as_text(section.file(), targets->items[i], "targets");
      if (target == "Linear" || target == "FusedMoE") {
        every = true;
      } else {
        group.add_module(targets->items[i], target, names);
      }
    }
    if (every) scheme.rules.push_back({.roles = kEveryLayer, .format = format, .modules = std::nullopt});
    if (!names.empty()) {
      by_name.push_back({.roles = kEveryLayer | kHead, .format = format, .modules = std::move(names)});
    }
  }
  std::move(by_name.begin(), by_name.end(), std::back_inserter(scheme.rules));
}

// ModelOpt's quant_algo (modelopt/torch/export/quant_utils.py); nothing where the name is not known.
std::optional<Format> algorithm_format(const Section& section, const std::string& algorithm) {
  const auto any_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), algorithm) != names.end();
  };
  if (any_of({"fp8"})) return kF8;
  if (any_of({"fp8_per_channel_per_token", "fp8_pc_pt", "fp8_per_channel_per_token_rcp"})) return kF8Channel;
  if (any_of({"fp8_pb_wo", "fp8_pb_real", "fp8_pb", "fp8_block_scales", "fp8_2d_blockwise_weight_only"}))
    return kF8Blocks;
  if (any_of({"nvfp4", "nvfp4_awq", "w4a16_nvfp4", "w4a8_nvfp4_fp8", "nvfp4_svdquant"})) return kNvfp4;
  if (any_of({"mxfp4", "w4a8_mxfp4_fp8", "w4a16_mxfp4", "w4a8_mxfp4_mxfp8"})) return kMxfp4;
  if (any_of({"mxfp8"})) return kMxfp8;
  if (any_of({"int4_awq", "w4a16_awq", "w4a8_awq", "w4a16"})) {
    const bool zero = section.flag_or("has_zero_point", false);
    return int_format(section, 4, section.integer_or("group_size", 128),
                      zero ? ZeroPoints::packed : ZeroPoints::none);
  }
  if (any_of({"int8_sq", "w8a8_sq_per_channel", "w8a16", "int8", "int8_weight_only"})) return kInt8Channel;
  return std::nullopt;
}

Format known_algorithm(const Section& section, const std::string& algorithm) {
  if (const std::optional<Format> format = algorithm_format(section, algorithm)) return *format;
  section.fail(
      fmt::format("quant_algo '{}' is not supported; FP8, NVFP4, MXFP4, MXFP8, W4A16_AWQ, W4A8_AWQ, "
                  "INT8_SQ and their kin are",
                  json::printable(algorithm)));
}

// "quantized_layers": an algorithm for each module. Routers and the head are quantised where they are named.
void add_modules(const Section& layers, Scheme& scheme) {
  std::vector<std::pair<Format, ModuleList>> lists;
  for (std::size_t i = 0; i < layers.value().keys.size(); ++i) {
    const Section own(layers.file(), layers.value().items[i]);
    const Format format = known_algorithm(own, own.word_or("quant_algo", ""));
    auto at = std::find_if(lists.begin(), lists.end(), [&](const auto& l) { return l.first == format; });
    if (at == lists.end()) at = lists.insert(at, {format, ModuleList()});
    layers.add_module(own.value(), layers.value().keys[i], at->second);
  }
  for (auto& [format, list] : lists) {
    scheme.rules.push_back({.roles = kAll, .format = format, .modules = std::move(list)});
  }
}

// Quark's tensor specification: dtype, qscheme, group_size.
Format quark_format(const Section& section) {
  const json::Value* weight = section.find("weight");
  // A list: scales that are quantised in their turn; the first is the weights'.
  if (weight != nullptr && weight->kind == json::Kind::array && !weight->items.empty())
    weight = &weight->items[0];
  if (weight == nullptr || weight->kind != json::Kind::object) section.fail("quark needs a 'weight'");
  const Section spec(section.file(), *weight);
  const std::string type = spec.word_or("dtype", "");
  const std::string scheme = spec.word_or("qscheme", "per_tensor");
  const std::int64_t group = scheme == "per_group" ? spec.integer_or("group_size", 128) : -1;
  const bool f8 = type.rfind("fp8", 0) == 0;
  if (f8 && scheme == "per_tensor") return kF8;
  if (f8 && scheme == "per_channel") return kF8Channel;
  if (f8 && group == 32) return kMxfp8;
  if (type == "fp4" && group == 32) return kMxfp4;
  if (type == "fp4" && group == 16) return kNvfp4;
  if ((type == "int4" || type == "int8") && scheme != "per_tensor") {
    return int_format(spec, type == "int4" ? 4 : 8, group,
                      spec.flag_or("symmetric", true) ? ZeroPoints::none : ZeroPoints::packed);
  }
  if (type == "uint4" && scheme != "per_tensor") return int_format(spec, 4, group, ZeroPoints::packed);
  spec.fail(fmt::format("quark's dtype '{}' with qscheme '{}' is not supported", json::printable(type),
                        json::printable(scheme)));
}

}  // namespace

QuantizationScheme read_compressed_tensors(const QuantizationSection& section) {
  if (const std::optional<Section> sparse = section.section("sparsity_config")) {
    const std::string format = sparse->word_or("format", "dense");
    if (format != "dense") {
      sparse->fail(fmt::format("sparse weights ('{}') are not supported", json::printable(format)));
    }
  }
  Scheme scheme;
  if (section.find("config_groups") == nullptr) section.fail("compressed-tensors needs config_groups");
  add_groups(section, scheme);
  keep_modules(section, {"ignore"}, scheme);
  scheme.kv = kv_format(section, "kv_cache_scheme", scheme);
  return scheme;
}

QuantizationScheme read_modelopt(const QuantizationSection& section) {
  Scheme scheme;
  const std::string algorithm = section.word_or("quant_algo", "");
  const bool mixed = algorithm == "mixed_precision";
  if (const std::optional<Section> layers = section.section("quantized_layers")) {
    add_modules(*layers, scheme);
  } else if (mixed || algorithm.empty()) {
    add_groups(section, scheme);
    if (scheme.rules.empty()) section.fail("ModelOpt needs quant_algo, quantized_layers or config_groups");
  } else if (algorithm != "none") {
    scheme.rules.push_back(
        {.roles = kEveryLayer, .format = known_algorithm(section, algorithm), .modules = std::nullopt});
  }
  keep_modules(section, {"ignore", "exclude_modules"}, scheme);
  const char* kv = section.find("kv_cache_scheme") != nullptr ? "kv_cache_scheme" : "kv_cache_quant_algo";
  scheme.kv = kv_format(section, kv, scheme);
  return scheme;
}

QuantizationScheme read_quark(const QuantizationSection& section) {
  Scheme scheme;
  const std::optional<Section> global = section.section("global_quant_config");
  if (!global) section.fail("quark needs global_quant_config");
  if (global->find("weight") != nullptr) {
    scheme.rules.push_back({.roles = kEveryLayer, .format = quark_format(*global), .modules = std::nullopt});
  }
  if (const std::optional<Section> layers = section.section("layer_quant_config")) {
    if (layers->value().items.size() > kMostGroups) layers->fail("more than 100 layer_quant_config entries");
    for (std::size_t i = 0; i < layers->value().items.size(); ++i) {
      const Section own(section.file(), layers->value().items[i]);
      if (own.find("weight") == nullptr) continue;
      QuantizationRule rule{
          .roles = kEveryLayer | kHead, .format = quark_format(own), .modules = ModuleList()};
      section.add_module(own.value(), layers->value().keys[i], *rule.modules);
      scheme.rules.push_back(std::move(rule));
    }
  }
  keep_modules(section, {"exclude"}, scheme);
  const std::optional<Section> output = global->section("output_tensors");
  if (section.find("kv_cache_group") != nullptr && output &&
      output->word_or("dtype", "").rfind("fp8", 0) == 0) {
    scheme.kv = KvFormat::f8_e4m3;
  }
  return scheme;
}

}  // namespace memwall
