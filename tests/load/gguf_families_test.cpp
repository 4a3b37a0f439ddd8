// Families of 2026 in llama.cpp's names, each beside the config.json of the same model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/load/gguf_configs.h"

namespace memwall {
namespace {

using testing::HasSubstr;

const std::string kMoe =
    R"(, "n_routed_experts": 8, "num_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1,
    "num_shared_experts": 1, "moe_intermediate_size": 32, "first_k_dense_replace": 1, "intermediate_size": 96)";

// The second layer has experts, the first an MLP.
void feed_forwards(SmallGguf& file) {
  file.key("expert_count", 8).key("expert_used_count", 2);
  file.mlp(0).at(1, "ffn_norm.weight", {64}).experts(1).mlp_linears(1, "_shexp", 32);
  file.at(1, "exp_probs_b.bias", {8});
}

// Latent attention: `heads` with keys of `nope` + 4 and values of `value`, latents of `rank`.
struct Latents {
  std::uint64_t heads = 4;
  std::uint64_t rank = 16;
  std::uint64_t nope = 8;
  std::uint64_t value = 8;
  std::uint64_t q_rank = 8;  // 0: queries without one
};

void latent_attention(SmallGguf& file, std::uint32_t layer, const Latents& of) {
  const std::uint64_t queries = of.heads * (of.nope + 4);
  file.at(layer, "attn_norm.weight", {64});
  if (of.q_rank > 0) {
    file.at(layer, "attn_q_a.weight", {64, of.q_rank}).at(layer, "attn_q_a_norm.weight", {of.q_rank});
    file.at(layer, "attn_q_b.weight", {of.q_rank, queries});
  } else {
    file.at(layer, "attn_q.weight", {64, queries});
  }
  file.at(layer, "attn_kv_a_mqa.weight", {64, of.rank + 4}).at(layer, "attn_kv_a_norm.weight", {of.rank});
  file.at(layer, "attn_k_b.weight", {of.nope, of.rank, of.heads});
  file.at(layer, "attn_v_b.weight", {of.rank, of.value, of.heads});
  file.at(layer, "attn_output.weight", {of.heads * of.value, 64});
}

void indexer(SmallGguf& file, std::uint32_t layer) {
  file.at(layer, "indexer.k_norm.weight", {8}).at(layer, "indexer.k_norm.bias", {8});
  file.at(layer, "indexer.proj.weight", {64, 2}).at(layer, "indexer.attn_k.weight", {64, 8});
  file.at(layer, "indexer.attn_q_b.weight", {8, 16});
}

const std::string kMla = R"(, "q_lora_rank": 8, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 8)";
const std::string kIndexer = R"(, "index_n_heads": 2, "index_head_dim": 8, "index_topk": 32)";

void latent_keys(SmallGguf& file) {
  file.key("attention.q_lora_rank", 8).key("attention.kv_lora_rank", 16);
  file.key("attention.key_length_mla", 12).key("attention.value_length_mla", 8);
}
void indexer_keys(SmallGguf& file) {
  file.key("attention.indexer.head_count", 2).key("attention.indexer.key_length", 8);
  file.key("attention.indexer.top_k", 32);
}

// Delta attention of 4 heads of 16; `low_rank`: of its decay.
void delta_attention(SmallGguf& file, std::uint32_t layer, bool low_rank) {
  file.at(layer, "attn_norm.weight", {64});
  for (const char* part : {"q", "k", "v"}) {
    file.at(layer, std::string("attn_") + part + ".weight", {64, 64});
    file.at(layer, std::string("ssm_conv1d_") + part + ".weight", {4, 1, 64});
  }
  file.at(layer, "ssm_f_a.weight", {64, low_rank ? 16U : 64U});
  if (low_rank) file.at(layer, "ssm_f_b.weight", {16, 64});
  file.at(layer, "ssm_beta.weight", {64, 4}).at(layer, "ssm_a", {4}).at(layer, "ssm_dt.bias", {64});
  file.at(layer, "ssm_norm.weight", {16}).at(layer, "attn_output.weight", {64, 64});
}
const std::string kDelta = R"(, "num_hidden_layers": 2, "linear_attn_config": {"full_attn_layers": [2],
    "kda_layers": [1], "num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4)";

void delta_keys(SmallGguf& file) {
  file.key("attention.head_count", 4).keys("attention.head_count_kv", {0, 1});
  file.key("kda.head_dim", 16).key("ssm.conv_kernel", 4);
}

void hyper(SmallGguf& file, std::uint32_t layer, std::uint64_t mixes, std::uint64_t scales) {
  for (const std::string part : {"attn", "ffn"}) {
    file.at(layer, "hc_" + part + "_fn.weight", {256, mixes});
    file.at(layer, "hc_" + part + "_base.weight", {mixes})
        .at(layer, "hc_" + part + "_scale.weight", {scales});
  }
}

TEST_F(GgufModels, ReadsDotsNoteAsItsConfig) {
  SmallGguf file("dots3note", 2);
  file.keys("attention.head_count", {2, 4}).key("attention.head_count_kv", 1);
  latent_keys(file);
  indexer_keys(file);
  file.key("attention.kv_lora_rank_swa", 24).key("attention.key_length_mla_swa", 16);
  file.key("attention.value_length_mla_swa", 10).key("attention.sliding_window", 16);
  file.keys("attention.sliding_window_pattern", {1, 0}).tables();
  latent_attention(file, 0, {.heads = 2, .rank = 24, .nope = 12, .value = 10});
  latent_attention(file, 1, {});
  indexer(file, 1);
  file.at(0, "attn_gate.weight", {64, 2}).at(1, "attn_gate.weight", {64, 4});
  for (const std::uint32_t layer : {0U, 1U}) file.at(layer, "attn_k_norm.weight", {4});
  feed_forwards(file);
  const Model model = model_of(file);
  expect_same(model, small_config("dots3_note", R"("num_hidden_layers": 2,
      "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 16,
      "swa_num_attention_heads": 2, "swa_q_lora_rank": 8, "swa_kv_lora_rank": 24, "swa_qk_nope_head_dim": 12,
      "swa_v_head_dim": 10)" + kMla + kIndexer + kMoe));
  EXPECT_EQ(kv_cache_bytes(model, 1000), 2 * (16 * 28 + 1000 * (20 + 8)));
}

TEST_F(GgufModels, ReadsKimiK3AsItsConfig) {
  SmallGguf file("kimi-k3", 2);
  delta_keys(file);
  latent_keys(file);
  file.key("attn_res.block_size", 1).key("expert_latent_length", 24).tables();
  delta_attention(file, 0, true);
  file.at(0, "ssm_g.weight", {64, 64});
  latent_attention(file, 1, {.q_rank = 0});
  file.at(1, "attn_gate.weight", {64, 32}).add("output_res_score.weight", {64});
  for (const std::uint32_t layer : {0U, 1U})
    file.at(layer, "attn_res_score.weight", {64}).at(layer, "ffn_res_score.weight", {64});
  file.key("expert_count", 8).key("expert_used_count", 2).mlp(0);
  file.at(1, "ffn_norm.weight", {64}).at(1, "ffn_gate_inp.weight", {64, 8}).at(1, "exp_probs_b.bias", {8});
  file.at(1, "ffn_gate_exps.weight", {24, 32, 8}).at(1, "ffn_up_exps.weight", {24, 32, 8});
  file.at(1, "ffn_down_exps.weight", {32, 24, 8}).mlp_linears(1, "_shexp", 32);
  file.at(1, "ffn_routed_down.weight", {64, 24}).at(1, "ffn_routed_up.weight", {24, 64});
  file.at(1, "ffn_routed_norm.weight", {24});
  // The converter multiplies each of five norms with its query.
  expect_same(model_of(file),
              small_config("kimi_linear", R"("kv_lora_rank": 16, "qk_nope_head_dim": 8,
      "qk_rope_head_dim": 4, "v_head_dim": 8, "num_experts": 8, "num_experts_per_token": 2,
      "moe_intermediate_size": 32, "num_shared_experts": 1, "first_k_dense_replace": 1, "moe_layer_freq": 1,
      "intermediate_size": 96, "routed_expert_hidden_size": 24, "latent_moe_use_norm": true,
      "mla_use_output_gate": true, "attn_res_block_size": 1)" +
                                              kDelta + R"(, "use_full_rank_gate": true})"),
              5 * 64);
}

TEST_F(GgufModels, ReadsBailingMoe3AsItsConfig) {
  SmallGguf file("bailingmoe3", 2);
  delta_keys(file);
  latent_keys(file);
  file.tables();
  delta_attention(file, 0, false);
  file.at(0, "ssm_g_a.weight", {64, 64});
  latent_attention(file, 1, {});
  file.at(1, "attn_gate.weight", {64, 4});
  feed_forwards(file);
  expect_same(model_of(file), small_config("bailing_hybrid", R"("num_hidden_layers": 2, "head_dim": 16,
      "layer_group_size": 2, "short_conv_kernel_size": 4)" + kMla +
                                                                 kMoe));
}

TEST_F(GgufModels, ReadsGlm5NextAsItsConfig) {
  SmallGguf file("glm5-next", 2);
  delta_keys(file);
  latent_keys(file);
  indexer_keys(file);
  file.key("attention.indexer.kpool", 16).key("hyper_connection.count", 4).tables();
  delta_attention(file, 0, true);
  file.at(0, "ssm_g_a.weight", {64, 16}).at(0, "ssm_g_b.weight", {16, 64});
  latent_attention(file, 1, {});
  indexer(file, 1);
  file.at(1, "indexer_compressor_gate.weight", {64, 8}).at(1, "indexer_compressor_ape.weight", {8, 16});
  for (const std::uint32_t layer : {0U, 1U}) hyper(file, layer, 24, 3);
  feed_forwards(file);
  expect_same(model_of(file),
              small_config("glm5_next_text", R"("layer_types": ["linear_attention", "full_attention"],
      "num_hidden_layers": 2, "hc_mult": 4, "index_kpool": 16,
      "linear_attn_config": {"num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4})" +
                                                 kMla + kIndexer + kMoe));
}

TEST_F(GgufModels, ReadsHunyuan4AsItsConfig) {
  SmallGguf file("hy_v4", 2);
  file.key("attention.head_count", 4).key("attention.head_count_kv", 1);
  latent_keys(file);
  indexer_keys(file);
  file.key("hyper_connection.count", 4).tables();
  file.add("output_hc_fn.weight", {256, 4})
      .add("output_hc_base.weight", {4})
      .add("output_hc_scale.weight", {1});
  for (const std::uint32_t layer : {0U, 1U}) {
    latent_attention(file, layer, {});
    file.at(layer, "attn_gate.weight", {64, 32}).at(layer, "attn_sinks.weight", {4});
    hyper(file, layer, 8, 2);
  }
  indexer(file, 0);
  feed_forwards(file);
  const std::string config = R"("num_hidden_layers": 2, "hc_mult": 4, "indexer_types": ["full", "shared"])";
  expect_same(model_of(file), small_config("hy_v4", config + kMla + kIndexer + kMoe));
}

TEST_F(GgufModels, ReadsMiniMax01AsItsConfig) {
  SmallGguf file("minimax-01", 2);
  file.heads().key("attention.key_length", 16).key("attention.value_length", 16).tables();
  file.key("expert_count", 8).key("expert_used_count", 2);
  file.at(0, "attn_norm.weight", {64}).at(0, "attn_norm_2.weight", {64}).at(0, "attn_qkv.weight", {64, 192});
  file.at(0, "attn_gate.weight", {64, 64}).at(0, "attn_output.weight", {64, 64}).attention(1);
  for (const std::uint32_t layer : {0U, 1U}) file.at(layer, "ffn_norm.weight", {64}).experts(layer);
  const Model model = model_of(file);
  expect_same(model, small_config("minimax_text_01", R"("num_hidden_layers": 2, "num_key_value_heads": 2,
      "head_dim": 16, "attn_type_list": [0, 1], "num_local_experts": 8, "num_experts_per_tok": 2,
      "intermediate_size": 32)"));
  EXPECT_EQ(model.blocks[1].name, "lightning_attention");
  EXPECT_EQ(state_bytes(model), 4 * 4 * 16 * 16);
}

// Three adapters and none, of rank 2: a token reads one of the four. The router's cache has one head of 16.
TEST_F(GgufModels, ReadsGraniteSwitch) {
  SmallGguf file("graniteswitch", 2);
  file.heads().key("adapters.count", 3).key("adapters.lora_rank", 2).tables();
  for (const std::uint32_t layer : {0U, 1U}) {
    file.at(layer, "attn_norm.weight", {64}).at(layer, "attn_qkv.weight", {64, 128});
    file.at(layer, "attn_output.weight", {64, 64}).mlp(layer);
    const auto adapter = [&](const std::string& stem, std::uint64_t in, std::uint64_t out) {
      file.at(layer, stem + ".lora_a", {in, 2, 4}).at(layer, stem + ".lora_b", {2, out, 4});
    };
    adapter("attn_q", 64, 64);
    adapter("attn_k", 64, 32);
    adapter("attn_v", 64, 32);
    adapter("attn_output", 64, 64);
    adapter("ffn_gate", 64, 96);
    adapter("ffn_up", 64, 96);
    adapter("ffn_down", 96, 64);
  }
  const Model model = model_of(file);
  EXPECT_FALSE(model.approximate);
  const std::int64_t base = 2 * (64 + 64 * 128 + 64 * 64 + 64 + 3 * 64 * 96) + 64 + 64 * 128;
  const std::int64_t adapter = 2 * 2 * (128 + 96 + 96 + 128 + 160 + 160 + 160);
  EXPECT_EQ(total(model), base + 64 * 128 + 4 * adapter);
  EXPECT_EQ(active(model), base + adapter);
  EXPECT_EQ(kv_bytes_per_token(model), 2 * (2 * 2 * 32 + 2 * 16));
  expect_round_trip(model);
}

// One layer a stack: low, low, high, twice. Each of the six runs keeps a cache; two layers are stored.
TEST_F(GgufModels, ReadsHrmText) {
  const auto hrm = [](std::uint32_t runs) {
    SmallGguf file("hrm_text", runs);
    file.heads().key("hrm.layers_per_stack", 1).key("hrm.h_cycles", 2).key("hrm.l_cycles", 2);
    file.add("token_embd.weight", {64, 128}).add("output.weight", {64, 128}).add("hrm.z_l_init", {64});
    for (const std::uint32_t layer : {0U, 1U}) {
      file.at(layer, "attn_q.weight", {64, 64}).at(layer, "attn_k.weight", {64, 32});
      file.at(layer, "attn_v.weight", {64, 32}).at(layer, "attn_output.weight", {64, 64});
      file.at(layer, "attn_gate.weight", {64, 64}).mlp_linears(layer, "");
    }
    return file;
  };
  const Model model = model_of(hrm(6));
  EXPECT_FALSE(model.approximate);
  EXPECT_EQ(model.layers, 6);
  const std::int64_t layer = 3 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96;
  EXPECT_EQ(total(model), 2 * layer + 2 * 64 * 128 + 64);
  EXPECT_EQ(read_bytes(model), 2 * (6 * layer + 64 * 128) + 4 * 64);
  EXPECT_EQ(kv_bytes_per_token(model), 6 * 2 * 2 * 32);
  expect_round_trip(model);
  EXPECT_THAT(model_refusal(hrm(5)), HasSubstr("'hrm_text.block_count' is 5, but 1 layers a stack"));
  EXPECT_THAT(model_refusal(hrm(6).at(2, "mystery.weight", {64, 96})), HasSubstr("is of layer 2, but"));
}

// Qwen4: four residual streams mixed by matrices of rank 8; a delta net with n-grams, and an attention that
// reads the 32 tokens that its indexer chose, and what is not yet a block of 4.
TEST_F(GgufModels, ReadsQwen4) {
  SmallGguf file("qwen4exp", 2);
  file.heads().key("attention.key_length", 16).key("attention.value_length", 16);
  file.key("ssm.inner_size", 32).key("ssm.state_size", 8).key("ssm.conv_kernel", 4);
  file.key("ssm.time_step_rank", 4).key("ssm.group_count", 2).key("hyper_connection.count", 4);
  file.key("hyper_connection.low_rank", 8).key("ple.conv_kernel", 4).key("ple.ngram_size", 3);
  file.keys("attention.compress_ratios", {0, 4});
  indexer_keys(file);
  file.add("token_embd.weight", {64, 128})
      .add("output.weight", {64, 128})
      .add("output_hc_norm.weight", {64, 4});
  file.add("output_hc_down.weight", {256, 8}).add("output_hc_up.weight", {8, 256});
  file.add("per_layer_token_embd.weight", {16, 500});
  file.at(0, "ple_key.weight", {64, 256}).at(0, "ple_value.weight", {64, 64});
  for (const char* part : {"key", "query", "conv"})
    file.at(0, std::string("ple_norm_") + part + ".weight", {64, 4});
  file.at(0, "ple_conv1d.weight", {4, 256});
  file.at(0, "attn_qkv.weight", {64, 64}).at(0, "attn_gate.weight", {64, 32});
  file.at(0, "ssm_beta.weight", {64, 4})
      .at(0, "ssm_alpha.weight", {64, 4})
      .at(0, "ssm_conv1d.weight", {4, 64});
  file.at(0, "ssm_dt.bias", {4}).at(0, "ssm_a", {4}).at(0, "ssm_norm.weight", {8});
  file.at(0, "ssm_out.weight", {32, 64});
  file.at(1, "attn_q.weight", {64, 128}).at(1, "attn_k.weight", {64, 32}).at(1, "attn_v.weight", {64, 32});
  file.at(1, "attn_output.weight", {64, 64})
      .at(1, "attn_q_norm.weight", {16})
      .at(1, "attn_k_norm.weight", {16});
  file.at(1, "indexer.q_proj.weight", {64, 16}).at(1, "indexer.k_proj.weight", {64, 8});
  file.at(1, "indexer.q_norm.weight", {8}).at(1, "indexer.k_norm.weight", {8});
  file.key("expert_count", 8).key("expert_used_count", 2);
  for (const std::uint32_t layer : {0U, 1U}) {
    for (const std::string part : {"attn", "ffn"}) {
      file.at(layer, "hc_" + part + "_norm.weight", {64, 4})
          .at(layer, "hc_" + part + "_down.weight", {256, 8});
      file.at(layer, "hc_" + part + "_up.weight", {8, 256})
          .at(layer, "hc_" + part + "_inject.weight", {256, 4});
    }
    file.experts(layer).at(layer, "ffn_gate_inp_shexp.weight", {64}).mlp_linears(layer, "_shexp", 32);
  }
  const Model model = model_of(file);
  EXPECT_FALSE(model.approximate) << (model.warnings.empty() ? "" : model.warnings.front());
  // The attention's 2 heads of 16 and the indexer's key of 8.
  EXPECT_EQ(kv_bytes_per_token(model), 2 * (2 * 32 + 8));
  // The delta net's state and convolution; three taps, 3 tokens apart, of the four streams.
  EXPECT_EQ(state_bytes(model), 4 * (4 * 8 * 8 + 3 * 64) + 4 * 3 * 3 * 256);
  const Block& full = block_of(model, 1, BlockKind::attention);
  EXPECT_EQ(state_of<IndexerState>(full).width, 8);
  EXPECT_EQ(state_of<KvState>(full, 1).top_k, 35);
  expect_round_trip(model);
}

}  // namespace
}  // namespace memwall
