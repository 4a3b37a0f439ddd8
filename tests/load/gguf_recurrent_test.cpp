// Recurrences, alone and beside attention.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/load/gguf_models.h"

namespace memwall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Inner width 128, state 16, kernel 4, dt rank 4.
SmallGguf& mamba_layer(SmallGguf& file, std::uint32_t layer) {
  return file.at(layer, "attn_norm.weight", {64})
      .at(layer, "ssm_in.weight", {64, 256})
      .at(layer, "ssm_conv1d.weight", {4, 128})
      .at(layer, "ssm_conv1d.bias", {128})
      .at(layer, "ssm_x.weight", {128, 36})
      .at(layer, "ssm_dt.weight", {4, 128})
      .at(layer, "ssm_dt.bias", {128})
      .at(layer, "ssm_a", {16, 128})
      .at(layer, "ssm_d", {128})
      .at(layer, "ssm_out.weight", {128, 64});
}

SmallGguf with_mamba(const char* architecture, std::uint32_t layers) {
  SmallGguf file(architecture, layers);
  file.key("ssm.inner_size", 128).key("ssm.state_size", 16).key("ssm.conv_kernel", 4);
  file.key("ssm.time_step_rank", 4).tables(true);
  return file;
}

TEST_F(GgufModels, ReadsMamba) {
  SmallGguf file = with_mamba("mamba", 2);
  mamba_layer(file, 0);
  mamba_layer(file, 1);
  const Model model = model_of(file);
  ASSERT_EQ(model.blocks.size(), 3U);
  const Block& mixer = model.blocks[1];
  EXPECT_EQ(mixer.name, "mamba");
  EXPECT_THAT(tensor_names(mixer), ElementsAre("mixer_norm", "in_proj", "x_proj", "dt_proj", "dt_proj.bias",
                                               "conv1d", "conv1d_bias", "A_log", "D", "out_proj"));
  // llama.cpp keeps the state and the convolution's last three inputs in f32.
  EXPECT_EQ(state_of<RecurrentState>(mixer),
            (RecurrentState{.elements = 128 * 16 + 3 * 128, .flops = 7 * 128 * 16 + 2 * 128 * 4}));
  EXPECT_EQ(state_bytes(model), 2 * 4 * (128 * 16 + 3 * 128));
  EXPECT_EQ(kv_bytes_per_token(model), 0);
  EXPECT_THAT(
      model_refusal(with_mamba("mamba", 1).at(0, "ssm_in.weight", {64, 200}).at(0, "ssm_x.weight", {1, 1})),
      HasSubstr("'blk.0.ssm_in.weight' has 200 rows, but mamba.ssm.inner_size make 256"));
}

TEST_F(GgufModels, ReadsAHybridOfMambaAndAttention) {
  SmallGguf file = with_mamba("jamba", 3);
  file.key("attention.head_count", 4).keys("attention.head_count_kv", {0, 2, 0});
  file.key("expert_count", 8).key("expert_used_count", 2);
  mamba_layer(file, 0).at(0, "ssm_dt_norm.weight", {4}).mlp(0);
  file.attention(1).at(1, "ffn_norm.weight", {64}).experts(1);
  mamba_layer(file, 2).at(2, "ssm_dt_norm.weight", {4}).mlp(2);
  const Model model = model_of(file);
  ASSERT_EQ(model.blocks.size(), 6U);
  EXPECT_THAT(model.blocks[1].layers, ElementsAre(0, 2));
  EXPECT_EQ(model.blocks[1].name, "mamba");
  EXPECT_EQ(model.blocks[1].find("dt_layernorm")->role, Role::norm);
  EXPECT_EQ(model.blocks[2].kind, BlockKind::mlp);
  EXPECT_EQ(model.blocks[3].kind, BlockKind::attention);
  EXPECT_FALSE(state_of<KvState>(model.blocks[3]).rotary);
  EXPECT_EQ(model.blocks[4].kind, BlockKind::moe);
  EXPECT_EQ(kv_bytes_per_token(model), 2 * 32 * 2);
}

// Two key heads of 8, four value heads of 8; the full layer's attn_q makes the output's gate, too.
TEST_F(GgufModels, ReadsDeltaNets) {
  SmallGguf file("qwen35", 2);
  file.heads().key("ssm.inner_size", 32).key("ssm.state_size", 8).key("ssm.conv_kernel", 4);
  file.key("ssm.time_step_rank", 4).key("ssm.group_count", 2).tables();
  file.at(0, "attn_norm.weight", {64}).at(0, "attn_qkv.weight", {64, 64}).at(0, "attn_gate.weight", {64, 32});
  file.at(0, "ssm_beta.weight", {64, 4})
      .at(0, "ssm_alpha.weight", {64, 4})
      .at(0, "ssm_conv1d.weight", {4, 64});
  file.at(0, "ssm_dt.bias", {4})
      .at(0, "ssm_a", {4})
      .at(0, "ssm_norm.weight", {8})
      .at(0, "ssm_out.weight", {32, 64});
  file.at(1, "attn_norm.weight", {64}).at(1, "attn_q.weight", {64, 128}).at(1, "attn_k.weight", {64, 32});
  file.at(1, "attn_v.weight", {64, 32}).at(1, "attn_output.weight", {64, 64});
  for (const std::uint32_t layer : {0U, 1U})
    file.at(layer, "post_attention_norm.weight", {64}).mlp_linears(layer, "");
  const Model model = model_of(file);
  const Block& delta = model.blocks[1];
  EXPECT_EQ(delta.name, "gated_delta_net");
  EXPECT_THAT(tensor_names(delta),
              ElementsAre("mixer_norm", "in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "conv1d",
                          "dt_bias", "A_log", "gated_norm", "out_proj"));
  EXPECT_EQ(delta.find("gated_norm")->rows, 4);
  EXPECT_EQ(state_of<RecurrentState>(delta).bytes(), 4 * (4 * 8 * 8 + 3 * 64));
  EXPECT_THAT(tensor_names(model.blocks[2]), ElementsAre("mlp_norm", "gate_proj", "up_proj", "down_proj"));
  EXPECT_EQ(model.blocks[3].find("q_proj")->out, 128);
  EXPECT_EQ(state_of<KvState>(model.blocks[3]).heads, 4);
}

TEST_F(GgufModels, ReadsMamba2BesideAttentionAndShortConvolutions) {
  SmallGguf falcon("falcon-h1", 1);
  falcon.heads().key("ssm.inner_size", 32).key("ssm.state_size", 8).key("ssm.conv_kernel", 4);
  falcon.key("ssm.time_step_rank", 4).key("ssm.group_count", 1).tables();
  falcon.attention(0).at(0, "ssm_in.weight", {64, 32 + 48 + 4}).at(0, "ssm_conv1d.weight", {4, 48});
  falcon.at(0, "ssm_dt.bias", {4})
      .at(0, "ssm_a", {1, 4})
      .at(0, "ssm_d", {1, 4})
      .at(0, "ssm_out.weight", {32, 64});
  falcon.at(0, "ffn_norm", {64}).mlp_linears(0, "");  // the converter forgot the suffix
  const Model both = model_of(falcon);
  ASSERT_EQ(both.blocks.size(), 5U);
  EXPECT_EQ(both.blocks[1].name, "mamba2");
  EXPECT_EQ(state_of<RecurrentState>(both.blocks[1]).bytes(), 4 * (32 * 8 + 3 * 48));
  EXPECT_EQ(both.blocks[2].kind, BlockKind::attention);
  EXPECT_EQ(both.blocks[3].find("mlp_norm")->out, 64);

  SmallGguf liquid("lfm2", 1);
  liquid.keys("attention.head_count_kv", {0}).key("attention.head_count", 4).key("shortconv.l_cache", 3);
  liquid.add("token_embd.weight", {64, 128}).add("token_embd_norm.weight", {64});
  liquid.at(0, "attn_norm.weight", {64}).at(0, "shortconv.conv.weight", {3, 64}).mlp(0);
  liquid.at(0, "shortconv.in_proj.weight", {64, 192}).at(0, "shortconv.out_proj.weight", {64, 64});
  const Model conv = model_of(liquid);
  EXPECT_EQ(conv.blocks[1].name, "short_conv");
  EXPECT_EQ(state_bytes(conv), 4 * 2 * 64);
  EXPECT_NE(conv.blocks.back().find("final_norm"), nullptr);
}

TEST_F(GgufModels, ReadsRwkv) {
  SmallGguf file("rwkv7", 1, "");
  file.key("wkv.head_size", 16).key("token_shift_count", 2).tables();
  file.add("token_embd_norm.weight", {64}).add("token_embd_norm.bias", {64});
  file.at(0, "attn_norm.weight", {64}).at(0, "attn_norm_2.weight", {64});
  for (const char* part : {"key", "value", "receptance", "output"})
    file.at(0, std::string("time_mix_") + part + ".weight", {64, 64});
  for (const char* part : {"w", "a", "v"}) {
    file.at(0, std::string("time_mix_") + part + "0.weight", {64});
    file.at(0, std::string("time_mix_") + part + "1.weight", {64, 8});
    file.at(0, std::string("time_mix_") + part + "2.weight", {8, 64});
  }
  file.at(0, "time_mix_lerp_fused.weight", {64, 1, 1, 6}).at(0, "time_mix_ln.weight", {64});
  file.at(0, "channel_mix_lerp_k.weight", {64, 1, 1}).at(0, "channel_mix_key.weight", {64, 256});
  file.at(0, "channel_mix_value.weight", {256, 64});
  const Model model = model_of(file);
  const Block& mix = model.blocks[1];
  EXPECT_EQ(mix.name, "rwkv");
  EXPECT_EQ(mix.find("v1")->read, Read::never);
  EXPECT_EQ(mix.find("w1")->read, Read::always);
  EXPECT_EQ(state_bytes(model), 4 * (64 * 16 + 2 * 64));
  EXPECT_EQ(model.blocks[2].activation, ActivationKind::relu);
  EXPECT_THAT(tensor_names(model.blocks[2]), ElementsAre("mlp_norm", "lerp_k", "up_proj", "down_proj"));
}

}  // namespace
}  // namespace memwall
