// Quantisation by libraries of their own: mlx, hqq, optimum-quanto, torchao, and BitNet's ternary weights.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "huggingface/quantization_scheme.h"

namespace memwall {
namespace {

using Section = QuantizationSection;

// mlx's affine mode: a 16-bit scale and bias a group; everything with a matrix is quantised, tables and
// routers included. A module's own settings lie beside the others, `false` where it is not quantised.
std::optional<Format> mlx_format(const Section& own, const Section& outer) {
  if (own.value().kind == json::Kind::boolean) {
    if (!own.value().boolean) return std::nullopt;
    return mlx_format(outer, outer);
  }
  const std::string mode = own.word_or("mode", outer.word_or("mode", "affine"));
  if (mode == "mxfp4") return kMxfp4;
  if (mode == "mxfp8") return kMxfp8;
  if (mode == "nvfp4") return kNvfp4;
  return int_format(own, own.integer_or("bits", outer.integer_or("bits", 4)),
                    own.integer_or("group_size", outer.integer_or("group_size", 64)), ZeroPoints::wide);
}

}  // namespace

QuantizationScheme read_mlx(const QuantizationSection& section) {
  QuantizationScheme scheme;
  scheme.rules.push_back({.roles = kAll, .format = mlx_format(section, section), .modules = std::nullopt});
  add_exceptions(section, section.value(), false, mlx_format, scheme);
  return scheme;
}

// hqq's HQQLinear: a 16-bit scale and zero a group.
QuantizationScheme read_hqq(const QuantizationSection& section) {
  const std::optional<Section> config = section.section("quant_config");
  const std::optional<Section> weights = (config ? *config : section).section("weight_quant_params");
  if (!weights) section.fail("hqq needs one quant_config.weight_quant_params for all modules");
  return of_one_format(section, int_format(*weights, weights->integer_or("nbits", 4),
                                           weights->integer_or("group_size", 64), ZeroPoints::wide));
}

// optimum-quanto's QTensor: a scale a row, for fewer bits a 16-bit scale and shift for 128.
QuantizationScheme read_quanto(const QuantizationSection& section) {
  const std::string weights = section.word_or("weights", "int8");
  if (weights == "int8") return of_one_format(section, kInt8Channel);
  if (weights == "float8") return of_one_format(section, kF8Channel);
  if (weights != "int4" && weights != "int2") {
    section.fail(fmt::format("weights '{}' are not supported; int8, int4, int2 and float8 are",
                             json::printable(weights)));
  }
  return of_one_format(section, int_format(section, weights == "int4" ? 4 : 2, 128, ZeroPoints::wide));
}

// torchao names a class or, in older files, a function; int4 weights have a 16-bit scale and zero a group.
QuantizationScheme read_torchao(const QuantizationSection& section) {
  std::string type;
  std::optional<Section> settings = section.section("quant_type_kwargs");
  const std::optional<Section> types = section.section("quant_type");
  if (!types) type = section.word_or("quant_type", "");
  if (types) {
    const std::optional<Section> one = types->section("default");
    if (!one) section.fail("torchao's quant_type needs one 'default'");
    type = one->word_or("_type", "");
    settings = one->section("_data");
  }
  type.erase(std::remove(type.begin(), type.end(), '_'), type.end());
  const auto is = [&](std::string_view name) { return type.rfind(name, 0) == 0; };
  if (is("int4weightonly")) {
    const std::int64_t group = settings ? settings->integer_or("group_size", 128) : 128;
    return of_one_format(section, int_format(section, 4, group, ZeroPoints::wide));
  }
  if (is("int8")) return of_one_format(section, kInt8Channel);
  if (is("float8weightonly")) return of_one_format(section, kF8Channel);
  if (is("float8")) {
    const std::optional<Section> by = settings ? settings->section("granularity") : std::nullopt;
    const bool row = by && by->word_or("_type", "") == "perrow";
    return of_one_format(section, row ? kF8Channel : kF8);
  }
  section.fail(fmt::format("torchao's '{}' is not supported", json::printable(type)));
}

// Ternary weights, four a byte, and one scale a tensor.
QuantizationScheme read_bitnet(const QuantizationSection& section) {
  QuantizationScheme scheme = of_one_format(section, {FormatKind::int2_group, 0, false});
  scheme.warnings.emplace_back("bitnet weights are counted as int2-c, which has a scale a row, not a tensor");
  return scheme;
}

}  // namespace memwall
