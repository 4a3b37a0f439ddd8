// What published configurations leave out or call by older names. Totals: Hugging Face transformers 5.24 on
// the meta device, or a published checkpoint's; small ones are spelled out.
#include <gtest/gtest.h>

#include <string>

#include "families_support.h"

namespace memwall {
namespace {

constexpr std::int64_t kTable = 10 * 8;
const std::string kDense =
    R"("num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 6)";

TEST(PublishedConfigs, ATextConfigTakesItsClassDefaults) {
  const std::string text = R"(, "text_config": {"model_type": "llama", "vocab_size": 32064}})";
  EXPECT_EQ(total(read_text(R"({"model_type": "llava", "tie_word_embeddings": false)" + text)), 6738939904);
  EXPECT_EQ(total(read_text(R"({"model_type": "llava", "text_config": {"vocab_size": 32064}})")), 6738939904)
      << "the wrapper's class tells whose defaults, where text_config does not";
  EXPECT_EQ(total(read_text(R"({"model_type": "bloom", "n_embed": 14336, "n_layer": 70,
                                "num_attention_heads": 112})")),
            176247271424);
}

// Nothing but a model_type: what transformers builds of it.
TEST(PublishedConfigs, EveryClassHasItsDefaults) {
  const auto bare = [](const std::string& type) {
    return total(read_text(R"({"model_type": ")" + type + "\"}"));
  };
  EXPECT_EQ(bare("gpt2"), 124439808);
  EXPECT_EQ(bare("gptj"), 6050882784);
  EXPECT_EQ(bare("gpt_neo"), 1315575808);
  EXPECT_EQ(bare("codegen"), 6050882784);
  EXPECT_EQ(bare("ctrl"), 1637964550);
  EXPECT_EQ(bare("mpt"), 1311213568);
  EXPECT_EQ(bare("xglm"), 564463616);
  EXPECT_EQ(bare("bloom"), 16156544);
  EXPECT_EQ(bare("rwkv"), 7392649216);
  EXPECT_EQ(bare("gemma3n_text"), 6835235568);
  EXPECT_EQ(bare("recurrent_gemma"), 2010263040);
  EXPECT_EQ(bare("phimoe"), 41872793600);
  EXPECT_EQ(bare("mllama"), 9775192080);
  EXPECT_EQ(bare("glm4_moe_lite"), 29943390976 + 46 * 64) << "and what its routers add to scores";
  EXPECT_EQ(bare("mimo_v2_flash"), 308778768832 + 47 * 256);
}

TEST(PublishedConfigs, AListOfLayersTellsMoreThanTheDefaultCount) {
  const Model model = read_text(R"({"model_type": "qwen2", "layer_types": ["full_attention"]})");
  EXPECT_EQ(model.layers, 1);
}

TEST(PublishedConfigs, TiesOfNestedConfigurations) {
  const auto tied = [](const std::string& outer, const std::string& inner) {
    const Model model = read_text(R"({"model_type": ")" + outer + R"(, "text_config": )" +
                                  config_text("qwen2", kDense + inner) + "}");
    return total(model) == active(model);  // a tied table is read as the head
  };
  const std::string yes = R"(, "tie_word_embeddings": true)";
  const std::string no = R"(, "tie_word_embeddings": false)";
  EXPECT_TRUE(tied(R"(llava_onevision")" + no, yes)) << "this class forwards its text_config's word";
  EXPECT_TRUE(tied(R"(qwen2_vl")" + no, yes));
  EXPECT_FALSE(tied(R"(idefics2")" + no, yes)) << "this one does not";
  EXPECT_TRUE(tied(R"(llava_onevision")" + yes, no)) << "the whole checkpoint's word counts";
  EXPECT_TRUE(tied("idefics2\"", yes));
  EXPECT_FALSE(tied("idefics2\"", ""));
}

TEST(PublishedConfigs, BiasesFollowTheClassInside) {
  const std::int64_t llama = total(read_small("minicpmv", kDense));
  EXPECT_EQ(llama, total(read_small("llama", kDense)));
  EXPECT_EQ(total(read_small("minicpmv", kDense + R"(, "max_window_layers": 2)")),
            total(read_small("qwen2", kDense)));
  EXPECT_EQ(total(read_small("minicpmv", kDense + R"(, "max_window_layers": 2, "head_dim": 2)")),
            total(read_small("qwen3", kDense + R"(, "head_dim": 2)")));
  const std::string wide = kDense + R"(, "head_dim": 2)";
  EXPECT_EQ(total(read_small("glm4v_text", wide)) - total(read_small("glm_ocr_text", wide)), 2 * (8 + 4 + 4));
}

TEST(PublishedConfigs, OlderNamesAndDerivedSizes) {
  const std::string phi = R"("n_layer": 2, "n_head": 4, "n_head_kv": null, "n_inner": null)";
  EXPECT_EQ(total(read_small("mixformer-sequential", phi)), total(read_small("phi", R"("num_hidden_layers": 2,
            "num_attention_heads": 4, "intermediate_size": 32)")));
  const std::string zamba = R"("layers_block_type": ["mamba", "hybrid"], "num_attention_heads": 4,
                              "intermediate_size": 6, "mamba_headdim": 4, "expansion_factor": 2)";
  EXPECT_EQ(total(read_small("zamba2", zamba)),
            total(read_small("zamba2", zamba + R"(, "n_mamba_heads": 4)")));
  EXPECT_NE(refusal(config_text("zamba2", R"("layers_block_type": ["mamba"], "num_attention_heads": 4,
                                "mamba_headdim": 5)"))
                .find("mamba_headdim 5 does not divide the inner width 16"),
            std::string::npos);
}

TEST(PublishedConfigs, CompressRatesWithoutLayerTypes) {
  const std::string keys = R"("num_hidden_layers": 3, "num_attention_heads": 2, "head_dim": 4,
      "q_lora_rank": 4, "qk_rope_head_dim": 2, "moe_intermediate_size": 4, "n_routed_experts": 2,
      "num_experts_per_tok": 1, "o_groups": 1, "o_lora_rank": 4, "index_n_heads": 1, "index_head_dim": 4)";
  const Model assumed = read_small("deepseek_v4", keys);
  const Model stated =
      read_small("deepseek_v4", keys + R"(, "compress_rates": {"heavily_compressed_attention": 32})");
  // A position bias of head_dim for each compressed token, in three heavily compressed layers.
  EXPECT_EQ(total(assumed) - total(stated), 3 * (128 - 32) * 4);
  EXPECT_EQ(total(read_small("deepseek_v4", keys + R"(, "compress_rate_hca": 32)")), total(stated));
}

TEST(PublishedConfigs, TheFirstChatGlm) {
  const Model model = read_text(R"({"model_type": "chatglm", "hidden_size": 4096, "inner_hidden_size": 16384,
      "num_attention_heads": 32, "num_layers": 28, "position_encoding_2d": true, "vocab_size": 130528})");
  EXPECT_EQ(total(model), 6173286400);
}

TEST(PublishedConfigs, FamiliesOfTheirOwn) {
  EXPECT_EQ(total(read_text(R"({"model_type": "moshi"})")), 6839083008);
  // A narrow space of queries, its norm, and a linear out of it; the first layer without experts.
  const std::string keys = R"("num_hidden_layers": 2, "num_attention_heads": 4, "num_attention_groups": 1,
      "head_dim": 2, "intermediate_size": 6, "share_q_dim": 3, "moe_num_experts": 5, "moe_top_k": 2,
      "moe_intermediate_size": 4, "share_expert_dim": 7)";
  const std::int64_t attention = 8 + 8 * 3 + 3 + 3 * 8 + 2 * 8 * 2 + 8 * 8;
  const std::int64_t dense = 8 + 3 * 8 * 6;
  const std::int64_t sparse = 8 + 5 * 8 + 5 * 3 * 8 * 4 + 3 * 8 * 7;
  EXPECT_EQ(total(read_small("step3_text", keys)), 2 * kTable + 2 * attention + dense + sparse + 8);
  EXPECT_EQ(total(read_small("minimax_m1", kDense)), total(read_small("minimax_text_01", kDense)));
}

TEST(PublishedConfigs, KeysThatTellOfNothingMoreLeaveTheFiguresExact) {
  EXPECT_FALSE(read_small("moshi", kDense + R"(, "num_codebooks": 8)").approximate);
  EXPECT_FALSE(read_small("mixformer-sequential", R"("n_layer": 2, "n_head": 4, "n_inner": null,
      "architecture": {"block_cls": "parallel", "mlp": {"mlp_cls": "fused_mlp"}})")
                   .approximate);
}

TEST(PublishedConfigs, ModelsWithoutAnLmHead) {
  const auto saved_as = [](const std::string& type, const std::string& architecture,
                           const std::string& keys = "") {
    return read_small(type, kDense + R"(, "architectures": [")" + architecture + "\"]" + keys);
  };
  const std::int64_t whole = total(read_small("mistral", kDense));
  const Model base = saved_as("mistral", "MistralModel");
  EXPECT_EQ(total(base), whole - kTable);
  EXPECT_EQ(active(base), whole - 2 * kTable);
  ASSERT_EQ(base.warnings.size(), 1U);
  EXPECT_NE(base.warnings[0].find("MistralModel is a base model without an lm_head"), std::string::npos);
  EXPECT_EQ(total(saved_as("mistral", "MistralForSequenceClassification")), whole - kTable + 2 * 8);
  EXPECT_EQ(total(saved_as("mistral", "MistralForSequenceClassification", R"(, "num_labels": 1)")),
            whole - kTable + 8);
  EXPECT_EQ(total(saved_as("mistral", "MistralForSequenceClassification",
                           R"(, "id2label": {"0": "a", "1": "b", "2": "c"})")),
            whole - kTable + 3 * 8);
  EXPECT_EQ(total(saved_as("mistral", "MistralForTokenClassification")), whole - kTable + 2 * 8 + 2);
  EXPECT_EQ(total(saved_as("qwen2", "Qwen2ForRewardModel")),
            total(read_small("qwen2", kDense)) - kTable + (8 * 8 + 8) + (8 + 1));
  EXPECT_EQ(total(saved_as("mistral", "MistralForCausalLM")), whole);
  EXPECT_EQ(total(saved_as("mistral", "OtherChatModel")), whole) << "a repository's own class may have one";
}

}  // namespace
}  // namespace memwall
