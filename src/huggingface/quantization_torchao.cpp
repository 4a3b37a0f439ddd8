// torchao, whose settings are its own classes as JSON (torchao/core/config.py), for all modules or by name.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "huggingface/quantization_scheme.h"

namespace memwall {
namespace {

using Section = QuantizationSection;
using Scheme = QuantizationScheme;

constexpr std::size_t kMostModules = 10'000;

// {"_type": "PerGroup", "_data": {"group_size": 32}}: weights a scale along a row; 0: a row, -1: the tensor.
// A list is of the activations' and the weights'. The fallback where nothing is stated.
std::int64_t torchao_group(const Section& settings, const char* key, std::int64_t fallback) {
  const json::Value* stated = settings.find(key);
  if (stated != nullptr && stated->kind == json::Kind::array && !stated->items.empty())
    stated = &stated->items.back();
  if (stated == nullptr || stated->kind != json::Kind::object) return fallback;
  const Section by(settings.file(), *stated);
  const std::string type = by.word_or("_type", "");
  if (type == "pertensor") return -1;
  const std::optional<Section> data = by.section("_data");
  if (type == "pergroup") {
    const std::int64_t group = data ? data->integer_or("group_size", 0) : 0;
    if (group < 1) by.fail("a group has at least one weight");
    return group;
  }
  if (type != "perrow" && type != "peraxis")
    by.fail(fmt::format("torchao's granularity '{}' is not supported", excerpt(type)));
  return 0;
}

// {"_type": "torch.dtype", "_data": "int4"}, or the name alone.
std::string torchao_dtype(const Section& settings, const char* key) {
  const std::optional<Section> object = settings.section(key);
  return object ? object->word_or("_data", "") : settings.word_or(key, "");
}

// One value a byte, and a scale of `scale` bytes a row, a group or the tensor.
StoredAs torchao_bytes(Format rows, Format tensor, std::int64_t scale, std::int64_t group) {
  if (group < 0) return stored_in_units(tensor, 1, 1, scale, 0, 0);
  return stored_in_units(rows, 1, 1, scale, 1, group);
}

// A module of torchao's settings: a class by name or, in older files, a function. int4 weights have a 16-bit
// scale and zero a group; Int8Tensor an f32 scale and an 8-bit zero point; IntxUnpackedToInt8Tensor a byte a
// weight whatever the bits, a scale of the model's type and an 8-bit zero point; Float8Tensor an f32 scale.
StoredAs torchao_format(const Section& at, std::string type, const Section& settings) {
  type.erase(std::remove(type.begin(), type.end(), '_'), type.end());
  const auto is = [&](std::string_view name) { return type.rfind(name, 0) == 0; };
  if (is("int4weightonly"))
    return int_format(at, 4, settings.integer_or("group_size", 128), ZeroPoints::wide);
  if (is("int8dynamicactivationint4weight"))
    return int_format(at, 4, settings.integer_or("group_size", 32), ZeroPoints::wide);
  if (is("int8dynamicactivationintxweight") || is("intxweightonly")) {
    const std::optional<Section> packing = settings.section("intx_packing_format");
    if (packing && packing->word_or("_data", "unpacked_to_int8") != "unpacked_to_int8")
      packing->fail("packing other than UNPACKED_TO_INT8 is not supported");
    const char* const key = is("intxweightonly") ? "granularity" : "weight_granularity";
    return torchao_bytes(kInt8Channel, kInt8Channel, 3, torchao_group(settings, key, 0));
  }
  if (is("int8")) {
    const std::int64_t group = settings.integer_or("group_size", 0);
    return torchao_bytes(kInt8Channel, kInt8Channel, 5, torchao_group(settings, "granularity", group));
  }
  if (is("float8weightonly") || (is("float8") && type.find("float8weight") != std::string::npos)) {
    const std::int64_t group = torchao_group(settings, "granularity", is("float8weightonly") ? 0 : -1);
    if (group == 0) return kF8Channel;
    return group < 0 ? StoredAs(kF8) : torchao_bytes(kF8Channel, kF8, 4, group);
  }
  if (is("nvfp4")) return kNvfp4;
  if (is("mxdynamicactivationmxweight")) {
    const std::string name = torchao_dtype(settings, "weight_dtype");
    return name.find("float4") != std::string::npos ? kMxfp4 : kMxfp8;
  }
  at.fail(fmt::format("torchao's '{}' is not supported", excerpt(type)));
}

// Of an object {"_type", "_data"}.
StoredAs torchao_object(const Section& own) {
  const std::optional<Section> data = own.section("_data");
  return torchao_format(own, own.word_or("_type", ""), data ? *data : own);
}

// FqnToConfig: a map from names to objects or null; "_default" is of the rest. A name itself counts before a
// regular expression.
void torchao_by_name(const Section& data, Scheme& scheme) {
  const char* const key = data.find("fqn_to_config") != nullptr ? "fqn_to_config" : "module_fqn_to_config";
  const std::optional<Section> map = data.section(key);
  if (!map) data.fail("torchao's map of modules is missing");
  const json::Value& entries = map->value();
  if (entries.items.size() > kMostModules) map->fail("more than 10000 modules");
  if (const std::optional<Section> rest = map->section("_default"))
    add_every_layer(scheme, torchao_object(*rest));
  for (const bool exact : {false, true}) {
    for (std::size_t i = 0; i < entries.keys.size(); ++i) {
      const std::string& name = entries.keys[i];
      if (name == "_default" || (name.rfind("re:", 0) != 0) != exact) continue;
      QuantizationRule rule{.roles = kAll, .format = std::nullopt, .modules = ModuleList()};
      if (entries.items[i].kind != json::Kind::null)
        rule.format = torchao_object(Section(map->file(), entries.items[i]));
      map->add_module(entries.items[i], name, *rule.modules);
      scheme.rules.push_back(std::move(rule));
    }
  }
}

}  // namespace

QuantizationScheme read_torchao(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  const std::optional<Section> types = section.section("quant_type");
  Scheme scheme;
  const bool tables = section.flag_or("include_input_output_embeddings", false);
  section.find("untie_embedding_weights");
  if (types) {
    const std::optional<Section> one = types->section("default");
    if (!one) section.fail("torchao's quant_type needs one 'default'");
    const std::string type = one->word_or("_type", "");
    const std::optional<Section> data = one->section("_data");
    if ((type == "fqntoconfig" || type == "modulefqntoconfig" || type == "aopermoduleconfig") && data) {
      torchao_by_name(*data, scheme);
      keep_listed(section, scheme);
    } else {
      scheme = of_transformers(section, torchao_object(*one));
    }
  } else {
    const std::optional<Section> settings = section.section("quant_type_kwargs");
    scheme = of_transformers(
        section, torchao_format(section, section.word_or("quant_type", ""), settings ? *settings : section));
  }
  if (tables && !scheme.rules.empty() && scheme.rules.front().format) {
    scheme.rules.push_back(
        {.roles = kEmbedding | kHead, .format = scheme.rules.front().format, .modules = std::nullopt});
  }
  return scheme;
}

}  // namespace memwall
