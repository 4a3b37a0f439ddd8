// From model files to blocks: the tensors, the state and the layers each block stands for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "support.h"

namespace memwall {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Block only_block(const std::string& layer, const std::string& top = "") {
  const Model model = read_model("name: m\nhidden_size: 64\n" + top + "layers:\n  - " + layer + "\n");
  EXPECT_EQ(model.blocks.size(), 1U);
  return model.blocks.at(0);
}

// The KV cache of an attention block.
KvState kv(const Block& block) { return std::get<KvState>(block.states.at(0).state); }

TEST(AttentionBlock, Default) {
  const Block block = only_block("attention: {heads: 4, kv_heads: 2}");
  EXPECT_EQ(block.kind, BlockKind::attention);
  EXPECT_THAT(shapes(block), ElementsAre("attn_norm 64x1 bf16", "q_proj 64x64 bf16", "k_proj 32x64 bf16",
                                         "v_proj 32x64 bf16", "o_proj 64x64 bf16"));
  EXPECT_EQ(kv(block).heads, 4);
  EXPECT_TRUE(kv(block).rotary);
  EXPECT_EQ(kv(block).kv_heads, 2);
  EXPECT_EQ(kv(block).d_k, 16);
  EXPECT_EQ(kv(block).d_v, 16);
  EXPECT_EQ(kv(block).window, 0);
}

TEST(AttentionBlock, KvHeadsDefaultToHeads) {
  EXPECT_EQ(kv(only_block("attention: {heads: 4}")).kv_heads, 4);
}

TEST(AttentionBlock, ValueHeadsMayHaveAnotherWidth) {
  const Block block = only_block(
      "attention: {heads: 4, kv_heads: 2, head_dim: 24, v_head_dim: 8, window: 100, rotary: false}");
  EXPECT_THAT(shapes(block), ElementsAre("attn_norm 64x1 bf16", "q_proj 96x64 bf16", "k_proj 48x64 bf16",
                                         "v_proj 16x64 bf16", "o_proj 64x32 bf16"));
  EXPECT_EQ(kv(block).d_k, 24);
  EXPECT_EQ(kv(block).d_v, 8);
  EXPECT_EQ(kv(block).window, 100);
  EXPECT_FALSE(kv(block).rotary);
}

TEST(AttentionBlock, Biases) {
  EXPECT_THAT(shapes(only_block("attention: {heads: 4, kv_heads: 1, bias: true, norm: none}")),
              ElementsAre("q_proj 64x64 bf16", "q_proj.bias 64x1 bf16", "k_proj 16x64 bf16",
                          "k_proj.bias 16x1 bf16", "v_proj 16x64 bf16", "v_proj.bias 16x1 bf16",
                          "o_proj 64x64 bf16", "o_proj.bias 64x1 bf16"));
  EXPECT_THAT(shapes(only_block("attention: {heads: 4, kv_heads: 1, bias: [v, q], norm: none}")),
              ElementsAre("q_proj 64x64 bf16", "q_proj.bias 64x1 bf16", "k_proj 16x64 bf16",
                          "v_proj 16x64 bf16", "v_proj.bias 16x1 bf16", "o_proj 64x64 bf16"));
  EXPECT_EQ(only_block("attention: {heads: 4, bias: false, norm: none}").tensors.size(), 4U);
}

TEST(AttentionBlock, QkNorms) {
  EXPECT_THAT(shapes(only_block("attention: {heads: 4, kv_heads: 2, qk_norm: head, norm: none}")),
              ElementsAre("q_proj 64x64 bf16", "k_proj 32x64 bf16", "v_proj 32x64 bf16", "q_norm 16x1 bf16",
                          "k_norm 16x1 bf16", "o_proj 64x64 bf16"));
  EXPECT_THAT(shapes(only_block("attention: {heads: 4, kv_heads: 2, qk_norm: full, norm: none}")),
              ElementsAre("q_proj 64x64 bf16", "k_proj 32x64 bf16", "v_proj 32x64 bf16", "q_norm 64x1 bf16",
                          "k_norm 32x1 bf16", "o_proj 64x64 bf16"));
}

TEST(AttentionBlock, FusedQkvAndNormPlaces) {
  EXPECT_THAT(
      shapes(only_block("attention: {heads: 4, kv_heads: 2, fused_qkv: true, bias: [q, k, v], norm: both}")),
      ElementsAre("attn_norm 64x1 bf16", "qkv_proj 128x64 bf16", "qkv_proj.bias 128x1 bf16",
                  "o_proj 64x64 bf16", "attn_post_norm 64x1 bf16"));
  EXPECT_THAT(shapes(only_block("attention: {heads: 4, fused_qkv: true, norm: post}")),
              ElementsAre("qkv_proj 192x64 bf16", "o_proj 64x64 bf16", "attn_post_norm 64x1 bf16"));
}

TEST(Norms, KindsOfThem) {
  const std::string layer = "attention: {heads: 4, fused_qkv: true, qk_norm: head}";
  EXPECT_THAT(shapes(only_block(layer, "norm: layer\n")),
              ElementsAre("attn_norm 64x1 bf16", "attn_norm.bias 64x1 bf16", "qkv_proj 192x64 bf16",
                          "q_norm 16x1 bf16", "q_norm.bias 16x1 bf16", "k_norm 16x1 bf16",
                          "k_norm.bias 16x1 bf16", "o_proj 64x64 bf16"));
  EXPECT_EQ(shapes(only_block(layer, "norm: layer_no_bias\n")), shapes(only_block(layer, "norm: rms\n")));
  EXPECT_EQ(only_block(layer, "norm: layer_no_bias\n").tensors.front().norm, NormKind::layer_no_bias);
  EXPECT_THAT(shapes(only_block(layer, "norm: none\n")),
              ElementsAre("qkv_proj 192x64 bf16", "o_proj 64x64 bf16"));
}

TEST(MlpBlock, GatedPlainAndFused) {
  EXPECT_THAT(shapes(only_block("mlp: {intermediate: 100}")),
              ElementsAre("mlp_norm 64x1 bf16", "gate_proj 100x64 bf16", "up_proj 100x64 bf16",
                          "down_proj 64x100 bf16"));
  const Block plain =
      only_block("mlp: {intermediate: 100, gated: false, bias: true, activation: gelu, norm: both}");
  EXPECT_THAT(shapes(plain),
              ElementsAre("mlp_norm 64x1 bf16", "up_proj 100x64 bf16", "up_proj.bias 100x1 bf16",
                          "down_proj 64x100 bf16", "down_proj.bias 64x1 bf16", "mlp_post_norm 64x1 bf16"));
  EXPECT_FALSE(plain.gated);
  EXPECT_EQ(plain.activation, ActivationKind::gelu);
  EXPECT_THAT(shapes(only_block("mlp: {intermediate: 100, fused_gate_up: true, norm: none}")),
              ElementsAre("gate_up_proj 200x64 bf16", "down_proj 64x100 bf16"));
}

TEST(MoeBlock, ExpertsRouterAndSharedExpert) {
  const Block block = only_block(
      "moe: {experts: 8, per_token: 2, intermediate: 32, router_bias: true, shared: {intermediate: 48, gate: "
      "true}}");
  EXPECT_THAT(shapes(block),
              ElementsAre("mlp_norm 64x1 bf16", "router 8x64 bf16", "router.bias 8x1 bf16",
                          "shared_expert.gate 1x64 bf16", "8*experts.gate_proj 32x64 bf16",
                          "8*experts.up_proj 32x64 bf16", "8*experts.down_proj 64x32 bf16",
                          "shared_expert.gate_proj 48x64 bf16", "shared_expert.up_proj 48x64 bf16",
                          "shared_expert.down_proj 64x48 bf16"));
  EXPECT_EQ(block.experts_per_token, 2);
  EXPECT_EQ(block.find("router")->role, Role::router);
  EXPECT_EQ(block.find("experts.up_proj")->role, Role::expert);
  EXPECT_EQ(block.find("experts.up_proj")->read, Read::per_expert);
  EXPECT_EQ(block.find("shared_expert.up_proj")->role, Role::linear);
  EXPECT_EQ(block.find("shared_expert.up_proj")->read, Read::always);
  EXPECT_EQ(block.find("nothing"), nullptr);
}

TEST(MoeBlock, CountsOfAWholeModel) {
  // By hand. Each of 3 layers: norm 64; router 4*64 + 4; experts 4 * (32*64 + 32 + 64*32 + 64) of which 1 is
  // read; shared 16*64 + 16 + 64*16 + 64. Vocabulary: 100*64 twice, final norm 64.
  const Model model = read_model(
      "name: m\nhidden_size: 64\nvocab_size: 100\nlayers:\n  - repeat: 3\n"
      "    moe: {experts: 4, per_token: 1, intermediate: 32, gated: false, bias: true, router_bias: true,\n"
      "          shared: {intermediate: 16}}\n");
  const std::int64_t expert = 32 * 64 + 32 + 64 * 32 + 64;
  const std::int64_t rest = 64 + 4 * 64 + 4 + (16 * 64 + 16 + 64 * 16 + 64);
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.total, 3 * (4 * expert + rest) + 2 * 6400 + 64);
  EXPECT_EQ(count.embedding, 6400);
  EXPECT_EQ(count.active, 3 * (expert + rest) + 6400 + 64);
  EXPECT_EQ(stored_bytes(model), 2 * count.total);
  EXPECT_EQ(read_bytes(model), 2 * count.active);
  EXPECT_EQ(kv_bytes_per_token(model), 0);
}

TEST(VocabularyBlocks, TiedAndUntied) {
  const std::string text = "name: m\nhidden_size: 64\nvocab_size: 100\nlayers:\n  - mlp: {intermediate: 8}\n";
  const std::int64_t mlp = 64 + 3 * 8 * 64;
  const ParameterCount untied = count_parameters(read_model(text));
  EXPECT_EQ(untied.total, mlp + 2 * 6400 + 64);
  EXPECT_EQ(untied.active, mlp + 6400 + 64);
  const Model tied_model = read_model("tie_embeddings: true\n" + text);
  const ParameterCount tied = count_parameters(tied_model);
  EXPECT_EQ(tied.total, mlp + 6400 + 64);   // stored once
  EXPECT_EQ(tied.active, mlp + 6400 + 64);  // and read once
  EXPECT_EQ(stored_bytes(tied_model), 2 * tied.total);
  EXPECT_EQ(read_bytes(tied_model), 2 * tied.active);
  EXPECT_EQ(tied_model.blocks.front().kind, BlockKind::embedding);
  EXPECT_EQ(tied_model.blocks.back().kind, BlockKind::head);
}

TEST(VocabularyBlocks, LearnedPositionsHeadBiasAndNoFinalNorm) {
  const Model model = read_model(
      "name: m\nhidden_size: 64\nvocab_size: 100\npositions: 50\nlm_head_bias: true\nfinal_norm: "
      "false\nlayers:\n"
      "  - mlp: {intermediate: 8, norm: none}\n");
  EXPECT_THAT(shapes(model.blocks.front()),
              ElementsAre("embed_tokens 100x64 bf16", "embed_positions 50x64 bf16"));
  EXPECT_THAT(shapes(model.blocks.back()), ElementsAre("lm_head 100x64 bf16", "lm_head.bias 100x1 bf16"));
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.embedding, 150 * 64);
  EXPECT_EQ(count.total, 150 * 64 + 3 * 8 * 64 + 6400 + 100);
  EXPECT_EQ(count.active, 3 * 8 * 64 + 6400 + 100);
}

TEST(VocabularyBlocks, AFinalNormNeedsNoVocabulary) {
  const Model model = read_model("final_norm: true\nnorm: layer\n" + with_layers("  - a: [8, 8]\n"));
  EXPECT_THAT(shapes(model.blocks.back()), ElementsAre("final_norm 64x1 bf16", "final_norm.bias 64x1 bf16"));
}

TEST(ExplicitShapes, TheExampleOfTheDocs) {
  const Model model = read_model(
      "name: two-linears\nlayers:\n  - repeat: 24\n    qkv: [3072, 1024]\n    kv_cache: {heads: 16, "
      "head_dim: 64}\n"
      "    out: [1024, 1024]\n");
  ASSERT_EQ(model.blocks.size(), 3U);
  EXPECT_THAT(shapes(model.blocks[0]), ElementsAre("qkv 3072x1024 bf16"));
  EXPECT_EQ(model.blocks[1].kind, BlockKind::kv_cache);
  EXPECT_THAT(model.blocks[1].tensors, IsEmpty());
  EXPECT_FALSE(kv(model.blocks[1]).rotary);
  EXPECT_THAT(shapes(model.blocks[2]), ElementsAre("out 1024x1024 bf16"));
  EXPECT_EQ(model.layers, 24);
  EXPECT_EQ(count_parameters(model).total, 24 * (3072 * 1024 + 1024 * 1024));
  EXPECT_EQ(kv_bytes_per_token(model), 24 * 16 * 2 * 64 * 2);
  EXPECT_EQ(model.title, "two-linears");
}

TEST(ExplicitShapes, WithBiasAndWeights) {
  const Block block = only_block("extra: {shape: [33, 65], bias: true, weights: q8_0}");
  EXPECT_THAT(shapes(block), ElementsAre("extra 33x65 q8_0", "extra.bias 33x1 bf16"));
  EXPECT_EQ(block.tensors[0].bytes(), 33 * 3 * 34);
  EXPECT_EQ(block.tensors[1].bytes(), 66);
}

TEST(KvCacheBlock, HeadsWidthsWindow) {
  const Block block = only_block("kv_cache: {heads: 8, kv_heads: 2, head_dim: 24, v_head_dim: 8, window: 9}");
  EXPECT_EQ(kv(block).heads, 8);
  EXPECT_EQ(kv(block).kv_heads, 2);
  EXPECT_EQ(kv(block).d_k, 24);
  EXPECT_EQ(kv(block).d_v, 8);
  EXPECT_EQ(kv(block).window, 9);
}

TEST(KvBytes, OfEveryCacheFormat) {
  const std::string layers =
      with_layers("  - repeat: 3\n    attention: {heads: 4, kv_heads: 2, v_head_dim: 8}\n");
  EXPECT_EQ(kv_bytes_per_token(read_model("kv: f32\n" + layers)), 3 * 2 * (16 + 8) * 4);
  EXPECT_EQ(kv_bytes_per_token(read_model("kv: f16\n" + layers)), 3 * 2 * (16 + 8) * 2);
  EXPECT_EQ(kv_bytes_per_token(read_model("kv: f8_e4m3\n" + layers)), 3 * 2 * (16 + 8));
  EXPECT_EQ(kv_bytes_per_token(read_model("kv: int8\n" + layers)), 3 * 2 * (16 + 2 + 8 + 2));
}

TEST(KvBytes, AWindowBoundsTheCacheButNotTheBytesAToken) {
  const Model model = read_model(with_layers(
      "  - pattern:\n      - attention: {heads: 4, window: 10}\n      - attention: {heads: 4}\n"));
  const std::int64_t layer = 2 * 64 * 2;
  EXPECT_EQ(kv_bytes_per_token(model), 2 * layer);
  EXPECT_EQ(kv_cache_bytes(model, 10), 20 * layer);
  EXPECT_EQ(kv_cache_bytes(model, 25), (10 + 25) * layer);
  EXPECT_EQ(kv_cache_bytes(model, 0), 0);
}

TEST(Layers, RepeatsAndPatterns) {
  const Model model =
      read_model(with_layers("  - a: [1, 2]\n"
                             "  - repeat: 3\n"
                             "    pattern:\n"
                             "      - b: [1, 2]\n"
                             "        c: [1, 2]\n"
                             "      - d: [1, 2]\n"
                             "  - repeat: 2\n"
                             "    e: [1, 2]\n"));
  EXPECT_EQ(model.layers, 9);
  ASSERT_EQ(model.blocks.size(), 5U);
  EXPECT_THAT(model.blocks[0].layers, ElementsAre(0));
  EXPECT_THAT(model.blocks[1].layers, ElementsAre(1, 3, 5));
  EXPECT_THAT(model.blocks[2].layers, ElementsAre(1, 3, 5));
  EXPECT_THAT(model.blocks[3].layers, ElementsAre(2, 4, 6));
  EXPECT_THAT(model.blocks[4].layers, ElementsAre(7, 8));
  EXPECT_EQ(model.blocks[4].tensors[0].name, "e");
  EXPECT_EQ(count_parameters(model).total, 2 * (1 + 3 * 3 + 2));
}

TEST(Layers, BlocksRunInTheOrderOfTheirKeys) {
  const Model model = read_model(with_layers("  - mlp: {intermediate: 8}\n    attention: {heads: 4}\n"));
  EXPECT_EQ(model.blocks[0].kind, BlockKind::mlp);
  EXPECT_EQ(model.blocks[1].kind, BlockKind::attention);
}

TEST(Layers, TenThousandAreTheMost) {
  EXPECT_EQ(read_model(with_layers("  - repeat: 10000\n    a: [1, 1]\n")).layers, 10'000);
}

TEST(ModelFormats, OfTheModelAndOfABlock) {
  const Model model = read_model(
      "weights: q4_0\n" +
      with_layers("  - attention: {heads: 4, fused_qkv: true, weights: f8_e4m3}\n    mlp: {intermediate: 8}\n"
                  "    moe: {experts: 2, per_token: 1, intermediate: 4, gated: false, weights: mxfp4}\n"));
  EXPECT_THAT(shapes(model.blocks[0]),
              ElementsAre("attn_norm 64x1 bf16", "qkv_proj 192x64 f8_e4m3", "o_proj 64x64 f8_e4m3"));
  EXPECT_EQ(format_name(model.blocks[1].find("up_proj")->format), "q4_0");
  EXPECT_EQ(format_name(model.blocks[2].find("experts.up_proj")->format), "mxfp4");
  EXPECT_EQ(format_name(model.blocks[2].find("router")->format), "bf16");
  EXPECT_EQ(format_name(model.weights), "q4_0");
}

TEST(ModelFormats, DefaultsOfHeadAndKv) {
  struct Case {
    const char* weights;
    const char* head;
    const char* kv;
  };
  for (const Case& c : {Case{"f32", "f32", "f32"}, Case{"f16", "f16", "f16"}, Case{"bf16", "bf16", "bf16"},
                        Case{"q8_0", "q8_0", "bf16"}, Case{"int4-g128", "bf16", "bf16"},
                        Case{"f8_e4m3", "bf16", "bf16"}, Case{"mxfp4", "bf16", "bf16"}}) {
    const Model model =
        read_model("weights: " + std::string(c.weights) + "\n" + with_layers("  - a: [1, 1]\n"));
    EXPECT_EQ(format_name(model.head), c.head) << c.weights;
    EXPECT_EQ(kv_format_name(model.kv), c.kv) << c.weights;
  }
}

}  // namespace
}  // namespace memwall
