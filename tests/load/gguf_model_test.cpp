#include "load/gguf_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/yaml_model.h"
#include "paths.h"
#include "tests/load/gguf_models.h"
#include "tests/model/round_trip.h"

namespace memwall {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kAttention = 64 + 64 * 64 * 2 + 64 * 32 * 2;  // of SmallGguf, its norm included
constexpr std::int64_t kMlp = 64 + 3 * 64 * 96;

SmallGguf llama(bool tied = false) {
  SmallGguf file("llama");
  file.heads().tables(tied);
  for (const std::uint32_t layer : {0U, 1U}) file.attention(layer).mlp(layer);
  return file;
}

TEST_F(GgufModels, ReadsADenseModel) {
  SmallGguf file = llama();
  file.text("general.name", "Tiny Llama");
  const Model model = model_of(file);
  EXPECT_EQ(model.name, "Tiny Llama");
  EXPECT_EQ(model.title, "Tiny Llama");
  EXPECT_EQ(model.architecture, "llama");
  EXPECT_EQ(model.file, path());
  EXPECT_EQ(model.hidden_size, 64);
  EXPECT_EQ(model.vocab_size, 128);
  EXPECT_EQ(model.max_context, 4096);
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(format_name(model.weights), "f16");
  EXPECT_EQ(model.kv, KvFormat::f16);
  EXPECT_FALSE(model.approximate);
  EXPECT_TRUE(model.warnings.empty());
  EXPECT_TRUE(model.extras.empty());

  ASSERT_EQ(model.blocks.size(), 4U);  // both layers are one
  const Block& attention = model.blocks[1];
  EXPECT_EQ(attention.kind, BlockKind::attention);
  EXPECT_THAT(attention.layers, ElementsAre(0, 1));
  EXPECT_THAT(tensor_names(attention), ElementsAre("attn_norm", "q_proj", "k_proj", "v_proj", "o_proj"));
  EXPECT_EQ(state_of<KvState>(attention),
            (KvState{.heads = 4, .kv_heads = 2, .d_k = 16, .d_v = 16, .rotary = true}));
  EXPECT_EQ(attention.find("attn_norm")->norm, NormKind::rms);
  const Block& mlp = model.blocks[2];
  EXPECT_EQ(mlp.kind, BlockKind::mlp);
  EXPECT_TRUE(mlp.gated);
  EXPECT_THAT(tensor_names(mlp), ElementsAre("mlp_norm", "gate_proj", "up_proj", "down_proj"));
  EXPECT_EQ(count_parameters(model).total, 2 * 64 * 128 + 64 + 2 * (kAttention + kMlp));
  EXPECT_EQ(count_parameters(model).active, 64 * 128 + 64 + 2 * (kAttention + kMlp));
  EXPECT_EQ(kv_bytes_per_token(model), 2 * 2 * (16 + 16) * 2);
}

TEST_F(GgufModels, TheHeadMayBeTheEmbedding) {
  const Model model = model_of(llama(true));
  EXPECT_EQ(model.name, "model");  // of the file: there is no general.name
  const Tensor& head = *model.blocks.back().find("lm_head");
  EXPECT_TRUE(head.tied);
  EXPECT_EQ(head.out, 128);
  EXPECT_EQ(head.read, Read::always);
  EXPECT_EQ(count_parameters(model).total, 64 * 128 + 64 + 2 * (kAttention + kMlp));
  EXPECT_EQ(count_parameters(model).active, 64 * 128 + 64 + 2 * (kAttention + kMlp));
}

// What the zoo says of Llama 3.2 1B, its GGUF file says too; the rotary table is no parameter.
TEST_F(GgufModels, CountsWhatTheConfigurationCounts) {
  GgufWriter writer;
  writer.text("general.architecture", "llama");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::uint32_t>>{{"embedding_length", 2048},
                                                          {"block_count", 16},
                                                          {"attention.head_count", 32},
                                                          {"attention.head_count_kv", 8},
                                                          {"context_length", 131072}}) {
    writer.integer("llama." + key, value);
  }
  writer.number("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  writer.tensor("rope_freqs.weight", "F32", {32}).tensor("token_embd.weight", "Q6_K", {2048, 128256});
  for (int layer = 0; layer < 16; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    writer.tensor(prefix + "attn_norm.weight", "F32", {2048})
        .tensor(prefix + "ffn_norm.weight", "F32", {2048});
    writer.tensor(prefix + "attn_q.weight", "Q4_K", {2048, 2048});
    writer.tensor(prefix + "attn_k.weight", "Q4_K", {2048, 512});
    writer.tensor(prefix + "attn_v.weight", layer % 2 == 0 ? "Q6_K" : "Q4_K", {2048, 512});
    writer.tensor(prefix + "attn_output.weight", "Q4_K", {2048, 2048});
    writer.tensor(prefix + "ffn_gate.weight", "Q4_K", {2048, 8192});
    writer.tensor(prefix + "ffn_up.weight", "Q4_K", {2048, 8192});
    writer.tensor(prefix + "ffn_down.weight", "Q4_K", {8192, 2048});
  }
  writer.tensor("output_norm.weight", "F32", {2048});
  const Model model = model_of(writer);
  const Model zoo = load_model_yaml(std::string(MEMWALL_SOURCE_DIR) + "/models/llama-3.2-1b.yaml");
  EXPECT_EQ(count_parameters(model).total, 1235814400);
  EXPECT_EQ(count_parameters(model).total, count_parameters(zoo).total);
  EXPECT_EQ(count_parameters(model).active, count_parameters(zoo).active);
  EXPECT_EQ(kv_bytes_per_token(model), kv_bytes_per_token(zoo));
  EXPECT_EQ(format_name(model.weights), "q4_k");
  EXPECT_EQ(format_name(model.head), "q6_k");
  ASSERT_EQ(model.extras.size(), 1U);
  EXPECT_EQ(model.extras[0].what, "rotary tables");
  EXPECT_EQ(model.extras[0].parameters, 32);
  // As files of Q4_K_M are: layers that differ in a format are apart.
  EXPECT_THAT(model.blocks[1].layers, ElementsAre(0, 2, 4, 6, 8, 10, 12, 14));
  EXPECT_EQ(format_name(model.blocks[1].find("v_proj")->format), "q6_k");
  EXPECT_THAT(model.blocks[3].layers, ElementsAre(1, 3, 5, 7, 9, 11, 13, 15));
  EXPECT_EQ(format_name(model.blocks[3].find("v_proj")->format), "q4_k");
}

TEST_F(GgufModels, ReadsBiasesPositionsAndAnUngatedMlp) {
  SmallGguf file("gpt2", 1, "");
  file.key("attention.head_count", 4).tables(true);
  file.add("output_norm.bias", {64}).add("position_embd.weight", {64, 1024});
  file.at(0, "attn_norm.weight", {64}).at(0, "attn_norm.bias", {64});
  file.at(0, "attn_qkv.weight", {64, 192}).at(0, "attn_qkv.bias", {192});
  file.at(0, "attn_output.weight", {64, 64}).at(0, "attn_output.bias", {64});
  file.at(0, "ffn_norm.weight", {64}).at(0, "ffn_norm.bias", {64});
  file.at(0, "ffn_up.weight", {64, 256}).at(0, "ffn_up.bias", {256});
  file.at(0, "ffn_down.weight", {256, 64}).at(0, "ffn_down.bias", {64});
  const Model model = model_of(file);
  EXPECT_THAT(tensor_names(model.blocks[0]), ElementsAre("embed_tokens", "embed_positions"));
  EXPECT_EQ(model.blocks[0].tensors[1].role, Role::positions);
  EXPECT_EQ(model.blocks[0].tensors[1].read, Read::gathered);
  EXPECT_THAT(tensor_names(model.blocks[1]), ElementsAre("attn_norm", "attn_norm.bias", "qkv_proj",
                                                         "qkv_proj.bias", "o_proj", "o_proj.bias"));
  EXPECT_EQ(model.blocks[1].tensors[0].norm, NormKind::layer);
  EXPECT_EQ(state_of<KvState>(model.blocks[1]), (KvState{.heads = 4, .kv_heads = 4, .d_k = 16, .d_v = 16}));
  EXPECT_FALSE(model.blocks[2].gated);
  EXPECT_EQ(model.blocks[2].activation, ActivationKind::gelu);
  const std::int64_t norms = 3 * 128;
  EXPECT_EQ(count_parameters(model).total,
            64 * 128 + 64 * 1024 + norms + 64 * 192 + 192 + 64 * 64 + 64 + 2 * 64 * 256 + 256 + 64);
  EXPECT_EQ(count_parameters(model).embedding, 64 * 128 + 64 * 1024);
}

TEST_F(GgufModels, AnUpOfTwiceTheWidthHoldsTheGate) {
  SmallGguf file("phi3", 1);
  file.heads().key("attention.sliding_window", 2048).tables().add("rope_factors_long.weight", {8});
  file.attention(0).at(0, "ffn_norm.weight", {64});
  file.at(0, "ffn_up.weight", {64, 192}).at(0, "ffn_down.weight", {96, 64});
  const Model model = model_of(file);
  EXPECT_THAT(tensor_names(model.blocks[2]), ElementsAre("mlp_norm", "gate_up_proj", "down_proj"));
  EXPECT_TRUE(model.blocks[2].gated);
  EXPECT_EQ(state_of<KvState>(model.blocks[1]).window, 0);  // llama.cpp does not use it
}

TEST_F(GgufModels, LayersSlideByTheArchitecturesPattern) {
  SmallGguf file("gemma3", 7);
  file.heads().key("attention.sliding_window", 512).tables(true);
  for (std::uint32_t layer = 0; layer < 7; ++layer) {
    file.attention(layer)
        .mlp(layer)
        .at(layer, "attn_q_norm.weight", {16})
        .at(layer, "attn_k_norm.weight", {16});
    file.at(layer, "post_attention_norm.weight", {64}).at(layer, "post_ffw_norm.weight", {64});
  }
  const Model model = model_of(file);
  ASSERT_EQ(model.blocks.size(), 6U);
  EXPECT_THAT(tensor_names(model.blocks[1]), ElementsAre("attn_norm", "q_proj", "k_proj", "v_proj", "q_norm",
                                                         "k_norm", "o_proj", "attn_post_norm"));
  EXPECT_EQ(model.blocks[1].find("q_norm")->rows, 4);
  EXPECT_EQ(model.blocks[1].find("k_norm")->rows, 2);
  EXPECT_THAT(tensor_names(model.blocks[2]),
              ElementsAre("mlp_norm", "gate_proj", "up_proj", "down_proj", "mlp_post_norm"));
  EXPECT_EQ(model.blocks[2].activation, ActivationKind::gelu);
  EXPECT_THAT(model.blocks[1].layers, ElementsAre(0, 1, 2, 3, 4, 6));
  EXPECT_EQ(state_of<KvState>(model.blocks[1]).window, 512);
  EXPECT_THAT(model.blocks[3].layers, ElementsAre(5));
  EXPECT_EQ(state_of<KvState>(model.blocks[3]).window, 0);
}

// Windows of four layers, in order.
std::vector<std::int64_t> windows(const Model& model) {
  std::vector<std::int64_t> windows(static_cast<std::size_t>(model.layers), -1);
  for (const Block& block : model.blocks) {
    for (const std::int32_t layer : block.layers) {
      if (block.states.empty()) continue;
      const auto& state = state_of<KvState>(block);
      windows[static_cast<std::size_t>(layer)] = state.chunk > 0 ? -state.chunk : state.window;
    }
  }
  return windows;
}

SmallGguf four_layers(const std::string& architecture) {
  SmallGguf file(architecture, 4);
  file.heads().tables();
  for (std::uint32_t layer = 0; layer < 4; ++layer) file.attention(layer).mlp(layer);
  return file;
}

TEST_F(GgufModels, KnowsEveryWayToSlide) {
  EXPECT_THAT(windows(model_of(four_layers("gemma2"))), ElementsAre(4096, 0, 4096, 0));
  EXPECT_THAT(windows(model_of(four_layers("gpt-oss").key("attention.sliding_window", 128))),
              ElementsAre(128, 0, 128, 0));
  EXPECT_THAT(windows(model_of(four_layers("cohere2").key("attention.sliding_window", 100))),
              ElementsAre(100, 100, 100, 0));
  EXPECT_THAT(windows(model_of(four_layers("laguna").key("attention.sliding_window", 100))),
              ElementsAre(0, 100, 100, 100));
  EXPECT_THAT(windows(model_of(four_layers("llama4"))), ElementsAre(-8192, -8192, -8192, 0));
  EXPECT_THAT(windows(model_of(four_layers("llama4").key("attention.sliding_window", 0))),
              ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(windows(model_of(four_layers("olmo2"))), ElementsAre(0, 0, 0, 0));  // OLMo 2 itself has none
  EXPECT_THAT(windows(model_of(four_layers("olmo2").key("attention.sliding_window", 100))),
              ElementsAre(100, 100, 100, 0));
  // The 64-layer model of EXAONE 4 alone slides, and Llama never does.
  EXPECT_THAT(windows(model_of(four_layers("exaone4").key("attention.sliding_window", 100))),
              ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(windows(model_of(four_layers("llama").key("attention.sliding_window", 100))),
              ElementsAre(0, 0, 0, 0));
  // The file's own pattern: a period or a list.
  EXPECT_THAT(windows(model_of(four_layers("gemma3")
                                   .key("attention.sliding_window", 100)
                                   .key("attention.sliding_window_pattern", 3))),
              ElementsAre(100, 100, 0, 100));
  SmallGguf listed = four_layers("mimo2").key("attention.sliding_window", 100);
  listed.array<std::uint8_t>("mimo2.attention.sliding_window_pattern", GgufType::boolean, {0, 1, 1, 0});
  EXPECT_THAT(windows(model_of(listed)), ElementsAre(0, 100, 100, 0));
  EXPECT_EQ(model_refusal(four_layers("mimo2").key("attention.sliding_window", 100)),
            "the metadata key 'mimo2.attention.sliding_window_pattern' is missing");
}

TEST_F(GgufModels, LayersMayHaveHeadsOfTheirOwn) {
  SmallGguf file("deci", 3);
  file.keys("attention.head_count", {4, 0, 4}).keys("attention.head_count_kv", {2, 0, 1});
  file.key("attention.key_length", 16).key("attention.value_length", 16).tables();
  file.attention(0).mlp(0).mlp(1);  // the second layer has no attention
  file.at(2, "attn_norm.weight", {64}).at(2, "attn_q.weight", {64, 64}).at(2, "attn_k.weight", {64, 16});
  file.at(2, "attn_v.weight", {64, 16}).at(2, "attn_output.weight", {64, 64});
  const Model model = model_of(file);
  EXPECT_EQ(kv_bytes_per_token(model), (2 + 1) * 32 * 2);
  EXPECT_EQ(model.blocks[3].kind, BlockKind::mlp);
  EXPECT_THAT(model.blocks[3].layers, ElementsAre(1));
  EXPECT_EQ(state_of<KvState>(model.blocks[4]).kv_heads, 1);
}

TEST_F(GgufModels, AnUnknownArchitectureIsReadByItsTensors) {
  SmallGguf file = four_layers("newest").key("attention.sliding_window", 100);
  const Model model = model_of(file);
  EXPECT_TRUE(model.approximate);
  EXPECT_THAT(model.warnings,
              ElementsAre("architecture 'newest' is not known: read by the names of its tensors, with the "
                          "activation SiLU and the sliding window in every layer"));
  EXPECT_THAT(windows(model), ElementsAre(100, 100, 100, 100));
}

TEST_F(GgufModels, WhatIsNotUnderstoodIsCountedAndSaid) {
  SmallGguf file = llama();
  file.at(1, "ffn_mystery.weight", {64, 32}).at(1, "ffn_mystery_scale", {64}).add("strange.weight", {64});
  const Model model = model_of(file);
  EXPECT_TRUE(model.approximate);
  EXPECT_THAT(model.warnings,
              ElementsAre("3 tensors are not understood, counted as read in every step: "
                          "blk.1.ffn_mystery.weight, blk.1.ffn_mystery_scale, strange.weight"));
  EXPECT_EQ(count_parameters(model).active, 64 * 128 + 64 + 2 * (kAttention + kMlp) + 64 * 32 + 64 + 64);
}

// In a layer or outside, a matrix, a vector or a stack: inspect --format yaml keeps its parameters and bytes.
TEST_F(GgufModels, TensorsThatAreNotUnderstoodSurviveYaml) {
  const auto base = [] {
    SmallGguf file("llama", 2);
    file.heads().tables();
    for (const std::uint32_t layer : {0U, 1U}) file.attention(layer).mlp(layer);
    return file;
  };
  const ParameterCount count = count_parameters(model_of(base()));
  for (const std::string place : {"", "blk.0.", "blk.1."}) {
    for (const std::vector<std::uint64_t>& ne :
         std::vector<std::vector<std::uint64_t>>{{64}, {1}, {64, 32}, {7, 5, 3}}) {
      for (const std::string name : {"foo.weight", "foo", "foo.bias", "run.weight"}) {
        SmallGguf file = base();
        file.add(place + name, ne);
        const Model model = model_of(file);
        std::int64_t more = 1;
        for (const std::uint64_t extent : ne) more *= static_cast<std::int64_t>(extent);
        EXPECT_EQ(count_parameters(model).total, count.total + more);
        expect_round_trip(model);
      }
    }
  }
  SmallGguf many = base();
  many.add("foo.weight", {64, 2}).add("foo.bias", {2}).add("bar", {3}).at(0, "foo.weight", {64, 2});
  many.at(0, "foo.bias", {2}).at(0, "bar", {5}).tensor("blk.0.odd.weight", "Q8_K", {256, 3});
  expect_round_trip(model_of(many));
  // A state's word is no name in a run: the tensor is written as NAME.weight.
  for (const std::string name : {"attention", "latent", "blk.0.recurrent.weight", "blk.0.indexer"}) {
    SmallGguf file = base();
    file.add(name, {64, 2});
    const Model model = model_of(file);
    const Model back = read_model(model_yaml(model));
    EXPECT_EQ(count_parameters(back).total, count_parameters(model).total);
    EXPECT_EQ(stored_bytes(back), stored_bytes(model));
    EXPECT_EQ(read_bytes(back), read_bytes(model));
  }
}

// A search through all tensors of a block for each of them took half a minute of a file such as the largest
// that is read. No time is asserted, which a slow machine would miss: at this size the old way takes the
// tests' whole limit. What is kept apart is bounded, and every byte is placed.
TEST_F(GgufModels, ManyTensorsThatAreNotUnderstood) {
  constexpr std::int64_t kCount = 100'000;
  SmallGguf file("llama", 1);
  file.heads().tables().attention(0).mlp(0);
  for (std::int64_t i = 0; i < kCount; ++i) file.add("blk.0.foo" + std::to_string(i) + ".weight", {2, 2});
  const Model model = model_of(file);
  EXPECT_LT(lower(model).size(), 10'000U);
  EXPECT_EQ(model.blocks[3].tensors.size(), 4097U);
  EXPECT_EQ(model.blocks[3].tensors.back().elements(), 4 * (kCount - 4096));
  expect_round_trip(model);
}

// Nanbeige's layers run `num_loops` times: stored once, read and cached by each.
TEST_F(GgufModels, LayersThatRunTwice) {
  const auto file = [](std::uint32_t loops) {
    SmallGguf writer("nanbeige", 2);
    writer.heads().tables().key("num_loops", loops);
    for (const std::uint32_t layer : {0U, 1U}) writer.attention(layer).mlp(layer);
    return writer;
  };
  const Model once = model_of(file(1));
  const Model twice = model_of(file(2));
  EXPECT_FALSE(twice.approximate);
  EXPECT_EQ(twice.layers, 4);
  EXPECT_EQ(stored_bytes(twice), stored_bytes(once));
  EXPECT_EQ(count_parameters(twice).total, count_parameters(once).total);
  EXPECT_EQ(kv_bytes_per_token(twice), 2 * kv_bytes_per_token(once));
  // Two layers of F32 norms (2 x 64) and F16 linears, once more.
  constexpr std::int64_t kLayer = 2 * 64 * 4 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96);
  EXPECT_EQ(read_bytes(twice) - read_bytes(once), 2 * kLayer);
  expect_round_trip(twice);
}

TEST_F(GgufModels, MiniMaxM3ChoosesBlocksOfTokens) {
  SmallGguf writer("minimax-m3", 1);
  writer.heads().tables().attention(0).mlp(0);
  writer.key("attention.indexer.head_count", 2).key("attention.indexer.key_length", 8);
  writer.key("attention.indexer.top_k", 16).key("attention.indexer.block_size", 128);
  writer.at(0, "indexer.q_proj.weight", {64, 16}).at(0, "indexer.k_proj.weight", {64, 8});
  writer.at(0, "indexer.q_norm.weight", {8}).at(0, "indexer.k_norm.weight", {8});
  const Model model = model_of(writer);
  EXPECT_FALSE(model.approximate);
  EXPECT_EQ(state_of<IndexerState>(model.blocks[1], 0).width, 8);
  EXPECT_EQ(state_of<KvState>(model.blocks[1], 1).top_k, 2048);
  // K and V of 2 heads of 16, and the indexer's key, in f16.
  EXPECT_EQ(kv_bytes_per_token(model), 2 * 2 * 16 * 2 + 8 * 2);
  expect_round_trip(model);
}

// Types of a fork: the bytes are the file's, the format the nearest, and a warning says so.
TEST_F(GgufModels, TypesOfForksKeepTheirBytes) {
  SmallGguf fits("llama", 1);
  fits.heads().tables().attention(0).mlp(0);
  fits.tensor("foo.weight", "IQ4_KS", {256, 4}).tensor_of("bar.weight", 250, {64, 64}, 64 * 64);
  const Model model = model_of(fits);
  std::int64_t foo = 0;
  std::int64_t bar = 0;
  for (const Block& block : model.blocks) {
    for (const Tensor& tensor : block.tensors) {
      if (tensor.name == "foo") foo = tensor.bytes();
      if (tensor.name == "bar") bar = tensor.bytes();
    }
  }
  EXPECT_EQ(foo, 4 * (136 + 4));
  EXPECT_EQ(bar, 64 * 64);
  EXPECT_THAT(model.warnings, testing::Contains(testing::HasSubstr("IQ4_KS as iq4_xs, type 250 as q8_0")));
  expect_round_trip(model);
}

TEST_F(GgufModels, SpeechAndEncodersAreNamedAsWhatTheyAre) {
  for (const auto& [name, words] :
       std::vector<std::pair<std::string, std::string>>{{"qwen3tts", "makes speech"},
                                                        {"pockettts", "makes speech"},
                                                        {"whisper", "is an encoder-decoder"},
                                                        {"wavtokenizer-dec", "decodes audio"},
                                                        {"clip", "a vision or audio tower"},
                                                        {"bert", "is an encoder"}}) {
    EXPECT_THAT(model_refusal(SmallGguf(name, 1).heads().tables().attention(0).mlp(0)),
                testing::HasSubstr(words));
  }
}

}  // namespace
}  // namespace memwall
