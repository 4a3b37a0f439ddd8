#include "huggingface/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "input/error.h"

namespace memwall {
namespace {

// Where composite checkpoints keep their language model's configuration.
constexpr std::array kNests = {"text_config",     "llm_config",
                               "language_config", "thinker_config.text_config",
                               "thinker_config",  "language_model_config"};

// No count depends on these.
constexpr std::array kIdlePrefixes = {"_",        "bos_",   "eos_",   "pad_",     "sep_",  "unk_",
                                      "cls_",     "rope",   "image_", "video_",   "audio", "vision",
                                      "summary_", "token_", "task_",  "tokenizer"};
constexpr std::array kIdleParts = {"dropout", "initializer", "_pdrop",     "_eps",   "epsilon",   "token_id",
                                   "init_",   "router_aux",  "aux_loss",   "_coef",  "theta",     "softcap",
                                   "logit",   "scaling",     "multiplier", "jitter", "norm_topk", "_std"};
constexpr std::array kIdle = {"architectures",
                              "transformers_version",
                              "use_cache",
                              "auto_map",
                              "model_type",
                              "id2label",
                              "label2id",
                              "pretraining_tp",
                              "output_attentions",
                              "output_hidden_states",
                              "return_dict",
                              "is_decoder",
                              "quantization_config",
                              "mup_denominator",
                              "chunk_size_feed_forward",
                              "gradient_checkpointing",
                              "torchscript",
                              "use_bfloat16",
                              "problem_type",
                              "attn_implementation",
                              "ep_size",
                              "seq_aux",
                              "scoring_func",
                              "topk_method",
                              "n_group",
                              "topk_group",
                              "partial_rotary_factor",
                              "rotary_pct",
                              "cache_implementation",
                              "scale_emb",
                              "scale_depth",
                              "dim_model_base",
                              "use_flash_attn",
                              "name",
                              "hidden_act",
                              "hidden_activation",
                              "output_router_logits",
                              "finetuning_task",
                              "do_sample",
                              "use_sliding_window",
                              "max_window_layers",
                              "torch_dtype",
                              "dtype"};

bool is_idle(const std::string& key) {
  const auto starts = [&](std::string_view prefix) { return key.rfind(prefix, 0) == 0; };
  const auto holds = [&](std::string_view part) { return key.find(part) != std::string::npos; };
  return std::any_of(kIdlePrefixes.begin(), kIdlePrefixes.end(), starts) ||
         std::any_of(kIdleParts.begin(), kIdleParts.end(), holds) ||
         std::find(kIdle.begin(), kIdle.end(), key) != kIdle.end();
}

constexpr Range kWhole{0, std::int64_t{1} << 50};

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

std::string all_names(Names names) {
  std::string text;
  for (const char* name : names) {
    if (!text.empty()) text += text.find(" (also called ") == std::string::npos ? " (also called " : ", ";
    text += name;
  }
  return names.size() > 1 ? text + ")" : text;
}

}  // namespace

Config::Config(json::Document document)
    : document_(std::make_shared<const json::Document>(std::move(document))),
      asked_(std::make_shared<std::set<std::string, std::less<>>>()) {
  outer_ = inner_ = &document_->root;
  if (outer_->kind != json::Kind::object) fail_at(*outer_, "a config.json is one object, { ... }");
  outer_type_ = type_ = text_or({"model_type"}, "");
  for (const char* nest : kNests) {
    const json::Value* inner = find_in(*outer_, nest);
    if (inner == nullptr || inner->kind != json::Kind::object) continue;
    inner_ = inner;
    type_ = text_or({"model_type"}, "");
    break;
  }
}

void Config::set_defaults(const char* text) {
  defaults_ = std::make_shared<const json::Document>(json::parse(text, "the defaults of " + type_));
}

const json::Value* Config::find_in(const json::Value& root, std::string_view name, bool* found) const {
  const json::Value* value = &root;
  bool top = true;
  while (value != nullptr && !name.empty()) {
    const std::size_t dot = name.find('.');
    const std::string_view head = name.substr(0, dot);
    if (top && asked_->find(head) == asked_->end()) asked_->emplace(head);
    top = false;
    value = value->find(head);
    name = dot == std::string_view::npos ? std::string_view{} : name.substr(dot + 1);
  }
  if (value != nullptr && found != nullptr) *found = true;
  return value != nullptr && value->kind != json::Kind::null ? value : nullptr;
}

const json::Value* Config::find(Names names, bool outer_too) const {
  bool stated = false;
  for (const json::Value* root : {inner_, outer_}) {
    for (const char* name : names) {
      if (const json::Value* value = find_in(*root, name, &stated)) return value;
    }
    if (!outer_too) break;
  }
  if (stated || defaults_ == nullptr) return nullptr;
  for (const char* name : names) {
    if (const json::Value* value = find_in(defaults_->root, name)) return value;
  }
  return nullptr;
}

std::int64_t Config::checked_integer(const json::Value& value, std::string_view name) const {
  return json::as_integer(file(), value, name, kWhole);
}

std::int64_t Config::integer(Names names) const {
  if (const std::optional<std::int64_t> value = maybe_integer(names)) return *value;
  fail(fmt::format("no {}", all_names(names)));
}

std::int64_t Config::integer_or(Names names, std::int64_t fallback) const {
  return maybe_integer(names).value_or(fallback);
}

std::optional<std::int64_t> Config::maybe_integer(Names names) const {
  const json::Value* value = find(names);
  if (value == nullptr) return std::nullopt;
  return checked_integer(*value, *names.begin());
}

double Config::number_or(Names names, double fallback) const {
  const json::Value* value = find(names);
  return value == nullptr ? fallback : json::as_number(file(), *value, *names.begin());
}

bool Config::flag_or(Names names, bool fallback) const {
  const json::Value* value = find(names);
  if (value == nullptr) return fallback;
  if (value->kind == json::Kind::number) return json::as_integer(file(), *value, *names.begin(), {0, 1}) == 1;
  return json::as_bool(file(), *value, *names.begin());
}

std::optional<bool> Config::outer_flag(const char* name) const {
  const json::Value* value = find_in(*outer_, name);
  if (value == nullptr) return std::nullopt;
  return json::as_bool(file(), *value, name);
}

std::string Config::text_or(Names names, const std::string& fallback) const {
  const json::Value* value = find(names);
  return value == nullptr ? fallback : json::as_text(file(), *value, *names.begin());
}

std::vector<std::int64_t> Config::integers(Names names) const {
  const json::Value* value = find(names);
  std::vector<std::int64_t> all;
  if (value == nullptr) return all;
  if (value->kind == json::Kind::text) {
    for (const std::string& part : split_at_commas(value->text)) {
      const std::optional<std::int64_t> integer = json::to_integer(part);
      if (!integer || *integer < 0)
        fail_at(*value, fmt::format("{} must be a list of integers", *names.begin()));
      all.push_back(*integer);
    }
    return all;
  }
  if (value->kind != json::Kind::array)
    fail_at(*value, fmt::format("{} must be a list of integers", *names.begin()));
  for (const json::Value& item : value->items) {
    if (item.kind == json::Kind::boolean) {
      all.push_back(item.boolean ? 1 : 0);
    } else if (item.kind == json::Kind::null) {
      all.push_back(0);
    } else {
      all.push_back(checked_integer(item, *names.begin()));
    }
  }
  return all;
}

std::vector<std::string> Config::texts(Names names) const {
  const json::Value* value = find(names);
  std::vector<std::string> all;
  if (value == nullptr) return all;
  if (value->kind == json::Kind::text) return split_at_commas(value->text);
  if (value->kind != json::Kind::array) fail_at(*value, fmt::format("{} must be a list", *names.begin()));
  for (const json::Value& item : value->items) all.push_back(json::as_text(file(), item, *names.begin()));
  return all;
}

std::int64_t Config::layer_integer_or(Names names, std::int32_t layer, std::int64_t fallback) const {
  const json::Value* value = find(names);
  if (value == nullptr) return fallback;
  if (value->kind == json::Kind::number) return checked_integer(*value, *names.begin());
  const auto index = static_cast<std::size_t>(layer);
  const auto check_length = [&](std::size_t length) {
    if (index < length) return;
    fail_at(*value,
            fmt::format("{} lists {} layers, but there is a layer {}", *names.begin(), length, layer));
  };
  if (value->kind == json::Kind::array) {
    check_length(value->items.size());
    // That item only: a list read as a whole would be read once a layer.
    const json::Value& item = value->items[index];
    if (item.kind == json::Kind::boolean) return item.boolean ? 1 : 0;
    return item.kind == json::Kind::null ? 0 : checked_integer(item, *names.begin());
  }
  const std::vector<std::int64_t> all = integers(names);
  check_length(all.size());
  return all[index];
}

void Config::fail(const std::string& message) const {
  throw InputError(fmt::format("{}: {}", file(), message));
}

void Config::fail_at(const json::Value& value, const std::string& message) const {
  json::fail(file(), value, message);
}

std::vector<std::string> Config::unasked() const {
  std::vector<std::string> keys;
  for (const std::string& key : inner_->keys) {
    if (asked_->find(key) == asked_->end() && !is_idle(key)) keys.push_back(json::printable(key));
  }
  return keys;
}

}  // namespace memwall
