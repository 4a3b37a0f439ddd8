// Quantisation by libraries of their own: mlx, hqq, optimum-quanto, and BitNet's ternary weights.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "huggingface/quantization_scheme.h"

namespace memwall {
namespace {

using Section = QuantizationSection;
using Scheme = QuantizationScheme;

constexpr std::size_t kMostTags = 1000;

// mlx's modes: affine has a 16-bit scale and bias a group, the others an 8-bit scale; nvfp4's has none for
// the tensor. Everything with a matrix is quantised, tables and routers included, whose rows are whole
// groups.
StoredAs mlx_format(const Section& settings) {
  const std::string mode = settings.word_or("mode", "affine");
  if (mode == "mxfp4") return kMxfp4;
  if (mode == "mxfp8") return kMxfp8;
  if (mode == "nvfp4") {
    StoredAs as(kNvfp4);
    as.tensor_bytes = -4;
    return as;
  }
  if (mode != "affine") settings.fail(fmt::format("mlx's mode '{}' is not supported", excerpt(mode)));
  return int_format(settings, settings.integer_or("bits", 4), settings.integer_or("group_size", 64),
                    ZeroPoints::wide);
}

// A module's own settings lie beside the others, `false` where it is not quantised and `true` where it is as
// the rest. An object is all that mlx's to_quantized is called with (mlx.nn.quantize): what it leaves out,
// the mode too, has to_quantized's defaults and not the rest's settings.
std::optional<StoredAs> mlx_exception(const Section& own, const Section& rest) {
  if (own.value().kind != json::Kind::boolean) return mlx_format(own);
  if (!own.value().boolean) return std::nullopt;
  return mlx_format(rest);
}

std::int64_t mlx_group(const Section& section) {
  const std::string mode = section.word_or("mode", "affine");
  if (mode == "mxfp4" || mode == "mxfp8") return 32;
  return mode == "nvfp4" ? 16 : section.integer_or("group_size", 64);
}

// hqq's HQQLinear: a 16-bit scale and zero a group. Three bits are packed ten to 32 bits
// (BitPack.pack_3bit_32), groups side by side; scales and zeros may be quantised in their turn.
StoredAs hqq_format(const Section& settings) {
  const std::optional<Section> weights = settings.section("weight_quant_params");
  const Section& own = weights ? *weights : settings;
  const std::int64_t bits = own.integer_or("nbits", 4);
  const std::int64_t group = own.integer_or("group_size", -1);
  if (bits == 1) own.fail("1 bit is not supported; 2, 3, 4 and 8 are");
  StoredAs as = int_format(own, bits, group, ZeroPoints::wide);
  if (bits == 3 && group > 0) as = stored_in_units(as.format, 4 * group, 10 * group, 4, 1, group);
  return as;
}

// 8 bits each for scales and zeros, with a 16-bit scale and zero for a group of those, are not counted so.
bool twice(const Section& settings) {
  return settings.find("scale_quant_params") != nullptr || settings.find("zero_quant_params") != nullptr;
}

void doubt_twice(Scheme& scheme) {
  scheme.doubts.emplace_back("its scales are quantised in their turn and counted as 16 bits each");
}

}  // namespace

QuantizationScheme read_mlx(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  Scheme scheme;
  scheme.rules.push_back(
      {.roles = kAll, .format = mlx_format(section), .modules = std::nullopt, .divisor = mlx_group(section)});
  add_exceptions(section, section.value(), false, mlx_exception, section, scheme);
  return scheme;
}

// A map from linear tags ("self_attn.q_proj", the path without the model's and the layer's part) to settings,
// or the same settings for all. Where tags are given, what has none stays as it is (prepare_for_hqq_linear).
QuantizationScheme read_hqq(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  std::optional<Section> config = section.section("quant_config");
  if (!config) config = section;
  if (config->find("weight_quant_params") != nullptr || config->find("nbits") != nullptr) {
    Scheme scheme = of_transformers(section, hqq_format(*config));
    if (twice(*config)) doubt_twice(scheme);
    return scheme;
  }
  const json::Value& tags = config->value();
  if (tags.items.size() > 100 * kMostTags) config->fail("more than 100000 modules");
  Scheme scheme;
  std::vector<std::pair<StoredAs, ModuleList>> lists;
  bool doubted = false;
  for (std::size_t i = 0; i < tags.keys.size(); ++i) {
    if (tags.items[i].kind != json::Kind::object) continue;
    const Section own(section.file(), tags.items[i]);
    if (own.find("weight_quant_params") == nullptr && own.find("nbits") == nullptr) continue;
    const StoredAs format = hqq_format(own);
    auto at = std::find_if(lists.begin(), lists.end(), [&](const auto& l) { return l.first == format; });
    if (at == lists.end()) at = lists.insert(at, {format, ModuleList()});
    config->add_module(tags.items[i], tags.keys[i], at->second);
    doubted = doubted || twice(own);
  }
  if (lists.empty())
    section.fail("hqq needs a quant_config with weight_quant_params, for all modules or for each");
  for (auto& [format, list] : lists) {
    scheme.rules.push_back({.roles = kEveryLayer | kHead, .format = format, .modules = std::move(list)});
  }
  if (doubted) doubt_twice(scheme);
  keep_listed(section, scheme);
  return scheme;
}

// optimum-quanto's QTensor: a scale a row in the model's type, for fewer bits a scale and shift for 128.
QuantizationScheme read_quanto(const QuantizationSection& section, const QuantizedModel& model) {
  const std::string weights = section.word_or("weights", "int8");
  section.find("activations");
  const std::int64_t scale = model.scale_bytes();
  if (weights == "int8") return of_transformers(section, stored_in_units(kInt8Channel, 1, 1, scale, 1, 0));
  if (weights == "float8") return of_transformers(section, stored_in_units(kF8Channel, 1, 1, scale, 1, 0));
  if (weights != "int4" && weights != "int2") {
    section.fail(
        fmt::format("weights '{}' are not supported; int8, int4, int2 and float8 are", excerpt(weights)));
  }
  return of_transformers(section, int_format(section, weights == "int4" ? 4 : 2, 128, ZeroPoints::wide));
}

// Ternary weights, four a byte, and one 16-bit scale a tensor (BitLinear). Quantised at run time ("online",
// AutoBitLinear), they are stored as they were.
QuantizationScheme read_bitnet(const QuantizationSection& section, const QuantizedModel& model) {
  if (section.word_or("quantization_mode", "offline") == "online") return {};
  const Format format{FormatKind::int2_group, 0, false};
  return of_transformers(section, stored_in_units(format, 1, 4, model.scale_bytes(), 0, 0));
}

}  // namespace memwall
