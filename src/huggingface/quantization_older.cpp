// Quantised weights as a config.json's top level tells of them, where there is no quantization_config: files
// older than that key, and tools that never wrote it.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "huggingface/quantization_scheme.h"

namespace memwall {
namespace {

using Section = QuantizationSection;
using Scheme = QuantizationScheme;

constexpr std::int64_t kPlainBits = 16;  // and more: not quantised
constexpr Range kBits{0, 64};
constexpr Range kGroups{-1, 1 << 20};

const json::Value* stated(const Config& config, const char* key) { return config.find({key}, true); }

std::int64_t number(const Config& config, const json::Value& value, const char* key, Range range) {
  return json::as_integer(config.file(), value, key, range);
}

// The key says that weights have fewer than 16 bits: a number of them, a word, a flag, or an object.
bool tells(const json::Value& value) {
  switch (value.kind) {
    case json::Kind::number: {
      const std::string_view digits = value.text;
      return digits.size() == 1 && digits[0] > '0' && digits[0] <= '9';
    }
    case json::Kind::boolean:
      return value.boolean;
    case json::Kind::text:
      return !value.text.empty() && value.text != "none";
    case json::Kind::array:
    case json::Kind::object:
      return !value.items.empty();
    case json::Kind::null:
      break;
  }
  return false;
}

// "int4", "fp8", "float8_e4m3fn", "uint4", "nf4", "w4a16"; not "bfloat16", "float32".
bool is_narrow(std::string_view type) {
  for (const std::string_view name :
       {"int8", "int4", "int3", "int2", "fp8", "fp4", "nf4", "float8", "float4"}) {
    if (type.find(name) != std::string_view::npos) return true;
  }
  return false;
}

void doubt(const Config& config, Scheme& scheme) {
  std::string names;
  const auto add = [&](std::string_view key) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", key);
  };
  for (const char* key : {"bits", "nbits", "w_bit", "weight_bits", "load_in_4bit", "load_in_8bit",
                          "quant_method", "quant_config", "quantize_config", "bnb_config", "hqq_config",
                          "gptq_config", "awq_config", "use_fp8"}) {
    const json::Value* value = stated(config, key);
    if (value != nullptr && tells(*value)) add(key);
  }
  const json::Value* type = stated(config, "weight_dtype");
  if (type != nullptr && type->kind == json::Kind::text && is_narrow(type->text)) add("weight_dtype");
  if (names.empty()) return;
  scheme.doubts.push_back(
      fmt::format("its configuration tells of quantised weights without a quantization_config, which is not "
                  "understood and not applied: {}",
                  names));
}

}  // namespace

// GPTQ-for-LLaMa's QuantLinear, which MOSS took over: qweight, qzeros and f16 scales as GPTQ's. ChatGLM's
// QuantizedLinear: rows of integers, two a byte for 4 bits, and an f16 scale a row; the tables and the head
// stay.
QuantizationScheme read_older(const Config& config, const QuantizedModel& /*model*/) {
  Scheme scheme;
  if (const json::Value* value = stated(config, "wbits")) {
    const std::int64_t bits = number(config, *value, "wbits", kBits);
    if (bits > 0 && bits < kPlainBits) {
      const json::Value* stated_group = stated(config, "groupsize");
      const std::int64_t group =
          stated_group == nullptr ? -1 : number(config, *stated_group, "groupsize", kGroups);
      add_every_layer(scheme, int_format(Section(config.file(), *value), bits, group, ZeroPoints::packed));
      return scheme;
    }
  }
  if (const json::Value* value = stated(config, "quantization_bit")) {
    const std::int64_t bits = number(config, *value, "quantization_bit", kBits);
    if (bits == 4 || bits == 8) {
      const Section at(config.file(), *value);
      add_every_layer(scheme,
                      stored_in_units(int_format(at, bits, -1, ZeroPoints::none), 1, 8 / bits, 2, 1, 0));
      const json::Value* tables = stated(config, "quantization_embeddings");
      if (tables != nullptr && tells(*tables))
        scheme.doubts.emplace_back(
            "its tables are quantised (quantization_embeddings) and counted as they were");
      return scheme;
    }
    if (bits > 0 && bits < kPlainBits)
      config.fail_at(*value, fmt::format("quantization_bit {} is not supported; 4 and 8 are", bits));
  }
  doubt(config, scheme);
  return scheme;
}

}  // namespace memwall
