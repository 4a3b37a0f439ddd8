// Models whose layers keep something else than keys and values: latents, recurrences, shared blocks. Hidden
// size 8, vocabulary 10.
#include <gtest/gtest.h>

#include <string>

#include "families_support.h"

namespace memwall {
namespace {

constexpr std::int64_t kTable = 10 * 8;
constexpr std::int64_t kNorm = 8;
constexpr std::int64_t kMlp = 3 * 6 * 8;

RecurrentState recurrence(const Model& model, std::int32_t layer, const std::string& name) {
  return std::get<RecurrentState>(block_of(model, layer, BlockKind::mixer, name).states.at(0).state);
}

const std::string kLatent = R"("num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 6,
    "q_lora_rank": 3, "kv_lora_rank": 4, "qk_nope_head_dim": 2, "qk_rope_head_dim": 1, "v_head_dim": 2,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 3, "n_shared_experts": 1,
    "first_k_dense_replace": 1)";
constexpr std::int64_t kLatentAttention = 3 * 8 + 3 + 6 * 3 + 5 * 8 + 4 + 8 * 4 + 8 * 4;

TEST(FamiliesOfStates, LatentAttention) {
  const Model model = read_small("deepseek_v3", kLatent);
  const std::int64_t expert = 3 * 3 * 8;
  const std::int64_t layers = 2 * (2 * kNorm + kLatentAttention) + kMlp + 4 * 8 + 4 + expert;
  EXPECT_EQ(total(model), kTable + layers + 4 * expert + kNorm + kTable);
  EXPECT_EQ(active(model), layers + 2 * expert + kNorm + kTable);
  EXPECT_EQ(kv_bytes_per_token(model), 2 * (4 + 1) * 2);
}

TEST(FamiliesOfStates, AnIndexerMayServeLaterLayers) {
  const std::string keys = kLatent + R"(, "index_n_heads": 2, "index_head_dim": 3, "index_topk": 64)";
  const std::int64_t indexer = 6 * 3 + 3 * 8 + 2 * 8 + 2 * 3;
  const std::int64_t without = total(read_small("deepseek_v3", kLatent));
  const Model both = read_small("glm_moe_dsa", keys);
  const Model one = read_small("glm_moe_dsa", keys + R"(, "indexer_types": ["full", "shared"])");
  EXPECT_EQ(total(both), without + 2 * indexer);
  EXPECT_EQ(total(one), without + indexer);
  EXPECT_EQ(kv_bytes_per_token(one), (2 * (4 + 1) + 3) * 2);
}

TEST(FamiliesOfStates, Mamba) {
  const Model model = read_small("mamba", R"("num_hidden_layers": 2, "intermediate_size": 16, "state_size": 4,
      "conv_kernel": 3, "time_step_rank": "auto")");
  const std::int64_t layer =
      kNorm + 32 * 8 + (16 * 3 + 16) + (1 + 8) * 16 + (16 * 1 + 16) + 16 * 4 + 16 + 8 * 16;
  EXPECT_EQ(total(model), kTable + 2 * layer + kNorm);
  EXPECT_EQ(state_bytes(model), 2 * (16 * 4 * 4 + 16 * 2 * 2));
  EXPECT_EQ(kv_bytes_per_token(model), 0);
}

TEST(FamiliesOfStates, TheFirstMambasNameNoType) {
  const Model model = read_text(R"({"d_model": 768, "n_layer": 24, "vocab_size": 50277, "ssm_cfg": {},
      "rms_norm": true, "pad_vocab_size_multiple": 8})");
  EXPECT_EQ(total(model), 129135360);  // safetensors total of state-spaces/mamba-130m-hf
}

TEST(FamiliesOfStates, LayersOfOneKindEach) {
  const Model model = read_small("nemotron_h", R"("hybrid_override_pattern": "M*-", "num_attention_heads": 2,
      "num_key_value_heads": 1, "head_dim": 3, "intermediate_size": 6, "mamba_num_heads": 2,
      "mamba_head_dim": 3, "ssm_state_size": 4, "n_groups": 1, "conv_kernel": 3)");
  const std::int64_t channels = 6 + 2 * 4;
  const std::int64_t mamba = (6 + channels + 2) * 8 + channels * 3 + channels + 3 * 2 + 6 + 8 * 6;
  EXPECT_EQ(model.layers, 3);
  EXPECT_EQ(total(model),
            kTable + 3 * kNorm + mamba + (6 * 8 + 2 * 3 * 8 + 8 * 6) + 2 * 6 * 8 + kNorm + kTable);
}

TEST(FamiliesOfStates, GatedDeltaNetsAndGatedAttention) {
  const Model model = read_small("qwen3_next", R"("num_hidden_layers": 2, "num_attention_heads": 2,
      "num_key_value_heads": 1, "head_dim": 4, "intermediate_size": 6, "num_experts": 0,
      "full_attention_interval": 2, "linear_num_key_heads": 1, "linear_num_value_heads": 2,
      "linear_key_head_dim": 3, "linear_value_head_dim": 2, "linear_conv_kernel_dim": 4)");
  const std::int64_t channels = 2 * 3 + 4;
  const std::int64_t delta = (channels + 4) * 8 + 4 * 8 + channels * 4 + 2 + 2 + 2 + 8 * 4;
  const std::int64_t attention = 2 * 8 * 8 + 2 * 4 * 8 + 2 * 4 + 8 * 8;
  EXPECT_EQ(total(model), kTable + 4 * kNorm + delta + attention + 2 * kMlp + kNorm + kTable);
  EXPECT_EQ(recurrence(model, 0, "gated_delta_net").elements, 2 * 3 * 2);
}

TEST(FamiliesOfStates, ShortConvolutions) {
  const Model model =
      read_small("lfm2", R"("layer_types": ["conv", "full_attention"], "num_attention_heads": 4,
      "num_key_value_heads": 2, "intermediate_size": 6, "block_auto_adjust_ff_dim": false, "conv_L_cache": 3)");
  const std::int64_t attention = 8 * 8 + 2 * 4 * 8 + 2 * 2 + 8 * 8;
  EXPECT_EQ(total(model), kTable + (24 * 8 + 8 * 3 + 8 * 8) + attention + 4 * kNorm + 2 * kMlp + kNorm);
  EXPECT_EQ(state_bytes(model), 8 * 2 * 2);
}

TEST(FamiliesOfStates, Rwkv5) {
  const Model model =
      read_small("rwkv5", R"("num_hidden_layers": 2, "head_size": 4, "intermediate_size": 6)");
  const std::int64_t layer = 5 * 8 * 8 + (4 + 1 + 1) * 8 + 2 * 8 + (2 * 6 * 8 + 8 * 8 + 2 * 8) + 2 * 2 * 8;
  EXPECT_EQ(total(model), kTable + 2 * 8 + 2 * layer + 2 * 8 + kTable);
  EXPECT_EQ(recurrence(model, 1, "rwkv5").elements, 2 * 4 * 4);
  EXPECT_EQ(state_bytes(model), 2 * (2 * 4 * 4 * 4 + 2 * 8 * 2))
      << "a state, and two inputs kept for the shifts";
}

TEST(FamiliesOfStates, Rwkv7) {
  const Model model = read_text(R"({"model_type": "rwkv7", "hidden_size": 768, "num_hidden_layers": 12,
      "head_dim": 64, "decay_low_rank_dim": 64, "a_low_rank_dim": 64, "v_low_rank_dim": 32,
      "gate_low_rank_dim": 128, "vocab_size": 65536, "intermediate_size": 3072,
      "tie_word_embeddings": false})");
  EXPECT_EQ(total(model), 191034624);  // arXiv 2503.14456, RWKV7-World3-0.1B
}

TEST(FamiliesOfStates, SharedBlocksAreStoredOnceAndReadAtEveryUse) {
  const Model model = read_small("zamba", R"("num_hidden_layers": 3, "num_attention_heads": 2,
      "num_key_value_heads": 2, "intermediate_size": 6, "mamba_d_state": 4, "mamba_d_conv": 3,
      "mamba_dt_rank": 1, "layers_block_type": ["hybrid", "mamba", "hybrid"])");
  const std::int64_t shared = 16 + 3 * 16 * 16 + 8 * 16 + kNorm + kMlp;
  const std::int64_t mamba =
      kNorm + 32 * 8 + (16 * 3 + 16) + (1 + 8) * 16 + (16 * 1 + 16) + 16 * 4 + 16 + 8 * 16;
  EXPECT_EQ(total(model), kTable + shared + 2 * 8 * 8 + 3 * mamba + kNorm);
  EXPECT_EQ(active(model), 2 * shared + 2 * 8 * 8 + 3 * mamba + kNorm + kTable);
  EXPECT_EQ(kv_bytes_per_token(model), 2 * 2 * (8 + 8) * 2) << "each use keeps its own";
}

TEST(FamiliesOfStates, ExpertsForQueries) {
  const Model model = read_small("jetmoe", R"("num_hidden_layers": 1, "num_key_value_heads": 2,
      "num_attention_heads": 4, "kv_channels": 3, "intermediate_size": 6, "num_local_experts": 4,
      "num_experts_per_tok": 2)");
  const std::int64_t shared = 2 * kNorm + 2 * 4 * 8 + 2 * 6 * 8 + 2 * 8;
  const std::int64_t expert = 2 * 6 * 8 + kMlp;
  EXPECT_EQ(total(model), kTable + shared + 4 * expert + kNorm);
  EXPECT_EQ(active(model), shared + 2 * expert + kNorm + kTable);
}

}  // namespace
}  // namespace memwall
