// The rule of docs/model-format.md for --weights and --head-weights.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "support.h"

namespace memwall {
namespace {

Format format(const char* name) { return find_format(name).value(); }

// A model with a tensor of every role, stored as `weights`.
Model every_role(const std::string& weights) {
  return read_model("name: m\nweights: " + weights +
                    "\nhidden_size: 64\nvocab_size: 100\npositions: 10\nlm_head_bias: true\nlayers:\n"
                    "  - attention: {heads: 4, bias: true}\n"
                    "    moe: {experts: 4, per_token: 1, intermediate: 32, router_bias: true}\n");
}

// Every tensor of the role(s) has the format.
void expect_formats(const Model& model, const char* linears, const char* head, const char* small) {
  EXPECT_EQ(format_name(model.weights), linears);
  EXPECT_EQ(format_name(model.head), head);
  int roles_seen = 0;
  for (const Block& block : model.blocks) {
    for (const Tensor& tensor : block.tensors) {
      switch (tensor.role) {
        case Role::linear:
        case Role::expert:
          EXPECT_EQ(format_name(tensor.format), linears) << tensor.name;
          roles_seen |= tensor.role == Role::linear ? 1 : 2;
          break;
        case Role::embedding:
        case Role::positions:
        case Role::lm_head:
          EXPECT_EQ(format_name(tensor.format), head) << tensor.name;
          roles_seen |= tensor.role == Role::embedding ? 4 : tensor.role == Role::positions ? 8 : 16;
          break;
        case Role::router:
        case Role::norm:
        case Role::bias:
        case Role::parameter:
          EXPECT_EQ(format_name(tensor.format), small) << tensor.name;
          roles_seen |= tensor.role == Role::router ? 32 : tensor.role == Role::norm ? 64 : 128;
          break;
      }
    }
  }
  EXPECT_EQ(roles_seen, 255);
}

TEST(WithWeights, HeadFollowsPlainFloatsAndGgmlTypes) {
  for (const char* name : {"f32", "f16", "q8_0", "q4_0", "q4_1", "q5_0", "q4_k", "q6_k", "iq4_xs", "tq2_0"}) {
    SCOPED_TRACE(name);
    expect_formats(with_weights(every_role("bf16"), format(name), std::nullopt), name, name, "bf16");
  }
}

TEST(WithWeights, HeadStays16BitForTheFormatsOfCheckpoints) {
  for (const char* name : {"int4-g128", "int4-g32-zp", "f8_e4m3", "f8_e4m3-b128", "mxfp4", "nvfp4"}) {
    SCOPED_TRACE(name);
    expect_formats(with_weights(every_role("bf16"), format(name), std::nullopt), name, "bf16", "bf16");
    expect_formats(with_weights(every_role("f16"), format(name), std::nullopt), name, "f16", "f16");
  }
}

TEST(WithWeights, HeadWeightsOverride) {
  expect_formats(with_weights(every_role("bf16"), format("int4-g128"), format("q8_0")), "int4-g128", "q8_0",
                 "bf16");
  expect_formats(with_weights(every_role("bf16"), format("q4_0"), format("f16")), "q4_0", "f16", "bf16");
  expect_formats(with_weights(every_role("bf16"), std::nullopt, format("q6_k")), "bf16", "q6_k", "bf16");
}

TEST(WithWeights, NothingAskedChangesNothing) {
  expect_formats(with_weights(every_role("f32"), std::nullopt, std::nullopt), "f32", "f32", "f32");
  expect_formats(with_weights(every_role("q4_0"), std::nullopt, std::nullopt), "q4_0", "q4_0", "bf16");
}

TEST(WithWeights, AnF32ModelGets16BitNorms) {
  expect_formats(with_weights(every_role("f32"), format("q8_0"), std::nullopt), "q8_0", "q8_0", "f16");
  expect_formats(with_weights(every_role("f32"), format("int4-g128"), std::nullopt), "int4-g128", "f16",
                 "f16");
  expect_formats(with_weights(every_role("f32"), format("bf16"), std::nullopt), "bf16", "bf16", "bf16");
  expect_formats(with_weights(every_role("f32"), format("f16"), std::nullopt), "f16", "f16", "f16");
}

TEST(WithWeights, AQuantisedModelCanBeAskedForAnotherFormat) {
  expect_formats(with_weights(every_role("q4_0"), format("f8_e4m3"), std::nullopt), "f8_e4m3", "f16", "bf16");
  expect_formats(with_weights(every_role("int4-g128"), format("q8_0"), std::nullopt), "q8_0", "q8_0", "bf16");
}

TEST(WithWeights, BlocksOfTheirOwnFormatChangeToo) {
  const Model model = read_model(
      with_layers("  - attention: {heads: 4, weights: f16}\n    a: {shape: [8, 8], weights: f32}\n"));
  for (const Block& block : with_weights(model, format("q4_0"), std::nullopt).blocks) {
    for (const Tensor& tensor : block.tensors) {
      EXPECT_EQ(format_name(tensor.format), tensor.role == Role::linear ? "q4_0" : "bf16") << tensor.name;
    }
  }
}

TEST(WithWeights, ChangesBytesAndNotCountsOrKv) {
  const Model model = read_model(
      "name: m\nhidden_size: 64\nvocab_size: 100\ntie_embeddings: true\nlayers:\n"
      "  - attention: {heads: 4}\n");
  const Model q8 = with_weights(model, format("q8_0"), std::nullopt);
  EXPECT_EQ(count_parameters(q8).total, count_parameters(model).total);
  EXPECT_EQ(kv_bytes_per_token(q8), kv_bytes_per_token(model));
  // Four 64x64 linears of 2 blocks a row, the table of 100 rows, two norms of 64.
  EXPECT_EQ(stored_bytes(q8), 4 * 64 * 2 * 34 + 100 * 2 * 34 + 2 * 64 * 2);
  EXPECT_EQ(read_bytes(q8), stored_bytes(q8));  // the tied table is read as the lm_head
}

}  // namespace
}  // namespace memwall
