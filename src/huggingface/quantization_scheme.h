// What a quantization_config says, whatever the tool that wrote it: which modules are stored in which format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/format.h"
#include "huggingface/quantization_modules.h"
#include "input/json.h"

namespace memwall {

// Sets of roles.
using Roles = std::uint8_t;
constexpr Roles kLinears = 1;
constexpr Roles kExperts = 2;
constexpr Roles kRouters = 4;
constexpr Roles kHead = 8;
constexpr Roles kEmbedding = 16;
constexpr Roles kEveryLayer = kLinears | kExperts;  // what every method quantises unless told otherwise
constexpr Roles kAll = kEveryLayer | kRouters | kHead | kEmbedding;

// Gives tensors a format, or their own back.
struct QuantizationRule {
  Roles roles = kEveryLayer;
  std::optional<Format> format;       // nothing: as they are without quantisation
  std::optional<ModuleList> modules;  // nothing: every tensor of those roles
};

struct QuantizationScheme {
  std::vector<QuantizationRule> rules;  // the last that applies to a tensor counts
  std::optional<KvFormat> kv;
  std::vector<std::string> warnings;
};

// An object of a configuration. Keys whose value is null count as missing; each read throws InputError at the
// value where it is of another kind.
class QuantizationSection {
 public:
  QuantizationSection(const std::string& file, const json::Value& value) : file_(&file), value_(&value) {}

  const std::string& file() const { return *file_; }
  const json::Value& value() const { return *value_; }
  const json::Value* find(std::string_view key) const;
  std::optional<QuantizationSection> section(std::string_view key) const;
  std::int64_t integer_or(std::string_view key, std::int64_t fallback) const;
  bool flag_or(std::string_view key, bool fallback) const;
  // In lower case, '-' as '_'.
  std::string word_or(std::string_view key, const std::string& fallback) const;
  // Of all the keys; adds to `list`. "re:" before a name makes it a regular expression.
  void add_modules(std::initializer_list<const char*> keys, ModuleList& list) const;
  void add_module(const json::Value& at, std::string_view name, ModuleList& list) const;
  void add_regex(const json::Value& at, std::string_view pattern, ModuleList& list) const;

  [[noreturn]] void fail(const json::Value& at, const std::string& message) const;
  [[noreturn]] void fail(const std::string& message) const { fail(*value_, message); }

 private:
  const std::string* file_;
  const json::Value* value_;
};

// The model that a section belongs to, as far as methods depend on it.
struct QuantizedModel {
  std::string type;          // model_type
  std::string expert_dtype;  // of DeepSeek-V4: "fp4" where its experts are stored so
};

inline constexpr Format kF8{FormatKind::f8_e4m3, 0, false};
inline constexpr Format kF8Channel{FormatKind::f8_e4m3_channel, 0, false};
inline constexpr Format kInt8Channel{FormatKind::int8_group, 0, false};
inline constexpr Format kMxfp4{FormatKind::mxfp4, 0, false};
inline constexpr Format kMxfp8{FormatKind::mxfp8, 0, false};
inline constexpr Format kNvfp4{FormatKind::nvfp4, 0, false};

// The format of integers of that many bits in groups of `group` (-1: a row), as `at` states them.
enum class ZeroPoints : std::uint8_t { none, packed, wide };
Format int_format(const QuantizationSection& section, std::int64_t bits, std::int64_t group, ZeroPoints zero);

// Add rules: the format for every linear and expert; none for the modules of the keys' lists; none for those
// of the lists that transformers' methods have, whatever they are called.
void add_every_layer(QuantizationScheme& scheme, Format format);
void keep_modules(const QuantizationSection& section, std::initializer_list<const char*> keys,
                  QuantizationScheme& scheme);
void keep_listed(const QuantizationSection& section, QuantizationScheme& scheme);
// The first and the last of these.
QuantizationScheme of_one_format(const QuantizationSection& section, Format format);

// Adds rules for an object that gives modules settings of their own, by name and where `regexes` by regular
// expression. `format` reads such settings; `outer` is `section`.
using FormatOf = std::optional<Format> (*)(const QuantizationSection& own, const QuantizationSection& outer);
void add_exceptions(const QuantizationSection& section, const json::Value& modules, bool regexes,
                    FormatOf format, QuantizationScheme& scheme);

// Throws InputError where the method is not known.
QuantizationScheme read_quantization(const QuantizationSection& section, const QuantizedModel& model);

// Methods that state groups of modules, one a format.
QuantizationScheme read_compressed_tensors(const QuantizationSection& section);
QuantizationScheme read_modelopt(const QuantizationSection& section);
QuantizationScheme read_quark(const QuantizationSection& section);
// Libraries of their own.
QuantizationScheme read_mlx(const QuantizationSection& section);
QuantizationScheme read_hqq(const QuantizationSection& section);
QuantizationScheme read_quanto(const QuantizationSection& section);
QuantizationScheme read_torchao(const QuantizationSection& section);
QuantizationScheme read_bitnet(const QuantizationSection& section);

}  // namespace memwall
