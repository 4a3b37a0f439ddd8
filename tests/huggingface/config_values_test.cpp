// Values of another kind than their key's, and lists that do not fit the layers: each ends in one line with
// its place, and never in a default.
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "families_support.h"
#include "paths.h"

namespace memwall {
namespace {

const std::string kMoe =
    R"("num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 6, "num_experts": 4,
       "num_experts_per_tok": 2, "moe_intermediate_size": 3)";
const std::string kDense = R"("num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 6)";

struct Bad {
  std::string type;
  std::string keys;
  std::string message;  // begins with the line and column

  friend void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.type << ' ' << bad.keys; }
};

class BadValues : public testing::TestWithParam<Bad> {};

TEST_P(BadValues, AreRefusedWhereTheyStand) {
  const std::string text = "{\"model_type\": \"" + GetParam().type +
                           "\", \"hidden_size\": 8, \"vocab_size\": 10,\n" + GetParam().keys + "}";
  EXPECT_EQ(refusal(text).rfind("config.json:" + GetParam().message, 0), 0U) << refusal(text);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BadValues,
    testing::Values(
        Bad{"qwen3_moe", "\"decoder_sparse_step\": \"1\", " + kMoe,
            "2:24: decoder_sparse_step must be a whole number, 0 to 1125899906842624, not the text '1'"},
        Bad{"qwen3_moe", "\"decoder_sparse_step\": null, " + kMoe,
            "2:24: decoder_sparse_step must be a value, not null"},
        Bad{"qwen3_moe", "\"decoder_sparse_step\": [1, 1], " + kMoe,
            "2:24: decoder_sparse_step must be a whole number"},
        Bad{"deepseek_v3", "\"moe_layer_freq\": true, " + kMoe,
            "2:19: moe_layer_freq must be a whole number"},
        Bad{"deepseek_v3", "\"moe_layer_freq\": {}, " + kMoe, "2:19: moe_layer_freq must be a whole number"},
        Bad{"mimo_v2_flash", "\"moe_layer_freq\": [0], " + kMoe, "2:19: moe_layer_freq lists 1 layers of 2"},
        Bad{"mimo_v2_flash", "\"moe_layer_freq\": [0, 1, 1], " + kMoe,
            "2:19: moe_layer_freq lists 3 layers of 2"},
        Bad{"granitemoe", "\"num_experts_per_tok\": 2, \"num_local_experts\": null, " + kDense,
            "2:48: the experts are null, but each token takes 2 of them"},
        Bad{"qwen3_moe", "\"num_experts\": null, " + kDense, "2:16: num_experts must be a value, not null"},
        Bad{"qwen3", "\"head_dim\": null, " + kDense, "2:13: head_dim must be a value, not null"},
        Bad{"gpt2", "\"max_position_embeddings\": null, " + kDense,
            "2:28: n_positions must be a value, not null"},
        Bad{"mimo_v2_flash", "\"moe_layer_freq\": 1, " + kMoe, "2:19: moe_layer_freq must be a list"},
        Bad{"llama", "\"layer_types\": \"full_attention\", " + kDense,
            "2:16: layer_types must be a list with one item for each layer, not the text 'full_attention'"},
        Bad{"llama", "\"layer_types\": 7, " + kDense, "2:16: layer_types must be a list"},
        Bad{"llama", "\"layer_types\": {\"0\": \"full_attention\"}, " + kDense,
            "2:16: layer_types must be a list"},
        Bad{"llama", "\"layer_types\": [1, 2], " + kDense, "2:17: layer_types must be a text, not 1"},
        Bad{"llama", "\"layer_types\": [], " + kDense, "2:16: layer_types lists 0 layers of 2"},
        Bad{"qwen3_next", "\"layer_types\": [\"linear_attention\", \"liner_attention\"], " + kDense,
            "2:37: layer 1 is of type 'liner_attention' in layer_types; known for model_type 'qwen3_next' "
            "are "
            "full_attention, attention, linear_attention"},
        Bad{"deepseek_v4", "\"layer_types\": [\"sliding_attention\", \"dense\"], " + kMoe,
            "2:38: layer 1 is of type 'dense'"},
        Bad{"glm_moe_dsa",
            "\"kv_lora_rank\": 4, \"v_head_dim\": 2, \"qk_nope_head_dim\": 2, "
            "\"indexer_types\": [\"full\", \"half\"], " +
                kMoe,
            "2:86: layer 1 is of type 'half' in indexer_types; known for model_type 'glm_moe_dsa' are full, "
            "shared"},
        Bad{"qwen3_moe", "\"mlp_layer_types\": [\"dense\"], " + kMoe,
            "2:20: mlp_layer_types lists 1 layers of 2"},
        Bad{"qwen3_moe", "\"mlp_layer_types\": [\"dense\", \"dence\"], " + kMoe,
            "2:30: layer 1 is of type 'dence'"},
        Bad{"qwen3_moe", "\"mlp_only_layers\": [2], " + kMoe,
            "2:20: mlp_only_layers names layer 2, but there are 2, counted from 0"},
        Bad{"llama", "\"num_key_value_heads\": [4], " + kDense,
            "2:24: num_key_value_heads lists 1 layers of 2"},
        Bad{"llama", "\"num_key_value_heads\": \"4\", " + kDense,
            "2:24: num_key_value_heads must be a whole number"},
        Bad{"llama", "\"attention_bias\": \"true\", " + kDense,
            "2:19: attention_bias must be true or false, not the text 'true'"},
        Bad{"llama", "\"tie_word_embeddings\": \"false\", " + kDense,
            "2:24: tie_word_embeddings must be true or false"},
        Bad{"llama", "\"head_dim\": 2.5, " + kDense, "2:13: head_dim must be a whole number"},
        Bad{"llama", "\"head_dim\": [2, 2], " + kDense, "2:13: head_dim must be a whole number"},
        Bad{"llama", "\"text_config\": \"x\", " + kDense, "2:16: text_config must be an object"},
        Bad{"hunyuan_v1_moe", "\"moe_topk\": [1, 2], " + kMoe,
            "2:17: moe_topk differs between layers, which is not read"},
        Bad{"minimax", "\"attn_type_list\": [1], " + kMoe, "2:19: attn_type_list lists 1 layers of 2"},
        Bad{"minimax", "\"attn_type_list\": 1, " + kMoe, "2:19: attn_type_list must be a list"},
        Bad{"mimo_v2_flash", "\"hybrid_layer_pattern\": [0, 1, 1], " + kMoe,
            "2:25: hybrid_layer_pattern lists 3 layers of 2"},
        Bad{"llama4_text", "\"num_key_value_heads\": 4, \"no_rope_layers\": [1], " + kMoe,
            "2:45: no_rope_layers lists 1 layers of 2"},
        Bad{"gpt_neo", "\"attention_types\": [[[\"global\", \"local\"], 2]], " + kDense,
            "2:20: attention_types lists 4 layers of 2"},
        Bad{"gpt_neo", "\"attention_types\": [[[\"global\", \"lokal\"], 1]], " + kDense,
            "2:33: attention_types holds the kinds 'global' and 'local'"},
        Bad{"nemotron_h", "\"num_hidden_layers\": 2, \"hybrid_override_pattern\": \"M*M\"",
            "2:52: hybrid_override_pattern lists 3 layers of 2"},
        Bad{"openelm", "\"ffn_multipliers\": [1.0], " + kDense, "2:20: ffn_multipliers lists 1 layers of 2"},
        Bad{"gemma3_text", "\"sliding_window_pattern\": \"LLX\", " + kDense,
            "2:27: sliding_window_pattern must be a number, or letters"},
        Bad{"kimi_linear",
            "\"linear_attn_config\": {\"full_attn_layers\": [2],\n\"kda_layers\": [2]}, " + kMoe,
            "3:15: layer 1 must stand in one of kda_layers and full_attn_layers"}));

TEST(BadValues, OfANestedModelStandInIt) {
  const std::string text =
      "{\"model_type\": \"llava\",\n \"text_config\": {\"model_type\": \"llama\",\n"
      "  \"hidden_size\": 8, \"vocab_size\": 10, \"num_hidden_layers\": 2";
  EXPECT_EQ(
      refusal(text + ", \"num_attention_heads\": \"4\"}}"),
      "config.json:3:86: num_attention_heads must be a whole number, 0 to 1125899906842624, not the text "
      "'4'");
  EXPECT_EQ(refusal(text + ", \"num_attention_heads\": 4, \"intermediate_size\": 6,\n\"head_dim\": 0.5}}"),
            "config.json:4:13: head_dim must be a whole number, 0 to 1125899906842624, not 0.5");
  EXPECT_EQ(refusal("{\"model_type\": \"llava\",\n \"text_config\": {\"model_type\": \"unknown\"}}"),
            "config.json:2:17: no hidden_size (also called n_embd, n_embed, d_model, model_dim)");
}

// Multi-token-prediction layers follow the others in the lists of some checkpoints.
TEST(LayerLists, MayTellOfDraftsToo) {
  const std::string types = R"(, "layer_types": ["full_attention", "full_attention", "full_attention"])";
  EXPECT_EQ(total(read_small("qwen3_moe", kMoe + types + R"(, "num_nextn_predict_layers": 1)")),
            total(read_small("qwen3_moe", kMoe)));
  EXPECT_NE(refusal(config_text("qwen3_moe", kMoe + types)).find("layer_types lists 3 layers of 2"),
            std::string::npos);
}

// A window of gpt_neo's local layers.
TEST(LayerLists, AttentionTypesHaveTheirWindow) {
  const Model model =
      read_small("gpt_neo", kDense + R"(, "window_size": 5, "attention_types": [[["global", "local"], 1]])");
  EXPECT_EQ(kv_of(model, 0).window, 0);
  EXPECT_EQ(kv_of(model, 1).window, 5);
}

TEST(HostileConfigs, AreRefusedWithTheirPlace) {
  const std::string folder = MEMWALL_SOURCE_DIR "/../shared/data/trials/hostile";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    const std::string message = error_of([&] { load_config(entry.path().string()); });
    EXPECT_EQ(message.rfind(entry.path().string() + ":", 0), 0U) << message;
    const std::string place = message.substr(entry.path().string().size(), 8);
    EXPECT_NE(place.find_first_of("123456789"), std::string::npos) << message;
  }
  EXPECT_GE(files, 3);
}

}  // namespace
}  // namespace memwall
