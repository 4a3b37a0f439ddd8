// One small model for each kind of structure, its count spelled out. Hidden size 8, vocabulary 10.
#include <gtest/gtest.h>

#include <string>

#include "families_support.h"

namespace memwall {
namespace {

constexpr std::int64_t kTable = 10 * 8;  // the embedding, or an lm_head
constexpr std::int64_t kNorm = 8;        // an RMSNorm

// Two layers of four heads of two, two of keys and values; an MLP of six.
const std::string kDense =
    R"("num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 6)";
constexpr std::int64_t kAttention = 8 * 8 + 2 * 4 * 8 + 8 * 8;
constexpr std::int64_t kMlp = 3 * 6 * 8;
constexpr std::int64_t kLayer = kNorm + kAttention + kNorm + kMlp;

TEST(Families, Llama) {
  const Model model = read_small("llama", kDense);
  EXPECT_EQ(total(model), kTable + 2 * kLayer + kNorm + kTable);
  EXPECT_EQ(active(model), 2 * kLayer + kNorm + kTable);
  EXPECT_EQ(kv_bytes_per_token(model), 2 * 2 * (2 + 2) * 2);
  EXPECT_FALSE(model.approximate);
  EXPECT_EQ(model.blocks.size(), 4U) << "layers that are the same make one block of each kind";
}

TEST(Families, ATiedHeadIsStoredOnceAndRead) {
  const Model model = read_small("llama", kDense + R"(, "tie_word_embeddings": true)");
  EXPECT_EQ(total(model), kTable + 2 * kLayer + kNorm);
  EXPECT_EQ(active(model), 2 * kLayer + kNorm + kTable);
}

TEST(Families, Biases) {
  EXPECT_EQ(total(read_small("qwen2", kDense)) - total(read_small("llama", kDense)), 2 * (8 + 4 + 4));
  EXPECT_EQ(total(read_small("llama", kDense + R"(, "attention_bias": true, "mlp_bias": 1)")) -
                total(read_small("llama", kDense)),
            2 * (8 + 4 + 4 + 8 + 6 + 6 + 8));
}

TEST(Families, Gpt2HasLayerNormsBiasesAndPositions) {
  const Model model =
      read_small("gpt2", R"("n_layer": 2, "n_head": 4, "n_positions": 5, "activation_function": "gelu_new")");
  const std::int64_t layer = (2 * 8) + (24 * 8 + 24) + (8 * 8 + 8) + (2 * 8) + (32 * 8 + 32) + (8 * 32 + 8);
  EXPECT_EQ(total(model), kTable + 5 * 8 + 2 * layer + 2 * 8);
  EXPECT_EQ(count_parameters(model).embedding, kTable + 5 * 8);
}

TEST(Families, ANarrowerEmbedding) {
  const std::string keys =
      R"("num_hidden_layers": 1, "num_attention_heads": 4, "ffn_dim": 6, "max_position_embeddings": 3,
         "enable_bias": false)";
  EXPECT_EQ(total(read_small("opt", keys + R"(, "word_embed_proj_dim": 4)")) - total(read_small("opt", keys)),
            10 * 4 + 2 * 4 * 8 - kTable);
}

TEST(Families, NormsOfQueriesAndKeysAndBehindBlocks) {
  const Model model = read_small("gemma3_text", kDense + R"(, "head_dim": 2, "sliding_window": 7)");
  EXPECT_EQ(total(model), kTable + 2 * (kLayer + 2 * 2 + 2 * kNorm) + kNorm);
}

TEST(Families, OneNormForParallelBlocks) {
  const Model model = read_small("cohere", kDense);
  EXPECT_EQ(total(model), kTable + 2 * (kLayer - kNorm) + kNorm);
}

TEST(Families, WindowsFollowTheirPattern) {
  const std::string layers = R"("num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2,
      "intermediate_size": 6, "head_dim": 2, "sliding_window": 7)";
  EXPECT_EQ(kv_of(read_small("mistral", layers), 5).window, 7);
  const Model gemma2 = read_small("gemma2", layers);
  EXPECT_EQ(kv_of(gemma2, 0).window, 7);
  EXPECT_EQ(kv_of(gemma2, 1).window, 0);
  const Model gemma3 = read_small("gemma3_text", layers);
  EXPECT_EQ(kv_of(gemma3, 4).window, 7);
  EXPECT_EQ(kv_of(gemma3, 5).window, 0);
  const Model listed = read_small("llama", R"("num_hidden_layers": 2, "num_attention_heads": 4,
      "intermediate_size": 6, "sliding_window": 9, "layer_types": ["full_attention", "sliding_attention"])");
  EXPECT_EQ(kv_of(listed, 0).window, 0);
  EXPECT_EQ(kv_of(listed, 1).window, 9);
  EXPECT_EQ(kv_of(read_small("qwen2", layers), 5).window, 0) << "use_sliding_window is false";
}

TEST(Families, Chunks) {
  const Model model = read_small("llama4_text", R"("num_hidden_layers": 4, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 2, "intermediate_size": 6, "intermediate_size_mlp": 5,
      "num_local_experts": 3, "num_experts_per_tok": 1, "attention_chunk_size": 16)");
  EXPECT_EQ(kv_of(model, 0).chunk, 16);
  EXPECT_EQ(kv_of(model, 3).chunk, 0);
  const std::int64_t layer = 2 * kNorm + kAttention + 3 * 8 + 3 * kMlp + kMlp;
  EXPECT_EQ(total(model), kTable + 4 * layer + kNorm + kTable);
}

TEST(Families, ListsGiveLayersTheirOwnWidths) {
  const Model model = read_small("llama", R"("num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": [2, 4], "intermediate_size": [6, 7])");
  EXPECT_EQ(total(model), kTable + 2 * kLayer + 2 * 4 * 8 + 3 * 8 + kNorm + kTable);
}

TEST(Families, SharedAndRoutedExperts) {
  const Model model = read_small("glm4_moe", kDense + R"(, "n_routed_experts": 5, "num_experts_per_tok": 2,
      "moe_intermediate_size": 3, "n_shared_experts": 2, "first_k_dense_replace": 1)");
  const std::int64_t expert = 3 * 3 * 8;
  const std::int64_t sparse = 2 * kNorm + kAttention + 5 * 8 + 5 + 2 * expert;
  EXPECT_EQ(total(model), kTable + kLayer + sparse + 5 * expert + kNorm + kTable);
  EXPECT_EQ(active(model), kLayer + sparse + 2 * expert + kNorm + kTable);
}

TEST(Families, ExpertsOfImagesAreNotRead) {
  const Model model = read_small("ernie4_5_vl_moe_text", kDense + R"(, "moe_num_experts": 4, "moe_k": 2,
      "moe_intermediate_size": [3, 2], "moe_num_shared_experts": 1, "moe_layer_start_index": 1)");
  const std::int64_t expert = 3 * 3 * 8;
  const std::int64_t sparse = 2 * kNorm + kAttention + 4 * 8 + 4 + expert;
  EXPECT_EQ(total(model), kTable + kLayer + sparse + 4 * expert + (4 * 8 + 4 + 4 * 3 * 2 * 8) + kNorm);
  EXPECT_EQ(active(model), kLayer + sparse + 2 * expert + kNorm + kTable);
}

TEST(Families, TablesAreGathered) {
  const Model model = read_small("gemma3n_text", kDense + R"(, "head_dim": 2, "num_kv_shared_layers": 1,
      "hidden_size_per_layer_input": 3, "vocab_size_per_layer_input": 9, "laurel_rank": 2,
      "altup_num_inputs": 2)");
  const std::int64_t altup = 8 + 2 * 8 + 4 * 2 + 2 * 2 + 8;
  const std::int64_t laurel = 2 * 8 + 8 * 2 + 8;
  const std::int64_t input = 3 * 8 + 8 * 3 + 8;
  const std::int64_t layer = kLayer + 2 + 2 + 2 * kNorm + altup + laurel + input;
  const std::int64_t own_keys = 2 * 4 * 8 + 2;  // the second layer uses the first one's
  const std::int64_t read = 6 * 8 + 3 + 2 * 8 * 8 + 2 * layer - own_keys + kNorm;
  EXPECT_EQ(total(model), kTable + 9 * 6 + read);
  EXPECT_EQ(active(model), read + kTable);
  EXPECT_EQ(kv_bytes_per_token(model), 2 * (2 + 2) * 2);
  EXPECT_TRUE(kv_of(model, 1).shared);
}

TEST(Families, KeysThatAreValuesAndWiderHeads) {
  const Model model = read_small("gemma4_text", kDense + R"(, "head_dim": 2, "global_head_dim": 4,
      "num_global_key_value_heads": 1, "attention_k_eq_v": true, "hidden_size_per_layer_input": 0,
      "layer_types": ["sliding_attention", "full_attention"])");
  const std::int64_t wide = 16 * 8 + 4 * 8 + 8 * 16 + 2 * 4;
  EXPECT_EQ(total(model), kTable + (kLayer + 2 * 2) + (2 * kNorm + kMlp + wide) + 4 * kNorm + 2 * 1 + kNorm);
  EXPECT_EQ(kv_of(model, 1).d_v, 4);
}

TEST(Families, CrossAttentionReadsNoKeysOfItsOwn) {
  const Model model = read_small("mllama_text_model", kDense + R"(, "cross_attention_layers": [1])");
  const std::int64_t cross = kLayer + 2 + 2 + 2;  // norms of Q and K, two gates
  EXPECT_EQ(total(model), kTable + 8 * 8 + kLayer + cross + kNorm + kTable);
  EXPECT_EQ(active(model), kLayer + cross - (2 * 4 * 8 + 2) + kNorm + kTable);
  EXPECT_EQ(kv_bytes_per_token(model), 2 * (2 + 2) * 2);
}

TEST(Families, AFamilyInsideAnother) {
  const Model model = read_text(R"({"model_type": "llava", "vision_config": {"hidden_size": 99},
      "text_config": )" + config_text("llama", kDense) +
                                "}");
  EXPECT_EQ(total(model), kTable + 2 * kLayer + kNorm + kTable);
  EXPECT_EQ(model.architecture, "llava");
  ASSERT_EQ(model.extras.size(), 1U);
  EXPECT_EQ(model.extras[0].what, "a vision tower");
}

TEST(Families, DefaultsOfTheClassFillGaps) {
  const Model model = read_text(R"({"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 1})");
  EXPECT_EQ(model.vocab_size, 151936);
  EXPECT_EQ(kv_of(model, 0).d_k, 128);
  EXPECT_EQ(kv_of(model, 0).heads, 32);
}

TEST(Families, AnUnknownOneIsReadAsLlamaAndSaysSo) {
  const std::string text = config_text("newcomer", kDense + R"(, "hidden_act": "silu", "rope_theta": 1e4,
      "tie_word_embeddings": false, "wobble": 3)");
  const Model model = read_text(text);
  EXPECT_EQ(total(model), kTable + 2 * kLayer + kNorm + kTable);
  EXPECT_TRUE(model.approximate);
  ASSERT_FALSE(model.warnings.empty());
  EXPECT_EQ(model.warnings[0],
            "model_type 'newcomer' is not known: read as a decoder with Llama's layout; keys not understood: "
            "wobble");
}

// ColPali and ColQwen2 keep a whole model's configuration in vlm_config, of both of transformers' shapes.
TEST(Families, ModelsInsideAVlmConfigAreRead) {
  const std::string text = R"("hidden_size": 8, "vocab_size": 10, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 6, "tie_word_embeddings": true)";
  const std::int64_t plain = total(read_text(R"({"model_type": "qwen2_vl_text", )" + text + "}"));
  EXPECT_EQ(total(read_text(R"({"model_type": "colqwen2", "vlm_config": {"model_type": "qwen2_vl", )" + text +
                            R"(, "vision_config": {}}})")),
            plain);
  const Model nested = read_text(R"({"model_type": "colqwen2", "vlm_config": {"model_type": "qwen2_vl",
      "vision_config": {}, "text_config": {"model_type": "qwen2_vl_text", )" +
                                 text + "}}}");
  EXPECT_EQ(total(nested), plain);
  ASSERT_EQ(nested.extras.size(), 1U);
  EXPECT_EQ(nested.extras[0].what, "a vision tower");
}

// A class's defaults stand where a part beside the language model alone states sizes.
TEST(Families, SizesOfAVisionTowerAreNoLanguageModels) {
  const Model model = read_text(R"({"model_type": "llava", "text_config": {"model_type": "llama"},
      "vision_config": {"hidden_size": 8, "num_hidden_layers": 2}})");
  EXPECT_EQ(model.hidden_size, 4096);
}

TEST(Families, RewardModelsByAnyNameHaveNoLmHead) {
  const auto size = [](const std::string& name) {
    return total(
        read_small("llama", R"("num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 6,
        "architectures": [")" + name +
                                "\"]"));
  };
  EXPECT_EQ(size("LlamaForRewardModelWithGating"), size("LlamaForCausalLM") - 9 * 8);
}

}  // namespace
}  // namespace memwall
