// What a quantization_config says, whatever the tool that wrote it: which modules are stored in which format.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "format/format.h"
#include "huggingface/config.h"
#include "huggingface/quantization_layout.h"
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
  std::optional<StoredAs> format;     // nothing: as they are without quantisation
  std::optional<ModuleList> modules;  // nothing: every tensor of those roles
  std::int64_t divisor = 1;           // tensors whose rows it does not divide are left alone
};

struct QuantizationScheme {
  std::vector<QuantizationRule> rules;  // the last that applies to a tensor counts
  std::optional<KvFormat> kv;
  std::vector<std::string> warnings;
  std::vector<std::string> doubts;  // warnings that make the model approximate
};

// An object of a configuration. Keys whose value is null count as missing; each read throws InputError at the
// value where it is of another kind.
class QuantizationSection {
 public:
  QuantizationSection(const std::string& file, const json::Value& value)
      : file_(&file), value_(&value), asked_(std::make_shared<std::set<std::string, std::less<>>>()) {}

  const std::string& file() const { return *file_; }
  const json::Value& value() const { return *value_; }
  const json::Value* find(std::string_view key) const;
  // Keys that were never asked for, whose value says something, and that are not known to leave the bytes
  // alone.
  std::vector<std::string> unasked() const;
  std::optional<QuantizationSection> section(std::string_view key) const;
  std::int64_t integer_or(std::string_view key, std::int64_t fallback) const;
  bool flag_or(std::string_view key, bool fallback) const;
  // In lower case, '-' as '_'.
  std::string word_or(std::string_view key, const std::string& fallback) const;
  // The same, of those known; another is refused at its value, which makes the list of
  // what is right part of the message.
  std::string known_word(std::string_view key, const std::string& fallback,
                         std::span<const std::string_view> known) const;
  // Of all the keys; adds to `list`. "re:" before a name makes it a regular expression.
  void add_modules(std::initializer_list<const char*> keys, ModuleList& list) const;
  // The same by the rule of transformers' methods: regular expressions need no "re:".
  void add_listed(std::initializer_list<const char*> keys, ModuleList& list) const;
  void add_module(const json::Value& at, std::string_view name, ModuleList& list) const;
  void add_part(const json::Value& at, std::string_view text, ModuleList& list) const;
  void add_regex(const json::Value& at, std::string_view pattern, ModuleList& list) const;

  [[noreturn]] void fail(const json::Value& at, const std::string& message) const;
  [[noreturn]] void fail(const std::string& message) const { fail(*value_, message); }

 private:
  const std::string* file_;
  const json::Value* value_;
  std::shared_ptr<std::set<std::string, std::less<>>> asked_;
};

// A key that no method's bytes depend on: of calibration, activations, kernels, provenance.
bool leaves_bytes_alone(std::string_view key);

// The model that a section belongs to, as far as methods depend on it.
struct QuantizedModel {
  std::string type;          // model_type
  std::string expert_dtype;  // of DeepSeek-V4: "fp4" where its experts are stored so
  Format dtype{};            // of what is not quantised; scales have it, too, in several methods
  bool nested = false;       // the language model's configuration sits inside another

  std::int64_t scale_bytes() const { return dtype.kind == FormatKind::f32 ? 4 : 2; }
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
void add_every_layer(QuantizationScheme& scheme, const StoredAs& format);
void keep_modules(const QuantizationSection& section, std::initializer_list<const char*> keys,
                  QuantizationScheme& scheme);
void keep_listed(const QuantizationSection& section, QuantizationScheme& scheme);
// The first and the last of these.
QuantizationScheme of_one_format(const QuantizationSection& section, const StoredAs& format);
// The same for methods that transformers itself quantises with: where a list says what stays, it alone
// decides on the head (HfQuantizer::get_modules_to_not_convert); where there is none, the head stays.
QuantizationScheme of_transformers(const QuantizationSection& section, const StoredAs& format);

// Adds rules for an object that gives modules settings of their own, by name and where `regexes` by regular
// expression. `format` reads such settings, with the settings for all modules, `outer`, behind them.
using FormatOf = std::optional<StoredAs> (*)(const QuantizationSection& own,
                                             const QuantizationSection& outer);
void add_exceptions(const QuantizationSection& section, const json::Value& modules, bool regexes,
                    FormatOf format, const QuantizationSection& outer, QuantizationScheme& scheme);

// Throws InputError where the method is not known.
QuantizationScheme read_quantization(const QuantizationSection& section, const QuantizedModel& model);

// What models older than quantization_config say of their weights at a config.json's top level:
// GPTQ-for-LLaMa's wbits and groupsize, ChatGLM's quantization_bit. No rules where nothing is said; doubts
// where other keys tell of quantised weights and not how they are stored.
QuantizationScheme read_older(const Config& config, const QuantizedModel& model);

// Methods that state groups of modules, one a format.
QuantizationScheme read_compressed_tensors(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_modelopt(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_quark(const QuantizationSection& section, const QuantizedModel& model);
// ModelOpt's quantized_layers, config_groups or algorithm, without its lists of what stays; nothing added
// where there are none.
void add_modelopt_rules(const QuantizationSection& section, const QuantizedModel& model,
                        QuantizationScheme& scheme);
// Rules for config_groups: those that name classes ("Linear") first, so that names overrule them.
void add_groups(const QuantizationSection& section, const QuantizedModel& model, QuantizationScheme& scheme);
// The format of a KV cache that `key` states by a name ("FP8") or by num_bits and type.
std::optional<KvFormat> kv_format(const QuantizationSection& section, const char* key,
                                  QuantizationScheme& scheme);
// Packed integers.
QuantizationScheme read_gptq(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_awq(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_auto_round(const QuantizationSection& section, const QuantizedModel& model);
// Libraries of their own.
QuantizationScheme read_mlx(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_hqq(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_quanto(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_torchao(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_bitnet(const QuantizationSection& section, const QuantizedModel& model);
// Codes into tables of vectors, and what else transformers reads.
QuantizationScheme read_aqlm(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_vptq(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_higgs(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_spqr(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_sinq(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_fp_quant(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_four_over_six(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_gemma(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_exl(const QuantizationSection& section, const QuantizedModel& model);
QuantizationScheme read_metal(const QuantizationSection& section, const QuantizedModel& model);

}  // namespace memwall
