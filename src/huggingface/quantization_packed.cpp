// Integers packed as GPTQ, AWQ and AutoRound pack them.
#include <fmt/format.h>

#include <string_view>

#include "huggingface/quantization_scheme.h"

namespace memwall {
namespace {

using Section = QuantizationSection;
using Scheme = QuantizationScheme;

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
      scheme.doubts.push_back(
          fmt::format("its {} '{}' is not known and counted as gptq's and awq's are", key, excerpt(format)));
    }
  }
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
    section.fail(fmt::format("data_type '{}' is not supported", excerpt(type)));
  }
  return int_format(section, bits, group, ZeroPoints::packed);
}

std::optional<StoredAs> auto_round_exception(const Section& own, const Section& outer) {
  const std::string type = own.word_or("data_type", outer.word_or("data_type", "int"));
  if (own.integer_or("bits", outer.integer_or("bits", 4)) >= 16 || type == "float") return std::nullopt;
  return auto_round_format(own, outer);
}

}  // namespace

// AutoGPTQ's and GPTQModel's QuantLinear: qweight, qzeros whatever `sym` says, f16 scales. g_idx, 4 bytes an
// input, is read with desc_act only, and counted there; Marlin's own files have no zero points.
QuantizationScheme read_gptq(const QuantizationSection& section, const QuantizedModel& /*model*/) {
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
QuantizationScheme read_awq(const QuantizationSection& section, const QuantizedModel& /*model*/) {
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

QuantizationScheme read_auto_round(const QuantizationSection& section, const QuantizedModel& /*model*/) {
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

}  // namespace memwall
