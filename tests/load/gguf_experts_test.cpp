// Experts and latents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/load/gguf_models.h"

namespace memwall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(GgufModels, ReadsExperts) {
  SmallGguf file("qwen3moe", 1);
  file.heads().key("expert_count", 8).key("expert_used_count", 2).tables();
  file.attention(0).at(0, "attn_q_norm.weight", {16}).at(0, "attn_k_norm.weight", {16});
  file.at(0, "ffn_norm.weight", {64}).experts(0);
  const Model model = model_of(file);
  const Block& moe = model.blocks[2];
  EXPECT_EQ(moe.kind, BlockKind::moe);
  EXPECT_EQ(moe.experts_per_token, 2);
  EXPECT_TRUE(moe.gated);
  EXPECT_THAT(tensor_names(moe),
              ElementsAre("mlp_norm", "router", "experts.gate_proj", "experts.up_proj", "experts.down_proj"));
  EXPECT_EQ(moe.find("router")->role, Role::router);
  const Tensor& down = *moe.find("experts.down_proj");
  EXPECT_EQ(down.role, Role::expert);
  EXPECT_EQ(down.read, Read::per_expert);
  EXPECT_EQ(down.copies, 8);
  EXPECT_EQ(down.out, 64);
  EXPECT_EQ(down.in, 32);
  const std::int64_t attention = 64 + 64 * 64 * 2 + 64 * 32 * 2 + 32;
  EXPECT_EQ(count_parameters(model).active, 64 * 128 + 64 + attention + 64 + 64 * 8 + 2 * 3 * 64 * 32);
  EXPECT_EQ(count_parameters(model).total, 2 * 64 * 128 + 64 + attention + 64 + 64 * 8 + 8 * 3 * 64 * 32);
}

// gpt-oss: biases, sinks, and the norm that stands before the experts is called post_attention_norm.
TEST_F(GgufModels, ReadsExpertsWithBiases) {
  SmallGguf file("gpt-oss", 1);
  file.heads()
      .key("expert_count", 8)
      .key("expert_used_count", 2)
      .key("attention.sliding_window", 128)
      .tables();
  file.attention(0).at(0, "attn_sinks.weight", {4}).at(0, "post_attention_norm.weight", {64});
  file.at(0, "ffn_gate_inp.weight", {64, 8}).at(0, "ffn_gate_inp.bias", {8});
  file.tensor("blk.0.ffn_gate_exps.weight", "MXFP4", {64, 32, 8});
  file.tensor("blk.0.ffn_up_exps.weight", "MXFP4", {64, 32, 8});
  file.tensor("blk.0.ffn_down_exps.weight", "MXFP4", {32, 64, 8});
  file.tensor("blk.0.ffn_down_exps.bias", "F32", {64, 8});
  const Model model = model_of(file);
  EXPECT_THAT(tensor_names(model.blocks[1]),
              ElementsAre("attn_norm", "q_proj", "k_proj", "v_proj", "sinks", "o_proj"));
  const Block& moe = model.blocks[2];
  EXPECT_THAT(tensor_names(moe),
              ElementsAre("mlp_norm", "router", "router.bias", "experts.gate_proj", "experts.up_proj",
                          "experts.down_proj", "experts.down_proj.bias"));
  EXPECT_EQ(moe.find("experts.down_proj.bias")->copies, 8);
  EXPECT_EQ(moe.find("experts.down_proj.bias")->out, 64);
  EXPECT_EQ(moe.find("experts.down_proj.bias")->read, Read::per_expert);
  EXPECT_EQ(format_name(model.weights), "mxfp4");
}

TEST_F(GgufModels, ReadsTheExpertsOfOldFiles) {
  SmallGguf file("llama", 1);
  file.heads().key("expert_count", 2).key("expert_used_count", 1).tables().attention(0);
  file.at(0, "ffn_norm.weight", {64}).at(0, "ffn_gate_inp.weight", {64, 2});
  file.mlp_linears(0, ".0").mlp_linears(0, ".1");
  const Model model = model_of(file);
  EXPECT_THAT(tensor_names(model.blocks[2]),
              ElementsAre("mlp_norm", "router", "experts.gate_proj", "experts.up_proj", "experts.down_proj"));
  EXPECT_EQ(model.blocks[2].tensors[2].copies, 2);
  EXPECT_TRUE(model.blocks[2].gated);
}

// NVFP4 keeps an f32 a tensor beside it, which memwall's format has inside.
TEST_F(GgufModels, ScalesBelongToTheirTensor) {
  SmallGguf file("arcee", 1);
  file.heads().tables().attention(0);
  file.tensor("blk.0.ffn_up.weight", "NVFP4", {64, 96});
  file.at(0, "ffn_up.scale", {1});
  file.tensor("blk.0.ffn_down.weight", "Q2_0", {128, 64});
  EXPECT_THAT(model_refusal(file), HasSubstr("'blk.0.ffn_up.weight' has 96 rows"));
  SmallGguf fits("arcee", 1);
  fits.heads().tables().attention(0);
  fits.tensor("blk.0.ffn_up.weight", "NVFP4", {64, 128});
  fits.at(0, "ffn_up.scale", {1});
  fits.tensor("blk.0.ffn_down.weight", "Q2_0", {128, 64});
  const Model model = model_of(fits);
  const Block& mlp = model.blocks[2];
  EXPECT_EQ(format_name(mlp.find("up_proj")->format), "nvfp4");
  EXPECT_EQ(mlp.find("up_proj")->bytes(), 64 * 128 / 64 * 36 + 4);
  EXPECT_EQ(mlp.find("up_proj")->stored_bytes, -1);
  EXPECT_EQ(mlp.find("down_proj")->bytes(), 64 * 128 / 64 * 18);  // no format of memwall's: as the file says
  EXPECT_EQ(mlp.find("down_proj")->stored_bytes, 64 * 128 / 64 * 18);
}

// DeepSeek-V3 in small: 2 heads of 16 + 8, latents of 32 + 8, values of 12, one layer for prediction.
SmallGguf deepseek(bool split) {
  SmallGguf file("deepseek2", 3);
  file.key("attention.head_count", 2).key("attention.head_count_kv", 1).key("attention.kv_lora_rank", 32);
  file.key("attention.q_lora_rank", 48).key("nextn_predict_layers", 1).key("leading_dense_block_count", 1);
  file.key("expert_count", 8).key("expert_used_count", 2).tables();
  for (const std::uint32_t layer : {0U, 1U, 2U}) {
    file.at(layer, "attn_norm.weight", {64}).at(layer, "attn_q_a.weight", {64, 48});
    file.at(layer, "attn_q_a_norm.weight", {48}).at(layer, "attn_q_b.weight", {48, 48});
    file.at(layer, "attn_kv_a_mqa.weight", {64, 40}).at(layer, "attn_kv_a_norm.weight", {32});
    if (split) {
      file.at(layer, "attn_k_b.weight", {16, 32, 2}).at(layer, "attn_v_b.weight", {32, 12, 2});
    } else {
      file.at(layer, "attn_kv_b.weight", {32, 56});
    }
    file.at(layer, "attn_output.weight", {24, 64});
    if (layer == 0) {
      file.mlp(0);
    } else {
      file.at(layer, "ffn_norm.weight", {64}).experts(layer).at(layer, "exp_probs_b.bias", {8});
      file.mlp_linears(layer, "_shexp", 32);
    }
  }
  return file.at(2, "nextn.eh_proj.weight", {128, 64}).at(2, "nextn.enorm.weight", {64});
}

TEST_F(GgufModels, ReadsLatentAttention) {
  const Model model = model_of(deepseek(true));
  EXPECT_EQ(model.layers, 2);
  EXPECT_TRUE(model.warnings.empty());
  ASSERT_EQ(model.blocks.size(), 6U);
  const Block& mla = model.blocks[1];
  EXPECT_EQ(mla.kind, BlockKind::mixer);
  EXPECT_EQ(mla.name, "mla");
  EXPECT_THAT(tensor_names(mla), ElementsAre("attn_norm", "q_a_proj", "kv_a_proj_with_mqa", "kv_a_layernorm",
                                             "q_a_layernorm", "q_b_proj", "k_b_proj", "v_b_proj", "o_proj"));
  EXPECT_EQ(state_of<LatentState>(mla),
            (LatentState{.heads = 2, .rank = 32, .rope = 8, .d_nope = 16, .d_v = 12}));
  EXPECT_EQ(mla.states[0].before, 7U);  // between the two
  EXPECT_EQ(mla.find("k_b_proj")->out, 2 * 32);
  EXPECT_EQ(mla.find("k_b_proj")->in, 16);
  const Block& moe = model.blocks[4];
  EXPECT_THAT(tensor_names(moe),
              ElementsAre("mlp_norm", "router", "router.bias", "experts.gate_proj", "experts.up_proj",
                          "experts.down_proj", "shared_expert.gate_proj", "shared_expert.up_proj",
                          "shared_expert.down_proj"));
  ASSERT_EQ(model.extras.size(), 1U);
  EXPECT_EQ(model.extras[0].what, "1 multi-token-prediction layer");
  EXPECT_EQ(model.extras[0].tensors, 20);
  EXPECT_EQ(kv_bytes_per_token(model), 2 * (32 + 8) * 2);
}

TEST_F(GgufModels, ReadsLatentAttentionOfOldFiles) {
  const Model split = model_of(deepseek(true));
  const Model whole = model_of(deepseek(false));
  EXPECT_EQ(count_parameters(split).total, count_parameters(whole).total);
  EXPECT_EQ(kv_bytes_per_token(split), kv_bytes_per_token(whole));
  EXPECT_EQ(whole.blocks[1].find("kv_b_proj")->out, 2 * (16 + 12));
  EXPECT_THAT(whole.warnings, ElementsAre(HasSubstr("attn_kv_b is not split")));
  SmallGguf wrong = deepseek(true).key("attention.key_length_mla", 20);
  EXPECT_EQ(model_refusal(wrong),
            "tensor 'blk.0.attn_q_b.weight' has 48 rows, but 2 heads "
            "(deepseek2.attention.head_count) of 20 make 40");
}

// Gemma 4 with experts: an MLP beside them, narrower heads in windows, caches that later layers share.
TEST_F(GgufModels, ReadsGemma4) {
  SmallGguf file("gemma4", 2);
  file.heads().key("expert_count", 8).key("expert_used_count", 2).key("attention.sliding_window", 512);
  file.keys("attention.sliding_window_pattern", {1, 0}).key("attention.shared_kv_layers", 1);
  file.key("attention.key_length", 32).key("attention.key_length_swa", 16);
  file.key("attention.value_length", 32).key("attention.value_length_swa", 16).tables(true);
  file.add("per_layer_token_embd.weight", {16, 128});
  file.attention(0).mlp(0).experts(0).at(0, "ffn_gate_inp.scale", {64}).at(0, "ffn_down_exps.scale", {8});
  file.at(0, "post_ffw_norm_1.weight", {64})
      .at(0, "pre_ffw_norm_2.weight", {64})
      .at(0, "post_ffw_norm_2.weight", {64});
  file.at(0, "post_ffw_norm.weight", {64}).at(0, "layer_output_scale.weight", {1});
  file.at(1, "attn_norm.weight", {64}).at(1, "attn_q.weight", {64, 128}).at(1, "attn_k.weight", {64, 64});
  file.at(1, "attn_output.weight", {128, 64}).mlp(1);
  const Model model = model_of(file);
  EXPECT_FALSE(model.approximate);
  EXPECT_EQ(model.blocks[0].find("embed_tokens_per_layer")->read, Read::gathered);
  EXPECT_EQ(state_of<KvState>(model.blocks[1]).d_k, 16);
  EXPECT_THAT(tensor_names(model.blocks[2]),
              ElementsAre("mlp_norm", "gate_proj", "up_proj", "down_proj", "mlp_post_norm"));
  EXPECT_THAT(tensor_names(model.blocks[3]),
              ElementsAre("mlp_norm", "router.scale", "router", "experts.gate_proj", "experts.up_proj",
                          "experts.down_proj", "experts_post_norm", "mlp_post_norm"));
  EXPECT_EQ(model.blocks[3].find("experts.down_proj")->stored_bytes, 8 * 64 * 32 * 2 + 8 * 4);
  const Block& shared = model.blocks[5];
  EXPECT_TRUE(state_of<KvState>(shared).shared);
  EXPECT_EQ(state_of<KvState>(shared).d_k, 32);
  EXPECT_EQ(shared.find("k_proj")->read, Read::never);
  EXPECT_EQ(kv_bytes_per_token(model), 2 * 32 * 2);
}

// Gemma 3n's layers share the caches of the first twenty, and store K and V that they do not use.
TEST_F(GgufModels, ReadsGemma3n) {
  SmallGguf file("gemma3n", 21);
  file.heads().key("attention.sliding_window", 512).tables(true);
  file.add("altup_proj.weight", {64, 64, 3}).add("altup_unembd_proj.weight", {64, 64, 3});
  file.add("per_layer_token_embd.weight", {8 * 21, 128}).add("per_layer_model_proj.weight", {64, 8 * 21});
  file.add("per_layer_proj_norm.weight", {8});
  for (std::uint32_t layer = 0; layer < 21; ++layer) {
    file.attention(layer)
        .mlp(layer)
        .at(layer, "laurel_l.weight", {64, 4})
        .at(layer, "laurel_r.weight", {4, 64});
    file.at(layer, "altup_router.weight", {64, 4}).at(layer, "altup_router_norm.weight", {64});
    file.at(layer, "altup_correct_scale.weight", {64}).at(layer, "inp_gate.weight", {64, 8});
    file.at(layer, "proj.weight", {8, 64}).at(layer, "post_norm.weight", {64});
  }
  const Model model = model_of(file);
  EXPECT_FALSE(model.approximate);
  EXPECT_THAT(tensor_names(model.blocks[0]),
              ElementsAre("embed_tokens", "embed_tokens_per_layer", "per_layer_model_projection",
                          "per_layer_projection_norm", "altup_projections"));
  EXPECT_EQ(model.blocks[0].tensors[3].rows, 21);
  EXPECT_EQ(kv_bytes_per_token(model), 20 * 2 * 32 * 2);
  EXPECT_EQ(model.blocks[model.blocks.size() - 4].find("v_proj")->read, Read::never);
}

}  // namespace
}  // namespace memwall
