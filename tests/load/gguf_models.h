// GGUF files of small models, for the tests of the reader that makes models of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cost/op.h"
#include "load/gguf_model.h"
#include "tests/checkpoint/gguf_files.h"

namespace memwall {

class GgufModels : public GgufFiles {
 protected:
  // Reads what `writer` writes, and checks that every byte of it was placed.
  Model model_of(const GgufWriter& writer) const {
    const Gguf file = read(writer);
    Model model = model_from_gguf(file);
    std::int64_t stored = 0;
    for (const StoredTensor& tensor : file.tensors) stored += tensor.bytes;
    std::int64_t placed = stored_bytes(model);
    for (const Extra& extra : model.extras) placed += extra.bytes;
    EXPECT_EQ(placed, stored);
    EXPECT_FALSE(lower(model).empty());
    return model;
  }
  std::string model_refusal(const GgufWriter& writer) const {
    writer.write(path());
    const std::string message = error_of([&] { load_gguf(path()); });
    EXPECT_TRUE(message.starts_with(path() + ": ")) << message;
    return message.substr(std::min(path().size() + 2, message.size()));
  }
};

// The metadata and tensors of a small decoder: hidden 64, 4 heads of 16, 2 KV heads, MLP of 96, 128 tokens.
class SmallGguf : public GgufWriter {
 public:
  std::string architecture;

  explicit SmallGguf(const std::string& name, std::uint32_t layers = 2, const std::string& epsilon = "rms_")
      : architecture(name) {
    text("general.architecture", name);
    key("embedding_length", 64).key("block_count", layers).key("context_length", 4096);
    number(name + ".attention.layer_norm_" + epsilon + "epsilon", 1e-5F);
  }

  SmallGguf& key(const std::string& suffix, std::uint32_t value) {
    integer(architecture + "." + suffix, value);
    return *this;
  }
  SmallGguf& keys(const std::string& suffix, const std::vector<std::int32_t>& values) {
    integers(architecture + "." + suffix, values);
    return *this;
  }
  SmallGguf& heads() { return key("attention.head_count", 4).key("attention.head_count_kv", 2); }

  // A vector is F32, as llama.cpp keeps them; a matrix F16.
  SmallGguf& add(const std::string& name, const std::vector<std::uint64_t>& ne) {
    tensor(name, ne.size() == 1 ? "F32" : "F16", ne);
    return *this;
  }
  SmallGguf& at(std::uint32_t layer, const std::string& name, const std::vector<std::uint64_t>& ne) {
    return add("blk." + std::to_string(layer) + "." + name, ne);
  }

  SmallGguf& tables(bool tied = false) {
    add("token_embd.weight", {64, 128}).add("output_norm.weight", {64});
    if (!tied) add("output.weight", {64, 128});
    return *this;
  }
  SmallGguf& attention(std::uint32_t layer) {
    return at(layer, "attn_norm.weight", {64})
        .at(layer, "attn_q.weight", {64, 64})
        .at(layer, "attn_k.weight", {64, 32})
        .at(layer, "attn_v.weight", {64, 32})
        .at(layer, "attn_output.weight", {64, 64});
  }
  SmallGguf& mlp(std::uint32_t layer) { return at(layer, "ffn_norm.weight", {64}).mlp_linears(layer, ""); }
  SmallGguf& mlp_linears(std::uint32_t layer, const std::string& suffix, std::uint64_t width = 96) {
    return at(layer, "ffn_gate" + suffix + ".weight", {64, width})
        .at(layer, "ffn_up" + suffix + ".weight", {64, width})
        .at(layer, "ffn_down" + suffix + ".weight", {width, 64});
  }
  // Eight experts of width 32.
  SmallGguf& experts(std::uint32_t layer) {
    return at(layer, "ffn_gate_inp.weight", {64, 8})
        .at(layer, "ffn_gate_exps.weight", {64, 32, 8})
        .at(layer, "ffn_up_exps.weight", {64, 32, 8})
        .at(layer, "ffn_down_exps.weight", {32, 64, 8});
  }
};

inline std::vector<std::string> tensor_names(const Block& block) {
  std::vector<std::string> names;
  for (const Tensor& tensor : block.tensors) names.push_back(tensor.name);
  return names;
}

template <typename State>
const State& state_of(const Block& block, std::size_t index = 0) {
  return std::get<State>(block.states.at(index).state);
}

}  // namespace memwall
