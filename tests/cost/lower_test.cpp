#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cost/op.h"
#include "input/yaml.h"
#include "load/load_model.h"
#include "model/yaml_model.h"

namespace memwall {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names(const std::vector<Op>& ops) {
  std::vector<std::string> result;
  for (const Op& op : ops) result.push_back(op.name);
  return result;
}

Model model_of(const std::string& yaml) { return model_from_yaml(yaml::parse(yaml, "test.yaml")); }

// The one op of that name.
const Op& named(const std::vector<Op>& ops, const std::string& name) {
  const auto it = std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.name == name; });
  if (it == ops.end()) throw std::runtime_error("no op " + name);
  return *it;
}

const ElementwiseWork& elementwise(const std::vector<Op>& ops, const std::string& name) {
  return std::get<ElementwiseWork>(named(ops, name).work);
}

TEST(Lower, LlamaInOrder) {
  const std::vector<Op> ops = lower(find_model("llama-3.1-8b"));
  EXPECT_THAT(names(ops),
              ElementsAre("embed_tokens", "attn_norm", "q_proj", "k_proj", "v_proj", "rotary", "attention",
                          "o_proj", "attn_residual", "mlp_norm", "gate_proj", "up_proj", "activation",
                          "down_proj", "mlp_residual", "final_norm", "lm_head"));
  EXPECT_EQ(named(ops, "q_proj").count(), 32);
  EXPECT_EQ(named(ops, "lm_head").count(), 1);
  EXPECT_TRUE(named(ops, "lm_head").layers.empty());
}

TEST(Lower, GemmaTwiceWithNormsOnBothSides) {
  const std::vector<std::string> block = {"attn_norm",     "q_proj",    "k_proj",        "v_proj",
                                          "rotary",        "attention", "o_proj",        "attn_post_norm",
                                          "attn_residual", "mlp_norm",  "gate_proj",     "up_proj",
                                          "activation",    "down_proj", "mlp_post_norm", "mlp_residual"};
  std::vector<std::string> expected = {"embed_tokens"};
  for (int i = 0; i < 2; ++i) expected.insert(expected.end(), block.begin(), block.end());
  expected.insert(expected.end(), {"final_norm", "lm_head"});
  EXPECT_EQ(names(lower(find_model("gemma-2-9b"))), expected);
}

TEST(Lower, MixtralRoutesThenRunsItsExperts) {
  const std::vector<Op> ops = lower(find_model("mixtral-8x7b"));
  EXPECT_THAT(names(ops),
              ElementsAre("embed_tokens", "attn_norm", "q_proj", "k_proj", "v_proj", "rotary", "attention",
                          "o_proj", "attn_residual", "mlp_norm", "router", "experts.gate_proj",
                          "experts.up_proj", "experts.activation", "experts.down_proj", "experts.combine",
                          "mlp_residual", "final_norm", "lm_head"));
  EXPECT_EQ(named(ops, "router").kind(), OpKind::router);
  EXPECT_EQ(named(ops, "experts.up_proj").kind(), OpKind::expert);
  const auto& expert = std::get<ExpertWork>(named(ops, "experts.down_proj").work);
  EXPECT_EQ(expert.total, 8);
  EXPECT_EQ(expert.per_token, 2);
  EXPECT_EQ(expert.each.out, 4096);
  EXPECT_EQ(expert.each.in, 14336);
  EXPECT_EQ(std::get<RouterWork>(named(ops, "router").work).linear.out, 8);
  // Two experts a token, gated; their outputs are weighted and summed.
  EXPECT_EQ(elementwise(ops, "experts.activation").rows_per_token, 2);
  EXPECT_EQ(elementwise(ops, "experts.activation").width, 14336);
  EXPECT_EQ(elementwise(ops, "experts.combine").inputs, 2);
  EXPECT_EQ(elementwise(ops, "experts.combine").flops_per_element, 4);
}

TEST(Lower, QkNormsRunBeforeTheRotary) {
  const std::vector<Op> ops = lower(find_model("qwen3-8b"));
  EXPECT_THAT(names({ops.begin() + 2, ops.begin() + 9}),
              ElementsAre("q_proj", "k_proj", "v_proj", "q_norm", "k_norm", "rotary", "attention"));
  EXPECT_EQ(elementwise(ops, "q_norm").rows_per_token, 32);
  EXPECT_EQ(elementwise(ops, "q_norm").width, 128);
  EXPECT_EQ(elementwise(ops, "q_norm").weights, 128);
  EXPECT_EQ(elementwise(ops, "k_norm").rows_per_token, 8);
}

TEST(Lower, AQkNormOfTheWholeProjectionRunsOnceAToken) {
  const std::vector<Op> ops = lower(model_of(R"(
name: full-norms
hidden_size: 64
layers:
  - attention: {heads: 4, kv_heads: 2, head_dim: 16, qk_norm: full}
)"));
  EXPECT_EQ(elementwise(ops, "q_norm").rows_per_token, 1);
  EXPECT_EQ(elementwise(ops, "q_norm").width, 64);
  EXPECT_EQ(elementwise(ops, "k_norm").width, 32);
}

TEST(Lower, AnOlderModelFusedBiasedAndWithLearnedPositions) {
  const std::vector<Op> ops = lower(model_of(R"(
name: gpt
hidden_size: 64
vocab_size: 100
positions: 32
norm: layer
tie_embeddings: true
layers:
  - attention: {heads: 4, head_dim: 16, bias: true, rotary: false, fused_qkv: true}
    mlp: {intermediate: 256, gated: false, activation: relu, bias: true}
)"));
  EXPECT_THAT(names(ops), ElementsAre("embed_tokens", "embed_positions", "attn_norm", "qkv_proj", "attention",
                                      "o_proj", "attn_residual", "mlp_norm", "up_proj", "activation",
                                      "down_proj", "mlp_residual", "final_norm", "lm_head"));
  const auto& qkv = std::get<LinearWork>(named(ops, "qkv_proj").work);
  EXPECT_EQ(qkv.out, 192);
  EXPECT_TRUE(qkv.bias);
  EXPECT_EQ(elementwise(ops, "attn_norm").function, ElementwiseFunction::layer_norm);
  EXPECT_EQ(elementwise(ops, "attn_norm").flops_per_element, 7);
  EXPECT_EQ(elementwise(ops, "attn_norm").weights, 128);  // and as many biases
  EXPECT_EQ(elementwise(ops, "activation").inputs, 1);
  EXPECT_EQ(elementwise(ops, "activation").flops_per_element, 1);
  EXPECT_TRUE(std::get<LinearWork>(named(ops, "lm_head").work).last_token_only);
  EXPECT_TRUE(elementwise(ops, "final_norm").last_token_only);
  EXPECT_FALSE(elementwise(ops, "attn_norm").last_token_only);
}

TEST(Lower, ElementwiseOpsAsTheFormulasTableThem) {
  const std::vector<Op> ops = lower(find_model("llama-3.1-8b"));
  EXPECT_EQ(elementwise(ops, "attn_norm").function, ElementwiseFunction::rms_norm);
  EXPECT_EQ(elementwise(ops, "attn_norm").flops_per_element, 4);
  EXPECT_EQ(elementwise(ops, "attn_norm").inputs, 1);
  EXPECT_EQ(elementwise(ops, "rotary").rows_per_token, 32 + 8);
  EXPECT_EQ(elementwise(ops, "rotary").width, 128);
  EXPECT_EQ(elementwise(ops, "rotary").flops_per_element, 3);
  EXPECT_EQ(elementwise(ops, "activation").inputs, 2);
  EXPECT_EQ(elementwise(ops, "activation").flops_per_element, 5);
  EXPECT_EQ(elementwise(ops, "mlp_residual").inputs, 2);
  EXPECT_EQ(elementwise(ops, "mlp_residual").flops_per_element, 1);

  const std::vector<Op> plain = lower(model_of(R"(
name: plain
hidden_size: 64
norm: layer_no_bias
layers:
  - mlp: {intermediate: 256, gated: false, activation: gelu}
)"));
  EXPECT_EQ(elementwise(plain, "mlp_norm").flops_per_element, 6);
  EXPECT_EQ(elementwise(plain, "activation").flops_per_element, 4);
}

TEST(Lower, WhatFusesAndWhatSharesALaunch) {
  for (const Model& model : zoo()) {
    const std::vector<Op> ops = lower(model);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      const bool small = op.kind() == OpKind::elementwise || op.kind() == OpKind::embedding;
      EXPECT_EQ(op.fusible, small) << model.name << " " << op.name;
      // Only what reads the same input as the linear right before it, in the same layers.
      const LinearWork* linear = linear_of(op.work);
      const LinearWork* before = i > 0 ? linear_of(ops[i - 1].work) : nullptr;
      const bool may_join = linear != nullptr && before != nullptr && linear->in == before->in &&
                            op.layers == ops[i - 1].layers;
      EXPECT_TRUE(may_join || !op.joins_previous) << model.name << " " << op.name;
    }
  }
  for (const char* name : {"llama-3.1-8b", "qwen2.5-7b", "mixtral-8x7b", "qwen1.5-moe-a2.7b"}) {
    for (const Op& op : lower(find_model(name))) {
      const bool joins = op.name == "k_proj" || op.name == "v_proj" || op.name == "up_proj" ||
                         op.name == "experts.up_proj" || op.name == "shared_expert.up_proj" ||
                         op.name == "shared_expert.gate";
      EXPECT_EQ(op.joins_previous, joins) << name << " " << op.name;
    }
  }
}

TEST(Lower, AnUngatedUpProjectionIsALaunchOfItsOwn) {
  const std::vector<Op> ops = lower(model_of(R"(
name: ungated
hidden_size: 64
layers:
  - mlp: {intermediate: 256, gated: false}
)"));
  EXPECT_FALSE(named(ops, "up_proj").joins_previous);
}

TEST(Lower, ASharedExpertComesAfterTheRoutedOnes) {
  const std::vector<Op> ops = lower(model_of(R"(
name: shared
hidden_size: 64
layers:
  - moe: {experts: 4, per_token: 2, intermediate: 32, shared: {intermediate: 48, gate: true}}
)"));
  EXPECT_THAT(names(ops), ElementsAre("mlp_norm", "router", "shared_expert.gate", "experts.gate_proj",
                                      "experts.up_proj", "experts.activation", "experts.down_proj",
                                      "experts.combine", "shared_expert.gate_proj", "shared_expert.up_proj",
                                      "shared_expert.activation", "shared_expert.down_proj", "mlp_residual"));
  EXPECT_EQ(elementwise(ops, "shared_expert.activation").rows_per_token, 1);
  EXPECT_EQ(elementwise(ops, "shared_expert.activation").width, 48);
}

TEST(Lower, ShapesAndACacheByThemselves) {
  const std::vector<Op> ops = lower(model_of(R"(
name: shapes
layers:
  - first_proj: [3, 5]
    kv_cache: {heads: 4, kv_heads: 2, head_dim: 16}
    second_proj: {shape: [5, 3], bias: true}
)"));
  EXPECT_THAT(names(ops), ElementsAre("first_proj", "attention", "second_proj"));
  EXPECT_FALSE(std::get<LinearWork>(ops[0].work).bias);
  EXPECT_TRUE(std::get<LinearWork>(ops[2].work).bias);
  EXPECT_EQ(std::get<AttentionWork>(ops[1].work).kv_heads, 2);
}

TEST(Lower, TheCacheFormatIsTheModels) {
  Model model = find_model("llama-3.1-8b");
  model.kv = KvFormat::int8;
  EXPECT_EQ(std::get<AttentionWork>(named(lower(model), "attention").work).kv, KvFormat::int8);
}

TEST(GroupEqual, GemmaKeepsItsTwoAttentionsApart) {
  const std::vector<Op> grouped = group_equal(lower(find_model("gemma-2-9b")));
  EXPECT_THAT(
      names(grouped),
      ElementsAre("embed_tokens", "attn_norm", "q_proj", "k_proj", "v_proj", "rotary", "attention", "o_proj",
                  "attn_post_norm", "attn_residual", "mlp_norm", "gate_proj", "up_proj", "activation",
                  "down_proj", "mlp_post_norm", "mlp_residual", "attention", "final_norm", "lm_head"));
  const Op& q = named(grouped, "q_proj");
  EXPECT_EQ(q.count(), 42);
  for (std::int32_t layer = 0; layer < 42; ++layer)
    EXPECT_EQ(q.layers[static_cast<std::size_t>(layer)], layer);
  std::vector<const Op*> attentions;
  for (const Op& op : grouped) {
    if (op.name == "attention") attentions.push_back(&op);
  }
  ASSERT_EQ(attentions.size(), 2U);
  EXPECT_EQ(attentions[0]->count(), 21);
  EXPECT_EQ(attentions[1]->count(), 21);
  EXPECT_EQ(std::get<AttentionWork>(attentions[0]->work).window, 4096);
  EXPECT_EQ(std::get<AttentionWork>(attentions[1]->work).window, 0);
  EXPECT_EQ(attentions[0]->layers.front(), 0);
  EXPECT_EQ(attentions[1]->layers.front(), 1);
}

TEST(GroupEqual, UnlikeFormatsStayApart) {
  const std::vector<Op> grouped = group_equal(lower(model_of(R"(
name: formats
layers:
  - proj: [4, 32]
  - proj: {shape: [4, 32], weights: q8_0}
  - proj: [4, 32]
)")));
  ASSERT_EQ(grouped.size(), 2U);
  EXPECT_THAT(grouped[0].layers, ElementsAre(0, 2));
  EXPECT_THAT(grouped[1].layers, ElementsAre(1));
}

TEST(OpKind, EveryNameOfTheDesign) {
  std::vector<std::string> all;
  for (const OpKind kind : {OpKind::linear, OpKind::attention, OpKind::expert, OpKind::router,
                            OpKind::recurrent, OpKind::elementwise, OpKind::embedding}) {
    all.emplace_back(op_kind_name(kind));
  }
  EXPECT_THAT(
      all, ElementsAre("linear", "attention", "expert", "router", "recurrent", "elementwise", "embedding"));
}

TEST(LinearOf, FindsTheLinearInside) {
  const LinearWork linear{
      .out = 3, .in = 5, .format = {}, .bias = false, .bias_format = {}, .last_token_only = false};
  EXPECT_EQ(*linear_of(Work{linear}), linear);
  EXPECT_EQ(*linear_of(Work{RouterWork{linear, 2}}), linear);
  EXPECT_EQ(*linear_of(Work{ExpertWork{linear, 4, 2}}), linear);
  EXPECT_EQ(linear_of(Work{AttentionWork{}}), nullptr);
  EXPECT_EQ(linear_of(Work{ElementwiseWork{}}), nullptr);
  EXPECT_EQ(linear_of(Work{EmbeddingWork{}}), nullptr);
}

}  // namespace
}  // namespace memwall
