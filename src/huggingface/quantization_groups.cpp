// compressed-tensors: its configuration names groups of modules and says how each is stored.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "huggingface/quantization_presets.h"
#include "huggingface/quantization_scheme.h"

namespace memwall {
namespace {

using Section = QuantizationSection;
using Scheme = QuantizationScheme;

constexpr std::size_t kMostGroups = 100;
constexpr Range kSides{1, 1 << 20};

// CompressionFormat.
constexpr std::array<std::string_view, 13> kFormats = {"dense",
                                                       "int-quantized",
                                                       "float-quantized",
                                                       "naive-quantized",
                                                       "pack-quantized",
                                                       "marlin-24",
                                                       "nvfp4-pack-quantized",
                                                       "mxfp4-pack-quantized",
                                                       "mxfp6-pack-quantized",
                                                       "mxfp8-quantized",
                                                       "sparse-bitmask",
                                                       "sparse-24-bitmask",
                                                       "mixed-precision"};

// actorder: "group" (also true and "dynamic") stores weight_g_idx; with "weight" or "static" the order is
// gone once the weights are quantised.
bool has_input_index(const Section& section) {
  const json::Value* order = section.find("actorder");
  if (order == nullptr) return false;
  if (order->kind == json::Kind::boolean) return order->boolean;
  constexpr std::array<std::string_view, 4> kOrders = {"group", "dynamic", "weight", "static"};
  const std::string word = section.known_word("actorder", "", kOrders);
  return word == "group" || word == "dynamic";
}

GroupWeights read_weights(const Section& section) {
  constexpr std::array<std::string_view, 2> kTypes = {"int", "float"};
  GroupWeights w{.bits = section.integer_or("num_bits", 8),
                 .integers = section.known_word("type", "int", kTypes) == "int",
                 .strategy = "",
                 .group = section.integer_or("group_size", 0),
                 .symmetric = section.flag_or("symmetric", true)};
  w.strategy = section.word_or("strategy", w.group > 0 ? "group" : w.group < 0 ? "channel" : "tensor");
  if (w.strategy == "tensor_group") w.strategy = "group";
  w.input_index = has_input_index(section);
  const json::Value* block = section.find("block_structure");
  if (w.strategy == "block" && block != nullptr && block->items.size() == 2) {
    w.block_rows = json::as_integer(section.file(), block->items[0], "block_structure", kSides);
    w.block_columns = json::as_integer(section.file(), block->items[1], "block_structure", kSides);
  }
  return w;
}

[[noreturn]] void refuse(const Section& section, const GroupWeights& w, const std::string& format) {
  section.fail(fmt::format("weights of type '{}' with {} bits and strategy '{}'{}{} are not supported",
                           w.integers ? "int" : "float", w.bits, excerpt(w.strategy),
                           w.group > 0 ? fmt::format(" in groups of {}", w.group) : "",
                           format.empty() ? "" : fmt::format(" in format '{}'", excerpt(format))));
}

// One value a byte: float-quantized, int-quantized and naive-quantized hold any number of bits so. Scales
// have the model's type, a zero point is a byte.
StoredAs naive(const Section& section, const GroupWeights& w, const std::string& format, std::int64_t scale) {
  if (w.bits > 8 || (!w.integers && w.bits != 8)) refuse(section, w, format);
  const std::int64_t beside = scale + (w.integers && !w.symmetric ? 1 : 0);
  const bool f32 = beside == 4;  // as the formats' own
  if (w.strategy == "tensor") {
    if (f32 && !w.integers) return kF8;
    return stored_in_units(w.integers ? kInt8Channel : kF8, 1, 1, beside, 0, 0);
  }
  if (w.strategy == "channel") {
    const Format as = w.integers ? kInt8Channel : kF8Channel;
    return f32 ? StoredAs(as) : stored_in_units(as, 1, 1, beside, 1, 0);
  }
  if (w.strategy == "group" && w.group > 0) {
    if (!w.integers) return stored_in_units(kF8Channel, 1, 1, beside, 1, w.group);
    const Format as = int_format(section, 8, w.group, ZeroPoints::none);
    return beside == 2 ? StoredAs(as) : stored_in_units(as, 1, 1, beside, 1, w.group);
  }
  if (w.strategy == "block" && w.block_rows > 0) {
    const Format as = w.integers ? kInt8Channel : Format{FormatKind::f8_e4m3_b128, 0, false};
    if (f32 && !w.integers && w.block_rows == 128 && w.block_columns == 128) return as;
    return stored_in_units(as, 1, 1, beside, w.block_rows, w.block_columns);
  }
  refuse(section, w, format);
}

// 2:4 sparse: half of the values, and where they stand. Marlin's packing (marlin-24) has 4 or 8 bits a value
// and 4 for two of four positions; the bitmask one bit a weight (sparse-24-bitmask).
StoredAs half_of(StoredAs as, std::int64_t value_bits, std::int64_t place_bits) {
  as.unit_bytes = value_bits / 2 + place_bits;  // for 8 weights
  as.unit_weights = 8;
  return as;
}

StoredAs values_format(const Section& section, const GroupWeights& w, const std::string& format,
                       bool activations, const QuantizedModel& model) {
  const bool grouped = w.strategy == "group";
  if (format == "marlin_24") {
    if (!w.integers || (w.bits != 4 && w.bits != 8)) refuse(section, w, format);
    const Format as = int_format(section, w.bits, grouped ? w.group : -1, ZeroPoints::none);
    return half_of(stored_in_units(as, 1, 1, 2, 1, grouped ? w.group : 0), w.bits, 1);
  }
  if (!w.integers && grouped) {
    if (w.bits == 4 && w.group == 16) return kNvfp4;
    if (w.bits == 4 && w.group == 32) return kMxfp4;
    if (w.bits == 8 && w.group == 32) return kMxfp8;
    // mxfp6-pack-quantized: four values in three bytes, an 8-bit scale for 32.
    if (w.bits == 6 && w.group == 32)
      return stored_in_units({FormatKind::int6_group, 32, false}, 3, 4, 1, 1, 32);
  }
  const bool whole_bytes =
      format == "int_quantized" || format == "naive_quantized" || format == "float_quantized";
  // As infer_module_format does where none is stated.
  const bool packed = format == "pack_quantized" || (!whole_bytes && w.integers && !activations);
  if (packed && w.integers && (grouped || w.strategy == "channel")) {
    if (w.bits == 8 && !grouped) return naive(section, w, format, model.scale_bytes());
    return int_format(section, w.bits, grouped ? w.group : -1,
                      w.symmetric ? ZeroPoints::none : ZeroPoints::packed);
  }
  return naive(section, w, format, model.scale_bytes());
}

StoredAs weights_format(const Section& section, const GroupWeights& w, const std::string& format,
                        bool activations, const QuantizedModel& model) {
  StoredAs as = values_format(section, w, format, activations, model);
  if (w.input_index && w.strategy == "group") as.column_bytes = 4;
  return as;
}

// The roles of a module's class; nothing where the class is not known.
std::optional<Roles> class_roles(const std::string& name) {
  // The head is an nn.Linear, too, but transformers and vLLM leave it alone unless it is named.
  if (name == "Linear" || name == "LinearBase") return kEveryLayer;
  if (name == "FusedMoE") return kExperts;
  if (name == "Embedding") return kEmbedding;
  if (name == "ParallelLMHead") return kHead;
  return std::nullopt;
}

// A class is one word that begins with a capital.
bool is_class(const std::string& name) {
  return !name.empty() && name[0] >= 'A' && name[0] <= 'Z' && name.find_first_of(".*:") == std::string::npos;
}

// sparse-24-bitmask: the same modules, half of their values and a bit for each.
void halve(const Section& section, const QuantizedModel& model, Scheme& scheme) {
  const std::optional<Section> sparse = section.section("sparsity_config");
  if (!sparse) return;
  const std::string format = sparse->word_or("format", "dense");
  if (format == "dense") return;
  if (format != "sparse_24_bitmask") {
    sparse->fail(
        fmt::format("sparse weights ('{}') are not supported: how many are zero is not stated; the "
                    "checkpoint's safetensors can be read instead",
                    excerpt(format)));
  }
  if (scheme.rules.empty()) {
    const StoredAs plain = stored_in_units(model.dtype, 1, 1, 0, 0, 0);
    scheme.rules.push_back({.roles = kEveryLayer, .format = plain, .modules = std::nullopt});
  }
  for (QuantizationRule& rule : scheme.rules) {
    if (!rule.format) continue;
    const FormatKind kind = rule.format->format.kind;
    const bool bytes =
        kind == FormatKind::f8_e4m3 || kind == FormatKind::f8_e4m3_channel || kind == FormatKind::int8_group;
    const bool plain = is_plain_float(rule.format->format);
    if (!plain && (!bytes || rule.format->unit_bytes == 0))
      sparse->fail("sparse weights of this format are not supported");
    rule.format = half_of(*rule.format, plain ? 8 * model.scale_bytes() : 8, 1);
  }
  keep_modules(*sparse, {"ignore"}, scheme);
}

}  // namespace

std::optional<KvFormat> kv_format(const QuantizationSection& section, const char* key,
                                  QuantizationScheme& scheme) {
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
    scheme.warnings.push_back(
        fmt::format("the configuration's KV cache format '{}' is not known and not applied", excerpt(name)));
  }
  return std::nullopt;
}

void add_groups(const QuantizationSection& section, const QuantizedModel& model, QuantizationScheme& scheme) {
  const std::optional<Section> groups = section.section("config_groups");
  if (!groups) return;
  if (groups->value().items.size() > kMostGroups) groups->fail("more than 100 config_groups");
  const std::string whole = section.known_word("format", "", kFormats);
  std::vector<QuantizationRule> by_name;
  for (std::size_t g = 0; g < groups->value().items.size(); ++g) {
    const json::Value& item = groups->value().items[g];
    const Section group(section.file(), item);
    const GroupPreset* named =
        item.kind == json::Kind::array ? &find_preset(group, groups->value().keys[g]) : nullptr;
    if (named == nullptr && item.kind != json::Kind::object)
      group.fail("a group is an object, or a list of targets behind a preset's name");
    const std::optional<Section> weights = group.section("weights");
    if (named == nullptr && !weights) continue;  // activations alone
    const std::string own = group.known_word("format", whole, kFormats);
    if (own == "dense") {  // not compressed: 16 bits, with scales beside
      scheme.doubts.emplace_back("its format 'dense' stores weights that are not compressed");
      continue;
    }
    const std::string compressor = own == "mixed_precision" ? "" : own;
    std::optional<StoredAs> format;
    if (named == nullptr) {
      format = weights_format(*weights, read_weights(*weights), compressor,
                              group.find("input_activations") != nullptr, model);
    } else if (named->quantised) {
      format = weights_format(group, named->weights, compressor, named->activations, model);
    }
    const json::Value* targets = named != nullptr ? &item : group.find("targets");
    Roles roles = targets == nullptr ? Roles(kEveryLayer) : Roles(0);
    ModuleList names;
    if (targets != nullptr && targets->kind != json::Kind::array)
      group.fail(*targets, "targets must be a list");
    for (std::size_t i = 0; targets != nullptr && i < targets->items.size(); ++i) {
      const std::string& target = json::as_text(section.file(), targets->items[i], "targets");
      if (const std::optional<Roles> known = class_roles(target)) {
        roles |= *known;
      } else if (is_class(target)) {
        scheme.doubts.push_back(fmt::format(
            "its config_groups name modules by the class '{}', which is not known", excerpt(target)));
      } else {
        group.add_module(targets->items[i], target, names);
      }
    }
    if (roles != 0) scheme.rules.push_back({.roles = roles, .format = format, .modules = std::nullopt});
    if (!names.empty()) by_name.push_back({.roles = kAll, .format = format, .modules = std::move(names)});
  }
  std::move(by_name.begin(), by_name.end(), std::back_inserter(scheme.rules));
}

QuantizationScheme read_compressed_tensors(const QuantizationSection& section, const QuantizedModel& model) {
  Scheme scheme;
  add_groups(section, model, scheme);
  halve(section, model, scheme);
  if (section.find("config_groups") == nullptr && scheme.rules.empty() && scheme.doubts.empty())
    section.fail("compressed-tensors needs config_groups");
  keep_modules(section, {"ignore"}, scheme);
  scheme.kv = kv_format(section, "kv_cache_scheme", scheme);
  return scheme;
}

}  // namespace memwall
