// DeepSeek-V4.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/load/gguf_configs.h"

namespace memwall {
namespace {

using testing::HasSubstr;

const char* const kConfig = R"("num_hidden_layers": 3, "head_dim": 16, "q_lora_rank": 8, "o_groups": 2,
    "o_lora_rank": 6, "qk_rope_head_dim": 4, "index_n_heads": 2, "index_head_dim": 8, "index_topk": 32,
    "sliding_window": 16, "compress_ratios": [0, 4, 128], "num_hash_layers": 1, "hc_mult": 4,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 32)";

SmallGguf& hyper(SmallGguf& file, std::uint32_t layer, const std::string& part) {
  return file.at(layer, "hc_" + part + "_fn.weight", {256, 24})
      .at(layer, "hc_" + part + "_base.weight", {24})
      .at(layer, "hc_" + part + "_scale.weight", {3});
}

void compressor(SmallGguf& file, std::uint32_t layer, const std::string& stem, std::uint64_t wide,
                std::uint64_t width, std::uint64_t ratio) {
  file.at(layer, stem + "_kv.weight", {64, wide})
      .at(layer, stem + "_gate.weight", {64, wide})
      .at(layer, stem + "_ape.weight", {wide, ratio})
      .at(layer, stem + "_norm.weight", {width});
}

// Layers without entries, with chosen ones, and with ones that are all read.
SmallGguf deepseek4(const std::vector<std::int32_t>& ratios = {0, 4, 128}, bool all = true) {
  SmallGguf file("deepseek4", static_cast<std::uint32_t>(ratios.size()));
  file.key("attention.head_count", 4).key("attention.head_count_kv", 1);
  file.key("attention.key_length", 16).key("attention.value_length", 16).key("rope.dimension_count", 4);
  file.key("attention.q_lora_rank", 8).key("attention.sliding_window", 16);
  file.key("attention.output_group_count", 2).key("attention.output_lora_rank", 6);
  file.key("attention.indexer.head_count", 2).key("attention.indexer.key_length", 8);
  file.key("attention.indexer.top_k", 32).keys("attention.compress_ratios", ratios);
  file.key("hyper_connection.count", 4).key("expert_count", 8).key("expert_used_count", 2).tables();
  file.add("output_hc_fn.weight", {256, 4})
      .add("output_hc_base.weight", {4})
      .add("output_hc_scale.weight", {1});
  for (std::uint32_t layer = 0; layer < ratios.size(); ++layer) {
    hyper(file, layer, "attn").at(layer, "attn_norm.weight", {64}).at(layer, "attn_sinks.weight", {4});
    file.at(layer, "attn_q_a.weight", {64, 8}).at(layer, "attn_q_a_norm.weight", {8});
    file.at(layer, "attn_q_b.weight", {8, 64}).at(layer, "attn_kv_norm.weight", {16});
    if (all) file.at(layer, "attn_kv.weight", {64, 16});
    file.at(layer, "attn_output_a.weight", {32, 12}).at(layer, "attn_output_b.weight", {12, 64});
    if (ratios[layer] == 128) compressor(file, layer, "attn_compressor", 16, 16, 128);
    if (ratios[layer] == 4) {
      compressor(file, layer, "attn_compressor", 32, 16, 4);
      compressor(file, layer, "indexer_compressor", 16, 8, 4);
      file.at(layer, "indexer.proj.weight", {64, 2}).at(layer, "indexer.attn_q_b.weight", {8, 16});
    }
    hyper(file, layer, "ffn").at(layer, "ffn_norm.weight", {64});
    file.experts(layer).mlp_linears(layer, "_shexp", 32);
    if (layer == 0) {
      file.tensor("blk.0.ffn_gate_tid2eid.weight", "I32", {2, 128});
    } else {
      file.at(layer, "exp_probs_b.bias", {8});
    }
  }
  return file;
}

TEST_F(GgufModels, ReadsDeepSeekV4AsItsConfig) {
  const Model model = model_of(deepseek4());
  expect_same(model, small_config("deepseek_v4", kConfig));
  // A cache of 16 elements in windows of three layers, an entry of 16 and a key of 8 for 4 tokens, an entry
  // of 16 for 128.
  EXPECT_EQ(kv_bytes_per_token(model), 2 * (3 * 16 + (16 + 8) / 4) + 2 * 16 / 128);
  EXPECT_EQ(kv_cache_bytes(model, 256), 2 * (3 * 16 * 16 + 64 * (16 + 8) + 2 * 16));
  EXPECT_EQ(state_of<LatentState>(model.blocks[3], 1).top_k, 32);
  ASSERT_EQ(model.extras.size(), 1U);
  EXPECT_EQ(model.extras[0].what, "tables of experts by token");
  EXPECT_EQ(model.extras[0].bytes, 4 * 2 * 128);
}

TEST_F(GgufModels, RefusesWhatIsNoDeepSeekV4) {
  EXPECT_THAT(model_refusal(deepseek4({0, 8})),
              HasSubstr("'deepseek4.attention.compress_ratios' is 8 for layer 1; it must be 0, 4 or 128"));
  EXPECT_THAT(model_refusal(deepseek4({0}, false)), HasSubstr("'blk.0.attn_kv.weight' is missing"));
}

}  // namespace
}  // namespace memwall
