// What a model file may not say, and where the message points.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support.h"

namespace memwall {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The message for a file whose only layer is on line 4, from column 5 on.
std::string layer_error(const std::string& layer) { return model_error(with_layers("  - " + layer + "\n")); }

std::string top_error(const std::string& line) {
  return model_error("name: m\n" + line + "\nlayers:\n  - a: [8, 8]\n");
}

TEST(BadModel, TopLevelKeys) {
  EXPECT_EQ(top_error("hiden_size: 64"),
            "m.yaml:2:1: unknown key in a model 'hiden_size'; did you mean hidden_size?");
  EXPECT_EQ(top_error("weights: q4_9"), "m.yaml:2:10: unknown format 'q4_9'; did you mean q4_0?");
  EXPECT_EQ(top_error("weights: int4-g100"),
            "m.yaml:2:10: unknown format 'int4-g100'; did you mean int4-g128?");
  EXPECT_THAT(top_error("weights: 4"), StartsWith("m.yaml:2:10: unknown format '4'; did you mean "));
  EXPECT_EQ(top_error("kv: int9"), "m.yaml:2:5: unknown KV format 'int9'; did you mean int8?");
  EXPECT_EQ(top_error("norm: rsm"), "m.yaml:2:7: unknown norm 'rsm'; did you mean rms?");
  EXPECT_EQ(top_error("tie_embeddings: yes"), "m.yaml:2:17: tie_embeddings must be true or false");
  EXPECT_EQ(top_error("aliases: x"), "m.yaml:2:10: aliases must be a list");
  EXPECT_EQ(top_error("title: [x]"), "m.yaml:2:8: title must be text");
}

TEST(BadModel, Names) {
  EXPECT_EQ(model_error("layers:\n  - a: [8, 8]\n"), "m.yaml:1:1: a model lacks the key 'name'");
  EXPECT_EQ(model_error("name: Llama\nlayers:\n  - a: [8, 8]\n"),
            "m.yaml:1:7: the name 'Llama' may hold lower case letters, digits and . _ - only");
  EXPECT_THAT(model_error("name: a b\nlayers: []\n"), StartsWith("m.yaml:1:7: the name 'a b' may hold"));
  EXPECT_THAT(model_error("name: ../x\nlayers: []\n"), StartsWith("m.yaml:1:7: the name '../x' may hold"));
}

TEST(BadModel, NoMapping) {
  EXPECT_EQ(model_error("- a\n- b\n"), "m.yaml:1:1: a model must be a mapping of keys to values");
  EXPECT_EQ(model_error("llama"), "m.yaml:1:1: a model must be a mapping of keys to values");
  EXPECT_THAT(model_error("---\n"), HasSubstr("a model must be a mapping of keys to values"));
}

TEST(BadModel, SizesOutOfRange) {
  const std::string range = " must be a whole number from 1 to 2147483648";
  EXPECT_EQ(top_error("hidden_size: 0"), "m.yaml:2:14: hidden_size" + range + ", not 0");
  EXPECT_EQ(top_error("hidden_size: -4096"), "m.yaml:2:14: hidden_size" + range + ", not -4096");
  EXPECT_EQ(top_error("hidden_size: 1000000000000"),
            "m.yaml:2:14: hidden_size" + range + ", not 1000000000000");
  EXPECT_EQ(top_error("hidden_size: 2147483649"), "m.yaml:2:14: hidden_size" + range + ", not 2147483649");
  EXPECT_EQ(top_error("hidden_size: 2147483648"), "no InputError was thrown");
  EXPECT_EQ(top_error("hidden_size: 010"),
            "m.yaml:2:14: hidden_size" + range + " in plain decimal, not '010'");
  EXPECT_EQ(top_error("vocab_size: \"100\""), "m.yaml:2:13: vocab_size" + range + ", without quotes");
  EXPECT_EQ(layer_error("mlp: {intermediate: -1}"), "m.yaml:4:25: intermediate" + range + ", not -1");
  EXPECT_EQ(layer_error("a: [0, 8]"), "m.yaml:4:9: out" + range + ", not 0");
  EXPECT_EQ(layer_error("a: [8, 1e3]"), "m.yaml:4:12: in" + range + " in plain decimal, not '1e3'");
  EXPECT_EQ(layer_error("attention: {heads: 4, window: 0}"), "m.yaml:4:35: window" + range + ", not 0");
}

TEST(BadModel, TooManyLayers) {
  EXPECT_EQ(layer_error("{repeat: 1000000000000, a: [1, 1]}"),
            "m.yaml:4:14: repeat must be a whole number from 1 to 10000, not 1000000000000");
  EXPECT_EQ(layer_error("{repeat: 10001, a: [1, 1]}"),
            "m.yaml:4:14: repeat must be a whole number from 1 to 10000, not 10001");
  EXPECT_EQ(layer_error("{repeat: 0, a: [1, 1]}"),
            "m.yaml:4:14: repeat must be a whole number from 1 to 10000, not 0");
  EXPECT_EQ(model_error(with_layers("  - a: [1, 1]\n  - repeat: 10000\n    a: [1, 1]\n")),
            "m.yaml:5:5: more than 10000 layers");
  EXPECT_EQ(
      model_error(with_layers("  - repeat: 5001\n    pattern:\n      - a: [1, 1]\n      - b: [1, 1]\n")),
      "m.yaml:4:5: more than 10000 layers");
}

TEST(BadModel, ProductsThatOverflow) {
  const std::string huge = "2147483648";
  // One tensor: heads x head_dim is 2^62, and as rows of hidden_size 64 it passes 2^63.
  EXPECT_EQ(layer_error("attention: {heads: " + huge + ", head_dim: " + huge + "}"),
            "m.yaml:4:5: this block's sizes multiply to more than 2^63 - 1 bytes");
  EXPECT_EQ(
      model_error(
          "name: m\nhidden_size: 4096\nlayers:\n  - moe: {experts: 1048576, per_token: 1, intermediate: " +
          huge + "}\n"),
      "m.yaml:4:5: this block's sizes multiply to more than 2^63 - 1 bytes");
  EXPECT_EQ(layer_error("{x: [8, 8], a: [" + huge + ", " + huge + "]}"),
            "m.yaml:4:17: this block's sizes multiply to more than 2^63 - 1 bytes");
  // Each tensor fits, their sum does not.
  EXPECT_EQ(layer_error("{repeat: 10000, a: [" + huge + ", 1073741824]}"),
            "m.yaml:4:3: the layers' sizes multiply to more than 2^63 - 1 bytes");
  // Only the cache overflows.
  EXPECT_EQ(layer_error("kv_cache: {heads: " + huge + ", head_dim: " + huge + "}"),
            "m.yaml:4:3: the layers' sizes multiply to more than 2^63 - 1 bytes");
}

TEST(BadModel, HeadsThatDoNotDivide) {
  EXPECT_EQ(layer_error("attention: {heads: 8, kv_heads: 3}"),
            "m.yaml:4:37: heads (8) must be a multiple of kv_heads (3)");
  EXPECT_EQ(layer_error("attention: {heads: 4, kv_heads: 8}"),
            "m.yaml:4:37: heads (4) must be a multiple of kv_heads (8)");
  EXPECT_EQ(layer_error("attention: {heads: 5}"),
            "m.yaml:4:16: 5 heads do not divide hidden_size 64; give head_dim");
  EXPECT_EQ(layer_error("attention: {heads: 5, head_dim: 16}"), "no InputError was thrown");
}

TEST(BadModel, MissingSizes) {
  EXPECT_EQ(model_error("name: m\nlayers:\n  - attention: {heads: 4, head_dim: 8}\n"),
            "m.yaml:1:1: a model with a vocabulary, attention, mixer, mlp or moe needs hidden_size");
  EXPECT_THAT(model_error("name: m\nlayers:\n  - pattern:\n      - mlp: {intermediate: 8}\n"),
              HasSubstr("needs hidden_size"));
  EXPECT_THAT(top_error("vocab_size: 8"), HasSubstr("needs hidden_size"));
  EXPECT_THAT(top_error("final_norm: true"), HasSubstr("needs hidden_size"));
  EXPECT_EQ(model_error("name: m\nlayers:\n  - kv_cache: {heads: 4}\n"),
            "m.yaml:3:15: kv_cache needs head_dim");
  EXPECT_EQ(layer_error("attention: {kv_heads: 4}"), "m.yaml:4:16: attention lacks the key 'heads'");
  EXPECT_EQ(layer_error("mlp: {gated: true}"), "m.yaml:4:10: mlp lacks the key 'intermediate'");
  EXPECT_EQ(layer_error("moe: {experts: 4, intermediate: 8}"), "m.yaml:4:10: moe lacks the key 'per_token'");
  EXPECT_EQ(layer_error("mlp:"), "m.yaml:4:5: mlp must be a mapping of keys to values");
}

TEST(BadModel, VocabularyKeysWithoutAVocabulary) {
  for (const char* line : {"positions: 8", "tie_embeddings: true", "lm_head_bias: true"}) {
    EXPECT_EQ(top_error(line), "m.yaml:1:1: positions, tie_embeddings and lm_head_bias need vocab_size")
        << line;
  }
}

TEST(BadModel, Layers) {
  EXPECT_EQ(model_error("name: m\n"), "m.yaml:1:1: a model lacks the key 'layers'");
  EXPECT_EQ(model_error("name: m\nlayers: []\n"),
            "m.yaml:2:9: layers must be a list of layers, each a mapping");
  EXPECT_EQ(model_error("name: m\nlayers: 32\n"),
            "m.yaml:2:9: layers must be a list of layers, each a mapping");
  EXPECT_EQ(model_error("name: m\nlayers: {a: [8, 8]}\n"),
            "m.yaml:2:9: layers must be a list of layers, each a mapping");
  EXPECT_THAT(model_error("name: m\nlayers:\n"), StartsWith("m.yaml:2:1: layers has no value"));
  EXPECT_EQ(layer_error("attention"), "m.yaml:4:5: a layer must be a mapping of keys to values");
  EXPECT_EQ(layer_error("{}"), "m.yaml:4:5: a layer needs a block: attention, mixer, mlp, moe or a shape");
  EXPECT_EQ(layer_error("{repeat: 3}"),
            "m.yaml:4:5: a layer needs a block: attention, mixer, mlp, moe or a shape");
}

TEST(BadModel, Patterns) {
  EXPECT_EQ(layer_error("pattern: []"), "m.yaml:4:14: pattern must be a list of layers");
  EXPECT_EQ(layer_error("pattern: {a: [8, 8]}"), "m.yaml:4:14: pattern must be a list of layers");
  EXPECT_EQ(layer_error("pattern: [{pattern: [{a: [8, 8]}]}]"),
            "m.yaml:4:16: pattern belongs to an entry of layers, not into a pattern");
  EXPECT_EQ(layer_error("pattern: [{repeat: 2, a: [8, 8]}]"),
            "m.yaml:4:16: repeat belongs to an entry of layers, not into a pattern");
  EXPECT_THAT(layer_error("{pattern: [{a: [8, 8]}], mlp: {intermediate: 8}}"),
              StartsWith("m.yaml:4:30: 'mlp' stands beside pattern"));
}

TEST(BadModel, MisspeltBlocksAndKeys) {
  EXPECT_EQ(layer_error("atention: {heads: 4}"),
            "m.yaml:4:5: unknown key in a layer 'atention'; did you mean attention? A linear of its own is "
            "atention: "
            "[out, in]");
  EXPECT_THAT(layer_error("{mlp: {intermediate: 8}, repaet: 3}"),
              StartsWith("m.yaml:4:30: unknown key in a layer 'repaet'; did you mean repeat?"));
  EXPECT_EQ(layer_error("attention: {head: 4}"), "m.yaml:4:16: attention lacks the key 'heads'");
  EXPECT_EQ(layer_error("attention: {heads: 4, head_dims: 4}"),
            "m.yaml:4:27: unknown key in attention 'head_dims'; did you mean head_dim?");
  EXPECT_EQ(layer_error("mlp: {intermediate: 8, wieghts: 4}"),
            "m.yaml:4:28: unknown key in mlp 'wieghts'; did you mean weights?");
  EXPECT_EQ(layer_error("mlp: {intermediate: 8, activation: swish}"),
            "m.yaml:4:40: unknown activation 'swish'; did you mean silu?");
  EXPECT_EQ(layer_error("attention: {heads: 4, bias: [x]}"),
            "m.yaml:4:34: unknown bias 'x'; did you mean q?");
  EXPECT_EQ(layer_error("attention: {heads: 4, bias: {q: true}}"),
            "m.yaml:4:33: bias must be true, false or a list of q, k, v, o");
  EXPECT_EQ(layer_error("attention: {heads: 4, qk_norm: heads}"),
            "m.yaml:4:36: unknown qk_norm 'heads'; did you mean head?");
  EXPECT_EQ(layer_error("mlp: {intermediate: 8, fused_gate_up: true, gated: false}"),
            "m.yaml:4:10: fused_gate_up needs gated: true");
}

TEST(BadModel, Shapes) {
  EXPECT_EQ(layer_error("a: [8]"), "m.yaml:4:8: a: a shape is [out, in]");
  EXPECT_EQ(layer_error("a: [8, 8, 8]"), "m.yaml:4:8: a: a shape is [out, in]");
  EXPECT_EQ(layer_error("a: {shape: 8}"), "m.yaml:4:16: a: a shape is [out, in]");
  EXPECT_EQ(layer_error("a: {shape: [8, 8], weight: q8_0}"),
            "m.yaml:4:24: unknown key in a 'weight'; did you mean weights?");
  EXPECT_THAT(layer_error("a: 8"), StartsWith("m.yaml:4:5: unknown key in a layer 'a'"));
}

TEST(BadModel, Experts) {
  EXPECT_EQ(layer_error("moe: {experts: 4, per_token: 5, intermediate: 8}"),
            "m.yaml:4:34: per_token must be a whole number from 1 to 4, not 5");
  EXPECT_EQ(layer_error("moe: {experts: 4, per_token: 2, intermediate: 8, shared: {gate: true}}"),
            "m.yaml:4:62: shared lacks the key 'intermediate'");
}

TEST(BadModel, PublishedCounts) {
  EXPECT_EQ(top_error("parameters: {published: 5}"), "m.yaml:2:13: parameters lacks the key 'source'");
  EXPECT_EQ(top_error("parameters: {published: 5, source: x, buffers: 2}"),
            "m.yaml:2:13: parameters has buffers: say what they are in buffers_are");
  EXPECT_EQ(top_error("parameters: 5"), "m.yaml:2:13: parameters must be a mapping of keys to values");
}

}  // namespace
}  // namespace memwall
