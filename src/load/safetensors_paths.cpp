#include "load/safetensors_paths.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace memwall {
namespace {

// What a language model may be inside of.
constexpr std::array<std::string_view, 16> kWrappers = {
    "model",  "language_model",   "text_model", "transformer", "backbone", "gpt_neox", "decoder",
    "llm",    "module",           "thinker",    "base_model",  "rwkv",     "lm",       "text_decoder",
    "biogpt", "gpt_neox_japanese"};
constexpr std::array<std::string_view, 6> kLayerLists = {"layers", "h",     "blocks",
                                                         "layer",  "block", "decoder_layers"};

// How the first component of a part begins that decoding text does not run.
struct Beginning {
  std::string_view text;
  Region region;
};
constexpr std::array kBeginnings = {
    Beginning{"visi", Region::vision},
    Beginning{"visual", Region::vision},
    Beginning{"image", Region::vision},
    Beginning{"img_", Region::vision},
    Beginning{"vit", Region::vision},
    Beginning{"mm_", Region::vision},
    Beginning{"multi_modal", Region::vision},
    Beginning{"multimodal", Region::vision},
    Beginning{"vpm", Region::vision},
    Beginning{"resampler", Region::vision},
    Beginning{"mlp1", Region::vision},
    Beginning{"connector", Region::vision},
    Beginning{"perceiver", Region::vision},
    Beginning{"aligner", Region::vision},
    Beginning{"projector", Region::vision},
    Beginning{"sam_", Region::vision},
    Beginning{"merger", Region::vision},
    Beginning{"patch_", Region::vision},
    Beginning{"embed_vision", Region::vision},
    Beginning{"audio", Region::audio},
    Beginning{"embed_audio", Region::audio},
    Beginning{"speech", Region::audio},
    Beginning{"apm", Region::audio},
    Beginning{"talker", Region::audio},
    Beginning{"token2wav", Region::audio},
    Beginning{"code2wav", Region::audio},
    Beginning{"tts", Region::audio},
    Beginning{"whisper", Region::audio},
    Beginning{"sound", Region::audio},
    Beginning{"mtp", Region::next_token},
    Beginning{"nextn", Region::next_token},
    Beginning{"medusa", Region::draft},
    Beginning{"eagle", Region::draft},
    Beginning{"draft", Region::draft},
    Beginning{"speculat", Region::draft},
    Beginning{"score", Region::other_head},
    Beginning{"v_head", Region::other_head},
    Beginning{"value_head", Region::other_head},
    Beginning{"reward", Region::other_head},
    Beginning{"classif", Region::other_head},
    Beginning{"qa_output", Region::other_head},
};

template <std::size_t count>
bool is_one_of(const std::array<std::string_view, count>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view first_of(std::string_view path) { return path.substr(0, path.find('.')); }
std::string_view last_of(std::string_view path) { return path.substr(path.rfind('.') + 1); }

// Behind the first component; empty where there is none.
std::string_view rest_of(std::string_view path) {
  const std::size_t dot = path.find('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
}

std::optional<std::int32_t> number(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0 || text.empty())
    return std::nullopt;
  return value;
}

// Buffers and adapters are known by their own names, wherever they are.
std::optional<Region> region_of_kind(std::string_view module) {
  constexpr std::array<std::string_view, 5> kRotary = {"freqs_cis", "freqs", "cos_cached", "sin_cached",
                                                       "rope_freqs"};
  constexpr std::array<std::string_view, 9> kMasks = {
      "masked_bias", "causal_mask", "attn_mask", "attention_mask", "alibi",
      // lightning attention's decays, by position
      "slope_rate", "query_decay", "key_decay", "diagonal_decay"};
  const std::string_view last = last_of(module);
  if (is_one_of(kRotary, last) || last.ends_with("inv_freq")) return Region::rotary;
  if (is_one_of(kMasks, last)) return Region::mask;
  if (module.find("lora_") != std::string_view::npos) return Region::adapter;
  return std::nullopt;
}

// A list that a decoder has several of in a layer.
bool is_numbered(std::string_view list) {
  return list == "self_attn" || list == "mlps" || list.ends_with("layernorm") || list.ends_with("norm");
}

// Lists whose members are alike: experts, and a norm for each head.
bool is_list(std::string_view list) { return list.ends_with("experts") || list == "norms"; }

void append(std::string& path, std::string_view component) {
  if (!path.empty()) path += '.';
  path += component;
}

// The path inside a layer, or outside of all, with its numbers taken out.
void read_inner(std::string_view path, StoredPath& result) {
  result.path.reserve(path.size());
  std::string_view list;
  for (; !path.empty(); path = rest_of(path)) {
    const std::string_view component = first_of(path);
    if (component == "base_layer") continue;  // of a module with adapters
    const std::optional<std::int32_t> index = number(component);
    if (!index) {
      append(result.path, component);
    } else if (result.ordinal < 0 && is_numbered(list)) {
      result.ordinal = *index;
    } else {
      append(result.path, is_list(list) ? "#" : component);
    }
    list = component;
  }
}

}  // namespace

StoredPath stored_path(std::string_view module) {
  StoredPath result;
  std::string_view path = module;
  for (std::string_view wrapper; !rest_of(path).empty(); path = rest_of(path)) {
    const std::string_view word = first_of(path);
    // ChatGLM's decoder is its "encoder".
    const bool chatglm = word == "encoder" && wrapper == "transformer";
    if (!is_one_of(kWrappers, word) && !chatglm) break;
    wrapper = word;
  }
  const std::string_view first = first_of(path);
  for (const Beginning& beginning : kBeginnings) {
    if (!first.starts_with(beginning.text)) continue;
    result.region = beginning.region;
    return result;
  }
  if (const std::optional<Region> region = region_of_kind(path)) {
    result.region = *region;
    return result;
  }
  const std::string_view behind = rest_of(path);
  if (const std::optional<std::int32_t> index = number(first_of(behind));
      index && is_one_of(kLayerLists, first)) {
    result.region = Region::layer;
    result.layer = *index;
    path = rest_of(behind);
  } else if (path.find(".layers.") != std::string_view::npos ||
             path.find(".blocks.") != std::string_view::npos) {
    result.region = Region::elsewhere;  // another stack of layers
    return result;
  }
  read_inner(path, result);
  return result;
}

}  // namespace memwall
