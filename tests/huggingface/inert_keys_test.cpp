#include "huggingface/inert_keys.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "families_support.h"
#include "paths.h"

namespace memwall {
namespace {

const std::string kDense = R"("num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 6)";

Model with(const std::string& keys) { return read_small("llama", kDense + ", " + keys); }

TEST(UnreadKeys, OfAKnownFamilyThatNameSizesAreToldOf) {
  for (const char* key :
       {R"("routed_expert_hidden_size": 3)", R"("latent_moe_use_norm": true)", R"("use_output_gate": true)",
        R"("attn_res_block_size": 2)", R"("qkv_lora_rank": 2)", R"("n_loops": 3)", R"("extra_heads": [1, 2])",
        R"("use_qk_norm": true)", R"("attn_res_config": {"block_size_of_layers": 2})"}) {
    const Model model = with(key);
    EXPECT_TRUE(model.approximate) << key;
    ASSERT_EQ(model.warnings.size(), 1U) << key;
    EXPECT_EQ(model.warnings[0].rfind("model_type 'llama' is known, but not with the key", 0), 0U)
        << model.warnings[0];
  }
  EXPECT_EQ(
      with(R"("use_output_gate": true, "qkv_lora_rank": 2)").warnings[0],
      "model_type 'llama' is known, but not with the keys use_output_gate, qkv_lora_rank: what they tell "
      "of is not counted, so figures are approximate");
}

TEST(UnreadKeys, ThatStateNothingAreNot) {
  for (const char* key : {R"("use_output_gate": false)", R"("qkv_lora_rank": null)", R"("n_loops": 0)",
                          R"("extra_heads": [])", R"("gate_kind": "sigmoid")", R"("my_note": 3)"}) {
    EXPECT_FALSE(with(key).approximate) << key;
  }
}

// Of other parts, of training, or of how an implementation runs the same arithmetic.
TEST(UnreadKeys, ThatNoCountDependsOnAreNotToldOf) {
  for (const char* key :
       {R"("pixel_shuffle_factor": 4)", R"("perceiver_config": {"num_key_value_heads": 1, "hidden_size": 3})",
        R"("use_mm_proj": true)",
        R"("dual_chunk_attention_config": {"chunk_size": 262144, "local_size": 8192})",
        R"("neuron": {"num_cores": 2})", R"("use_kv_cache": true)", R"("context_window_size": 4096)",
        R"("use_liger_kernel": true)", R"("num_train_epochs": 3)", R"("warmup_ratio": 0.1)",
        R"("num_audio_tokens": 128)"}) {
    EXPECT_FALSE(with(key).approximate) << key;
  }
  EXPECT_FALSE(
      read_small("colqwen2", kDense + R"(, "num_key_value_heads": 2, "embedding_dim": 128)").approximate);
}

// Keys of other objects than the language model's say nothing of it.
TEST(UnreadKeys, OfAVisionTowerAreItsOwn) {
  EXPECT_FALSE(with(R"("vision_config": {"hidden_size": 3, "gate_rank": 2})").approximate);
  const Model nested = read_text(R"({"model_type": "llava", "vision_feature_layers": 3, "mm_gate_dim": 4,
      "text_config": )" + config_text("llama", kDense) +
                                 "}");
  EXPECT_FALSE(nested.approximate);
}

TEST(UnreadKeys, InsideAnObjectThatIsReadAreToldOf) {
  const std::string kimi = R"("num_hidden_layers": 5, "num_attention_heads": 2, "intermediate_size": 6,
      "kv_lora_rank": 4, "v_head_dim": 2, "qk_nope_head_dim": 2, "linear_attn_config": {"num_heads": 2)";
  EXPECT_FALSE(read_small("kimi_linear", kimi + "}").approximate);
  const Model model = read_small("kimi_linear", kimi + R"(, "gate_rank": 3})");
  EXPECT_TRUE(model.approximate);
  EXPECT_NE(model.warnings[0].find("linear_attn_config.gate_rank"), std::string::npos);
}

// Small models with every key that published ones of their families have.
TEST(UnreadKeys, PublishedConfigurationsHaveNone) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MEMWALL_SOURCE_DIR "/tests/data/known_keys")) {
    ++files;
    const Model model = load_config(entry.path().string());
    EXPECT_FALSE(model.approximate) << entry.path() << model.warnings.front();
  }
  EXPECT_EQ(files, 17);
}

// Layers of Hunyuan-Large that use another one's keys and values are not known.
TEST(UnreadKeys, ASwitchThatIsOnIsToldOf) {
  EXPECT_FALSE(with(R"("use_cla": false, "cla_share_factor": 2)").approximate);
  EXPECT_TRUE(with(R"("use_cla": true, "cla_share_factor": 2)").approximate);
}

TEST(InertKeys, HaveAReason) {
  for (const char* key :
       {"architectures", "bos_token_id", "attn_pdrop", "rope_theta", "router_aux_loss_coef", "vision_config",
        "norm_topk_prob", "num_nextn_predict_layers", "query_pre_attn_scalar", "rms_norm_eps", "rotary_dim",
        "image_size", "expert_parallel_size", "num_beams"}) {
    EXPECT_NE(inert_reason("llama", key), "") << key;
  }
  EXPECT_NE(inert_reason("gpt_neox", "use_parallel_residual"), "");
}

// A pattern does not reach keys that end in a size.
TEST(InertKeys, SizesAreNotAmongThem) {
  for (const char* key : {"hidden_size", "rope_head_dim", "router_hidden_size", "ple_layer_ids", "num_steps",
                          "scaling_rank", "use_layer_scale", "qk_rope_head_dim", "router_lora_rank"}) {
    EXPECT_EQ(inert_reason("llama", key), "") << key;
  }
  EXPECT_EQ(inert_reason("llama", "use_parallel_residual"), "");
}

}  // namespace
}  // namespace memwall
