// Checkpoints for the tests of the binder: a small Llama's tensors, and a configuration bound to a file.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "huggingface/read_config.h"
#include "input/json.h"
#include "load/safetensors_model.h"
#include "model/model.h"
#include "tests/checkpoint/safetensors_writer.h"
#include "tests/support.h"

namespace memwall {

inline Model config_model(const std::string& config) {
  return model_from_config(json::parse(config, "config.json"), "test");
}

inline std::int64_t extra_bytes(const Model& model) {
  std::int64_t bytes = 0;
  for (const Extra& extra : model.extras) bytes += extra.bytes;
  return bytes;
}

// Binds, and holds the model to the binder's promise.
inline Model bind_exactly(const std::string& config, const Checkpoint& checkpoint) {
  Model model = bind_checkpoint(config_model(config), checkpoint);
  EXPECT_EQ(stored_bytes(model) + extra_bytes(model), checkpoint.data_bytes);
  return model;
}

inline Model bind_exactly(const std::string& config, const SafetensorsWriter& file) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  file.write(path);
  return bind_exactly(config, read_safetensors_file(path));
}

inline std::string bind_error(const std::string& config, const SafetensorsWriter& file) {
  return error_of([&] { bind_exactly(config, file); });
}

inline const Block* block_of(const Model& model, BlockKind kind, std::int32_t layer = -1) {
  for (const Block& block : model.blocks) {
    if (block.kind != kind) continue;
    if (layer < 0 || std::find(block.layers.begin(), block.layers.end(), layer) != block.layers.end())
      return &block;
  }
  return nullptr;
}

// A tensor that must be there; a plain one where it is not.
inline Tensor tensor_of(const Model& model, BlockKind kind, const std::string& name,
                        std::int32_t layer = -1) {
  const Block* block = block_of(model, kind, layer);
  const Tensor* tensor = block != nullptr ? block->find(name) : nullptr;
  EXPECT_NE(tensor, nullptr) << name;
  return tensor != nullptr ? *tensor : Tensor{.name = "missing", .format = {}};
}

inline const Extra* extra_of(const Model& model, const std::string& word) {
  for (const Extra& extra : model.extras) {
    if (extra.what.find(word) != std::string::npos) return &extra;
  }
  return nullptr;
}

inline std::string all_warnings(const Model& model) {
  std::string text;
  for (const std::string& warning : model.warnings) text += warning + "\n";
  return text;
}

// A Llama of two layers: hidden 64, 4 heads of 16, 2 for keys and values, an MLP of 128, a vocabulary of 256.
inline std::string llama_config(const std::string& more = "") {
  return R"({"model_type":"llama","torch_dtype":"bfloat16","hidden_size":64,"num_hidden_layers":2,
    "num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":128,"vocab_size":256)" +
         more + "}";
}

struct Linear {
  const char* path;
  std::int64_t out;
  std::int64_t in;
};
inline const std::vector<Linear>& llama_linears() {
  static const std::vector<Linear> all = {{"self_attn.q_proj", 64, 64}, {"self_attn.k_proj", 32, 64},
                                          {"self_attn.v_proj", 32, 64}, {"self_attn.o_proj", 64, 64},
                                          {"mlp.gate_proj", 128, 64},   {"mlp.up_proj", 128, 64},
                                          {"mlp.down_proj", 64, 128}};
  return all;
}

// All but the linears; `head` says whether an lm_head is stored.
inline void add_llama_rest(SafetensorsWriter& file, bool head = true) {
  file.add("model.embed_tokens.weight", "BF16", {256, 64}).add("model.norm.weight", "BF16", {64});
  if (head) file.add("lm_head.weight", "BF16", {256, 64});
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      file.add(fmt::format("model.layers.{}.{}.weight", layer, norm), "BF16", {64});
  }
}

// Every linear of both layers, by what `add` makes of "model.layers.0.mlp.up_proj", its rows and its columns.
template <typename Add>
void add_llama_linears(SafetensorsWriter& file, Add add) {
  for (int layer = 0; layer < 2; ++layer) {
    for (const Linear& linear : llama_linears())
      add(file, fmt::format("model.layers.{}.{}", layer, linear.path), linear.out, linear.in);
  }
}

inline void add_plain(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight", "BF16", {out, in});
}

}  // namespace memwall
