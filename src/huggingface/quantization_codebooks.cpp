// Methods that transformers reads by classes of their own: codes into tables of vectors (AQLM, VPTQ, HIGGS),
// and others.
#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "huggingface/quantization_scheme.h"

namespace memwall {
namespace {

using Section = QuantizationSection;
using Scheme = QuantizationScheme;

// The format that shows how many bits a weight has.
Format nearest(std::int64_t bits) {
  return *find_format(fmt::format("int{}-c", bits <= 2 ? 2 : bits >= 7 ? 8 : bits));
}

std::int64_t checked(const Section& section, const char* key, std::int64_t value, std::int64_t most) {
  if (value < 1 || value > most) section.fail(fmt::format("{} must be from 1 to {}", key, most));
  return value;
}

std::int64_t bits_of(std::int64_t centroids) {
  std::int64_t bits = 0;
  while ((std::int64_t{1} << (bits + 1)) <= centroids) ++bits;
  return bits;
}

// The second of a pair: the first is of the outliers.
std::int64_t main_of(const Section& section, const char* key) {
  const json::Value* pair = section.find(key);
  if (pair == nullptr) return -1;
  if (pair->kind != json::Kind::array || pair->items.size() != 2)
    section.fail(*pair, fmt::format("{} must be a list of two numbers", key));
  return json::as_integer(section.file(), pair->items[1], key, {-1, 1 << 24});
}

// vptq's VQuantLinear: an index a vector of `vector_lens` outputs and input, packed; tables; an f16 scale and
// bias and a 16-bit permutation an input.
StoredAs vptq_format(const Section& layer, Scheme& scheme) {
  const std::int64_t length = checked(layer, "vector_lens", main_of(layer, "vector_lens"), 256);
  const std::int64_t centroids = checked(layer, "num_centroids", main_of(layer, "num_centroids"), 1 << 20);
  const std::int64_t residual = main_of(layer, "num_res_centroids");
  const std::int64_t bits = bits_of(centroids) + (residual > 0 ? bits_of(residual) : 0);
  const std::int64_t tables = checked(layer, "group_num", layer.integer_or("group_num", 1), 1 << 16);
  StoredAs as = stored_in_units(nearest(div_up(bits, length)), bits, 8 * length, 0, 0, 0);
  as.column_bytes =
      (layer.flag_or("enable_norm", true) ? 4 : 0) + (layer.flag_or("enable_perm", true) ? 2 : 0);
  as.tensor_bytes = 2 * tables * length * (centroids + std::max<std::int64_t>(residual, 0));
  if (layer.integer_or("outlier_size", 0) > 0)
    scheme.doubts.emplace_back("vptq's outliers are counted as its other weights");
  return as;
}

}  // namespace

// aqlm's QuantizedLinear: codes of 8, 16 or 32 bits, f16 tables, an f16 scale a row of groups.
QuantizationScheme read_aqlm(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  const auto read = [&](const char* key, std::int64_t fallback, std::int64_t most) {
    return checked(section, key, section.integer_or(key, fallback), most);
  };
  const std::int64_t in = read("in_group_size", 8, 256);
  const std::int64_t out = read("out_group_size", 1, 256);
  const std::int64_t books = read("num_codebooks", 1, 64);
  const std::int64_t bits = read("nbits_per_codebook", 16, 24);
  const std::int64_t code = bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
  StoredAs as = stored_in_units(nearest(div_up(books * bits, in * out)), books * code, in * out, 2, out, 0);
  as.tensor_bytes = 2 * books * (std::int64_t{1} << bits) * in * out;
  return of_transformers(section, as);
}

QuantizationScheme read_vptq(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  Scheme scheme;
  std::vector<std::pair<StoredAs, ModuleList>> lists;
  for (const char* key : {"shared_layer_config", "config_for_layers"}) {
    const std::optional<Section> layers = section.section(key);
    for (std::size_t i = 0; layers && i < layers->value().keys.size(); ++i) {
      const Section own(section.file(), layers->value().items[i]);
      const StoredAs format = vptq_format(own, scheme);
      auto at = std::find_if(lists.begin(), lists.end(), [&](const auto& l) { return l.first == format; });
      if (at == lists.end()) at = lists.insert(at, {format, ModuleList()});
      layers->add_module(own.value(), layers->value().keys[i], at->second);
    }
  }
  if (lists.empty()) section.fail("vptq needs config_for_layers or shared_layer_config");
  std::sort(scheme.doubts.begin(), scheme.doubts.end());
  scheme.doubts.erase(std::unique(scheme.doubts.begin(), scheme.doubts.end()), scheme.doubts.end());
  for (auto& [format, list] : lists) {
    scheme.rules.push_back({.roles = kEveryLayer | kHead, .format = format, .modules = std::move(list)});
  }
  keep_listed(section, scheme);
  return scheme;
}

// transformers' HiggsLinear: packed weights, an f16 scale a group, tables of 2^bits and of 2^(2 bits) pairs.
QuantizationScheme read_higgs(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  const std::int64_t bits = checked(section, "bits", section.integer_or("bits", 4), 4);
  section.find("p");
  StoredAs as = int_format(section, bits, section.integer_or("group_size", 256), ZeroPoints::none);
  as.tensor_bytes = 2 * ((std::int64_t{1} << bits) + 2 * (std::int64_t{1} << (2 * bits)));
  return of_transformers(section, as);
}

QuantizationScheme read_spqr(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  section.fail("spqr's outliers do not follow from a configuration; its safetensors can be read instead");
}

// sinq: as hqq, with a second scale an input.
QuantizationScheme read_sinq(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  StoredAs as = int_format(section, section.integer_or("nbits", 4), section.integer_or("group_size", 64),
                           ZeroPoints::wide);
  as.column_bytes = 2;
  Scheme scheme = of_transformers(section, as);
  scheme.doubts.emplace_back(
      "sinq's weights are counted with a 16-bit scale and zero a group and a scale an input");
  return scheme;
}

// FPQuantLinear: packed weights, or 16 bits where they are only rounded.
QuantizationScheme read_fp_quant(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  const bool wide = section.flag_or("pseudoquantization", false);
  const bool master = section.flag_or("store_master_weights", false);
  const std::string type = section.word_or("forward_dtype", "nvfp4");
  if (type != "nvfp4" && type != "mxfp4")
    section.fail(fmt::format("forward_dtype '{}' is not supported; nvfp4 and mxfp4 are", excerpt(type)));
  Scheme scheme = of_transformers(section, type == "mxfp4" ? kMxfp4 : kNvfp4);
  if (wide || master) {
    scheme = {};
    scheme.doubts.emplace_back("fp_quant keeps 16-bit weights here: they are counted, no others");
  }
  return scheme;
}

QuantizationScheme read_four_over_six(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  const std::string type = section.word_or("weight_dtype", section.word_or("dtype", "nvfp4"));
  if (type != "nvfp4" && type != "mxfp4")
    section.fail(fmt::format("dtype '{}' is not supported; nvfp4 and mxfp4 are", excerpt(type)));
  if (section.flag_or("keep_master_weights", false)) {
    Scheme scheme;
    scheme.doubts.emplace_back("its master weights are kept: they are counted, no others");
    return scheme;
  }
  return of_transformers(section, type == "mxfp4" ? kMxfp4 : kNvfp4);
}

// transformers' gemma_quant.py: 2, 4 or 8 bits, an f32 scale a row, by patterns that may match anywhere in a
// name.
QuantizationScheme read_gemma(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  const auto format_of = [&](std::int64_t bits) -> StoredAs {
    if (bits != 2 && bits != 4 && bits != 8) section.fail("num_bits must be 2, 4 or 8");
    if (bits == 8) return kInt8Channel;
    return stored_in_units(nearest(bits), 1, 8 / bits, 4, 1, 0);
  };
  const std::int64_t bits = section.integer_or("num_bits", 4);
  Scheme scheme;
  const Roles roles = kEveryLayer | kHead | (section.flag_or("quantize_embeddings", false) ? kEmbedding : 0);
  scheme.rules.push_back({.roles = roles, .format = format_of(bits), .modules = std::nullopt});
  if (const std::optional<Section> own = section.section("module_quant_configs")) {
    for (std::size_t i = own->value().keys.size(); i-- > 0;) {  // the first that matches counts
      const Section settings(section.file(), own->value().items[i]);
      QuantizationRule rule{.roles = roles,
                            .format = format_of(settings.integer_or("num_bits", bits)),
                            .modules = ModuleList()};
      section.add_regex(settings.value(), ".*(?:" + own->value().keys[i] + ")", *rule.modules);
      scheme.rules.push_back(std::move(rule));
    }
  }
  keep_listed(section, scheme);
  return scheme;
}

// ExLlama's: `bits` are an average over all linears, which its files spread unevenly.
QuantizationScheme read_exl(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  const auto format_of = [&](const char* key, double fallback) {
    const json::Value* stated = section.find(key);
    const double bits = stated == nullptr ? fallback : json::as_number(section.file(), *stated, key);
    if (!(bits >= 1) || bits > 16) section.fail(fmt::format("{} must be from 1 to 16", key));
    const auto hundredths = static_cast<std::int64_t>(bits * 100 + 0.5);
    return stored_in_units(nearest((hundredths + 50) / 100), hundredths, 800, 0, 0, 0);
  };
  Scheme scheme;
  add_every_layer(scheme, format_of("bits", 4));
  for (const char* key : {"head_bits", "lm_head_bits"}) {
    if (section.find(key) == nullptr) continue;
    scheme.rules.push_back({.roles = kHead, .format = format_of(key, 6), .modules = std::nullopt});
  }
  for (const char* key : {"calibration", "tensor_storage", "out_scales", "codebook"}) section.find(key);
  scheme.doubts.emplace_back("its bits a weight are an average: single tensors have more or fewer");
  return scheme;
}

// MetalLinear: mlx's affine packing of linears alone.
QuantizationScheme read_metal(const QuantizationSection& section, const QuantizedModel& /*model*/) {
  return of_transformers(section, int_format(section, section.integer_or("bits", 4),
                                             section.integer_or("group_size", 64), ZeroPoints::wide));
}

}  // namespace memwall
