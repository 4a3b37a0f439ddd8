#include "load/gguf_sorted.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "checkpoint/gguf_bytes.h"
#include "format/checked.h"

namespace memwall {
namespace {

bool begins(const std::string& text, std::string_view start) {
  return text.compare(0, start.size(), start) == 0;
}

// A tensor's name as "blk.LAYER.REST".
struct PlacedName {
  std::int32_t layer = -1;  // outside the layers
  std::string rest;
};

PlacedName split_name(const std::string& name) {
  if (!begins(name, "blk.")) return {-1, name};
  std::size_t at = 4;
  std::int32_t layer = 0;
  while (at < name.size() && at < 10 && name[at] >= '0' && name[at] <= '9')
    layer = layer * 10 + (name[at++] - '0');
  const bool number = at > 4 && at < name.size() && name[at] == '.' && (name[4] != '0' || at == 5);
  if (!number) return {-1, name};
  return {layer, name.substr(at + 1)};
}

// What a decode step of the language model does not run; nullptr for all else.
const char* extra_of(const PlacedName& name) {
  const std::string& rest = name.rest;
  const auto is_any = [&](std::initializer_list<const char*> starts) {
    return std::any_of(starts.begin(), starts.end(), [&](const char* start) { return begins(rest, start); });
  };
  if (is_any({"rope_freqs", "rope_factors_", "attn_rot_embd"})) return "rotary tables";
  if (begins(rest, "nextn.")) return "multi-token prediction";
  if (is_any({"vis_", "exp_probs_b_vl"})) return "vision experts";
  // One row of it a token, in place of a choice by the router.
  if (begins(rest, "ffn_gate_tid2eid")) return "tables of experts by token";
  if (name.layer >= 0) return nullptr;
  if (is_any({"a.", "mm.a."})) return "an audio encoder";
  if (is_any({"v.", "mm.", "vision."})) return "a vision tower";
  if (is_any({"cls", "dense_2", "dense_3", "token_types"})) return "embedding and ranking heads";
  return nullptr;
}

void add_extra(std::vector<Extra>& extras, const std::string& what, const StoredTensor& tensor) {
  auto found =
      std::find_if(extras.begin(), extras.end(), [&](const Extra& extra) { return extra.what == what; });
  if (found == extras.end()) found = extras.insert(extras.end(), Extra{.what = what});
  ++found->tensors;
  found->parameters = checked_add(found->parameters, tensor.elements());
  found->bytes = checked_add(found->bytes, tensor.bytes);
}

}  // namespace

GgufSorted sort_gguf_tensors(const GgufSource& source) {
  GgufSorted sorted{GgufTensors(source), {}, {}};
  for (std::int32_t layer = 0; layer < source.layers(); ++layer) sorted.layers.emplace_back(source, layer);
  const std::int32_t predicting = source.blocks() - source.layers();
  for (const StoredTensor& tensor : source.file().tensors) {
    const PlacedName name = split_name(tensor.name);
    if (name.layer >= source.blocks()) {
      source.fail(fmt::format("tensor '{}' is of layer {}, but '{}' is {}", excerpt(tensor.name), name.layer,
                              source.key("block_count"), source.blocks()));
    }
    if (name.layer >= source.layers()) {
      add_extra(sorted.extras,
                fmt::format("{} multi-token-prediction layer{}", predicting, predicting > 1 ? "s" : ""),
                tensor);
    } else if (const char* what = extra_of(name)) {
      add_extra(sorted.extras, what, tensor);
    } else if (name.layer >= 0) {
      sorted.layers[static_cast<std::size_t>(name.layer)].put(name.rest, tensor);
    } else {
      sorted.outside.put(name.rest, tensor);
    }
  }
  return sorted;
}

}  // namespace memwall
