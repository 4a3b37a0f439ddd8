// Configurations that make no sense, or tell of parts that nothing is known of: each is one line that says
// so.
#include <gtest/gtest.h>

#include <chrono>
#include <ostream>
#include <string>
#include <vector>

#include "families_support.h"

namespace memwall {
namespace {

using testing::TestWithParam;

const std::string kDense =
    R"("num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 6, "hidden_act": "silu")";

struct Refused {
  const char* name;
  std::string text;
  std::string message;  // a part of it

  friend void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }
};

class Refusals : public TestWithParam<Refused> {};

TEST_P(Refusals, SayWhy) {
  const std::string message = refusal(GetParam().text);
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Config, Refusals,
    testing::Values(
        Refused{"Nothing", "{}", "no hidden_size"}, Refused{"List", "[1]", "config.json is one object"},
        Refused{"OnlyAType", R"({"model_type": "xverse"})", "no hidden_size"},
        Refused{"NoLayers", R"({"model_type": "xverse", "hidden_size": 8})", "no num_hidden_layers"},
        Refused{"NullNest", R"({"model_type": "fancy", "text_config": null})", "no hidden_size"},
        Refused{"ZeroHidden", R"({"model_type": "llama", "hidden_size": 0, "num_hidden_layers": 1})",
                "hidden_size is 0"},
        Refused{"NegativeHidden", R"({"model_type": "llama", "hidden_size": -8, "num_hidden_layers": 1})",
                "hidden_size must be a whole number"},
        Refused{"TextForNumber", R"({"model_type": "llama", "hidden_size": "8", "num_hidden_layers": 1})",
                "hidden_size must be a whole number"},
        Refused{
            "SizesInAnotherObject",
            R"({"model_type": "qwen2_vl", "text_model_config": {"hidden_size": 8, "num_hidden_layers": 2}})",
            "config.json:1:49: no hidden_size is stated where it is read: its sizes stand in "
            "text_model_config, which is not read"},
        Refused{"SizesDeeper",
                R"({"model_type": "llama", "model": {"decoder": {"n_embd": 8, "n_layer": 2}}})",
                "its sizes stand in model.decoder, which is not read"},
        Refused{"CrossAttention", config_text("gpt2", kDense + R"(, "add_cross_attention": true)"),
                "add_cross_attention is true: layers that attend to an encoder's output are not counted"},
        Refused{"EncoderDecoder", config_text("gpt2", kDense + R"(, "is_encoder_decoder": true)"),
                "is_encoder_decoder is true: the model is an encoder-decoder"},
        Refused{"BertThatDecodes", config_text("bert", kDense + R"(, "is_decoder": true)"),
                "model_type 'bert' is an encoder"},
        Refused{"NoHeads",
                config_text("llama",
                            R"("num_hidden_layers": 2, "num_attention_heads": 0, "intermediate_size": 6)"),
                "num_attention_heads is 0; it must be at least 1"},
        Refused{"HeadsOfUnevenWidth",
                config_text("llama",
                            R"("num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 6)"),
                "hidden_size (8) must be a multiple of num_attention_heads (3)"},
        Refused{"TooManyLayers",
                R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 10001, "vocab_size": 10})",
                "num_hidden_layers is 10001"},
        Refused{"HeadsDoNotDivide", config_text("llama", kDense + R"(, "num_key_value_heads": 3)"),
                "num_attention_heads (4) must be a multiple of num_key_value_heads (3)"},
        Refused{"MoreHeadsThanChannels",
                config_text("llama", R"("num_hidden_layers": 2, "num_attention_heads": 16)"),
                "config.json:1:1: no head_dim (also called"},
        Refused{"ZeroWidth", config_text("llama", R"("num_hidden_layers": 2, "num_attention_heads": 4,
                                        "intermediate_size": 0)"),
                "intermediate_size is 0"},
        Refused{"NullWidth", config_text("llama", R"("num_hidden_layers": 2, "num_attention_heads": 4,
                                        "intermediate_size": null)"),
                "config.json:1:1: no intermediate_size (also called n_inner"},
        Refused{"ZeroKvHeads", config_text("llama", kDense + R"(, "num_key_value_heads": 0)"),
                "num_key_value_heads is 0"},
        Refused{"ExpertsByLayer",
                config_text("mixtral", kDense + R"(, "num_local_experts": [8, 4], "num_experts_per_tok": 2)"),
                "num_local_experts differs between layers"},
        Refused{"HugeHeadDim", config_text("llama", kDense + R"(, "head_dim": 4294967296)"), "head_dim is"},
        Refused{"ListTooShort", config_text("llama", R"("num_hidden_layers": 2, "num_attention_heads": 4,
                                        "intermediate_size": [6])"),
                "intermediate_size lists 1 layers"},
        Refused{"ListOfTexts", config_text("llama", R"("num_hidden_layers": 2, "num_attention_heads": 4,
                                        "intermediate_size": ["a", "b"])"),
                "intermediate_size must be a whole number"},
        Refused{"TypesTooShort", config_text("llama", kDense + R"(, "layer_types": ["full_attention"])"),
                "layer_types lists 1 layers of 2"},
        Refused{"TypeUnknown",
                config_text("llama", kDense + R"(, "layer_types": ["full_attention", "moon"])"),
                "layer 1 is of type 'moon' in layer_types; known for model_type 'llama' are full_attention"},
        Refused{"MoreChosenThanExperts",
                config_text("mixtral", kDense + R"(, "num_key_value_heads": 4, "num_local_experts": 4,
                                                 "num_experts_per_tok": 5)"),
                "num_experts_per_tok is 5; it must be from 1 to the 4 experts"},
        Refused{
            "TooManyExperts",
            config_text("mixtral", kDense + R"(, "num_key_value_heads": 4, "num_local_experts": 2000000)"),
            "2000000 experts are more than 1048576"},
        Refused{"Overflow",
                R"({"model_type": "mixtral", "hidden_size": 2147483648, "num_hidden_layers": 9999,
                    "num_local_experts": 1048576, "intermediate_size": 2147483648})",
                "its sizes multiply to more than"},
        Refused{"ABadFlag", config_text("llama", kDense + R"(, "attention_bias": 2)"), "attention_bias"},
        Refused{"NoRank", config_text("deepseek_v3", kDense + R"(, "kv_lora_rank": null)"),
                "no kv_lora_rank"},
        Refused{"ZeroState",
                config_text("mamba", R"("num_hidden_layers": 1, "intermediate_size": 16, "state_size": 0)"),
                "state_size is 0"},
        Refused{"PatternTooShort",
                config_text("nemotron_h", R"("num_hidden_layers": 3, "hybrid_override_pattern": "M")"),
                "hybrid_override_pattern lists 1 layers of 3"},
        Refused{"Unknown: encoder", config_text("fancy", kDense + R"(, "is_encoder_decoder": true)"),
                "model_type 'fancy' is an encoder-decoder; memwall counts decoder-only models"},
        Refused{"Whisper", config_text("whisper", R"("encoder_layers": 2)"),
                "model_type 'whisper' is an encoder-decoder; memwall counts decoder-only models"},
        Refused{"Bert", R"({"model_type": "bert"})",
                "model_type 'bert' is an encoder, which embeds texts and decodes none"},
        Refused{"ClipText", R"({"model_type": "clip", "text_config": {"model_type": "clip_text_model"}})",
                "is an encoder, which embeds texts and decodes none"},
        Refused{"MaskedLm", config_text("fancy", kDense + R"(, "architectures": ["FancyForMaskedLM"])"),
                "model_type 'fancy' is an encoder, which embeds texts and decodes none"},
        Refused{"Unknown: gate", config_text("fancy", R"("num_hidden_layers": 2, "num_attention_heads": 4,
                                        "intermediate_size": 6, "hidden_act": "gelu")"),
                "whether its MLP is gated does not follow from hidden_act 'gelu'"},
        Refused{"Unknown: width", config_text("fancy", R"("num_hidden_layers": 2, "num_attention_heads": 4)"),
                "no intermediate_size"},
        Refused{"Unknown: states", config_text("fancy", kDense + R"(, "ssm_state": 3, "n_loops": 2)"),
                "its keys ssm_state, n_loops tell of parts that no common rule covers"}),
    [](const testing::TestParamInfo<Refused>& refused) {
      std::string name;
      for (const char* c = refused.param.name; *c != '\0'; ++c) {
        if (std::isalnum(static_cast<unsigned char>(*c)) != 0) name += *c;
      }
      return name;
    });

// Any size of any kind of family may be anything: an answer or one line, at once.
TEST(Malformed, EverySizeOfEveryKindOfFamily) {
  const std::vector<std::string> kinds = {
      "llama",        "gpt2",        "falcon",     "mixtral",       "deepseek_v3", "deepseek_v4",    "mamba",
      "nemotron_h",   "jamba",       "qwen3_next", "kimi_linear",   "lfm2",        "rwkv5",          "zamba2",
      "gemma3n_text", "gemma4_text", "minimax",    "longcat_flash", "openelm",     "recurrent_gemma"};
  const std::vector<std::string> keys = {"hidden_size",
                                         "num_hidden_layers",
                                         "num_attention_heads",
                                         "num_key_value_heads",
                                         "head_dim",
                                         "intermediate_size",
                                         "vocab_size",
                                         "num_experts",
                                         "num_experts_per_tok",
                                         "layer_types",
                                         "q_lora_rank",
                                         "kv_lora_rank",
                                         "mamba_d_state",
                                         "n_groups",
                                         "conv_kernel",
                                         "sliding_window",
                                         "n_shared_experts",
                                         "moe_layer_freq",
                                         "hc_mult",
                                         "head_size",
                                         "lru_width",
                                         "tie_word_embeddings",
                                         "hidden_act",
                                         "num_kv_shared_layers"};
  const std::vector<std::string> values = {"0",
                                           "-1",
                                           "1",
                                           "1.5",
                                           "2147483648",
                                           "4611686018427387904",
                                           "1e300",
                                           "NaN",
                                           "true",
                                           "null",
                                           "\"x\"",
                                           "\"auto\"",
                                           "[]",
                                           "[1]",
                                           "[0, 0]",
                                           "[-1, 7]",
                                           "[\"full_attention\"]",
                                           "{}"};
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& kind : kinds) {
    for (const std::string& key : keys) {
      for (const std::string& value : values) {
        std::string text = R"({"model_type": ")" + kind + '"';
        for (const auto& [name, size] :
             {std::pair{"hidden_size", "64"}, std::pair{"num_hidden_layers", "6"}}) {
          if (key != name) text += std::string(", \"") + name + "\": " + size;
        }
        text += ", \"" + key + "\": " + value + "}";
        try {
          read_text(text);
        } catch (const InputError& error) {
          EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << text;
        }
      }
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(Malformed, ThousandsOfDifferentLayersAreQuick) {
  std::string widths;
  for (int i = 1; i <= 10'000; ++i) widths += (i > 1 ? "," : "") + std::to_string(i);
  const auto start = std::chrono::steady_clock::now();
  const Model model = read_small("llama", R"("num_hidden_layers": 10000, "num_attention_heads": 4,
      "intermediate_size": [)" + widths + "]");
  EXPECT_EQ(model.layers, 10'000);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(Malformed, WhatIsNoConfigurationIsRefusedAtOnce) {
  std::string text = R"({"model_type": "llama", "hidden_size": 8)";
  for (int i = 0; i < 5000; ++i) text += ", \"k" + std::to_string(i) + "\": 1";
  EXPECT_NE(refusal(text + "}").find("5002 keys are more than a configuration has"), std::string::npos);
}

TEST(OddButReal, IsRead) {
  const std::int64_t plain = total(read_small("llama", kDense));
  EXPECT_EQ(total(read_small("llama", kDense + R"(, "num_key_value_heads": null)")), plain);
  EXPECT_EQ(total(read_small("llama", kDense + R"(, "rope_scaling": {"factor": Infinity, "low": NaN})")),
            plain);
  EXPECT_EQ(total(read_text(config_text("llama", kDense) + "\n// made by hand\n")), plain);
  EXPECT_EQ(total(read_small("llama", kDense + R"(, "head_dim": 3)")), plain + 2 * 4 * 4 * 8);
  EXPECT_EQ(total(read_small("llama", kDense + R"(, "attention_bias": 0)")), plain);
  const std::string qwen = R"("num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 12)";
  EXPECT_EQ(total(read_small("qwen", qwen)), plain + 2 * 24) << "Qwen 1 counts both halves of the MLP";
  const Model step = read_small("step3p5", kDense + R"(, "num_attention_groups": 2, "head_dim": 2,
      "moe_num_experts": 3, "moe_top_k": 1, "moe_intermediate_size": 2, "share_expert_dim": 2,
      "moe_layers_enum": "1")");
  EXPECT_EQ(block_of(step, 0, BlockKind::mlp).layers, std::vector<std::int32_t>{0});
  EXPECT_EQ(block_of(step, 1, BlockKind::moe).layers, std::vector<std::int32_t>{1});
}

}  // namespace
}  // namespace memwall
