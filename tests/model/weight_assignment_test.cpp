// --weights for parts of a model: the grammar and what it changes (docs/model-format.md).
#include "model/weight_assignment.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "load/load_model.h"
#include "model/weight_parts.h"
#include "support.h"
#include "tests/support.h"

namespace memwall {
namespace {

Format format(const std::string& name) { return find_format(name).value(); }

std::vector<WeightAssignment> parse(const std::string& text) {
  return parse_weight_assignments(text, "--weights", [](const std::string& name) {
    if (const auto found = find_format(name)) return *found;
    throw InputError("no format " + name);
  });
}

std::vector<std::string> labels(const std::string& text) {
  std::vector<std::string> all;
  for (const WeightAssignment& one : parse(text)) all.push_back(one.label());
  return all;
}

using Labels = std::vector<std::string>;

TEST(WeightAssignment, ItemsSideBySideAreOneModel) {
  EXPECT_EQ(labels("bf16"), Labels{"bf16"});
  EXPECT_EQ(labels("bf16,q8_0,q4_0"), (Labels{"bf16", "q8_0", "q4_0"}));
  EXPECT_EQ(labels("experts=mxfp4,attention=q8_0"), Labels{"experts=mxfp4,attention=q8_0"});
  EXPECT_EQ(labels("experts=mxfp4,rest=q8_0"), Labels{"experts=mxfp4,rest=q8_0"});
  EXPECT_EQ(labels("experts = mxfp4, rest=q8_0"), Labels{"experts=mxfp4,rest=q8_0"});
  EXPECT_EQ(labels("rest=q8_0,experts=mxfp4"), Labels{"experts=mxfp4,rest=q8_0"});
  EXPECT_EQ(labels("default=q8_0,experts=mxfp4"), Labels{"experts=mxfp4,rest=q8_0"});
  // A format before items is for the rest; the ones before it are alternatives.
  EXPECT_EQ(labels("q8_0,experts=mxfp4"), Labels{"experts=mxfp4,rest=q8_0"});
  EXPECT_EQ(labels("bf16,q8_0,experts=mxfp4"), (Labels{"bf16", "experts=mxfp4,rest=q8_0"}));
  EXPECT_EQ(labels("experts=mxfp4;experts=q4_0,rest=q8_0;bf16"),
            (Labels{"experts=mxfp4", "experts=q4_0,rest=q8_0", "bf16"}));
  EXPECT_EQ(labels("rest=q8_0"), Labels{"q8_0"});
  EXPECT_EQ(labels("*.down_proj=q6_k,rest=q4_k"), Labels{"*.down_proj=q6_k,rest=q4_k"});
}

TEST(WeightAssignment, ALabelReadsBackAsItself) {
  for (const char* text :
       {"experts=mxfp4,rest=q8_0", "q_proj=q6_k,mlp=int4-g128-zp,rest=bf16", "q4_0", "attention=f8_e4m3"}) {
    EXPECT_EQ(labels(text), Labels{text});
    EXPECT_EQ(labels(labels(text).front()), labels(text));
  }
}

TEST(WeightAssignment, WhatCannotBeReadSaysWhy) {
  EXPECT_EQ(
      error_of([] { parse("experts=mxfp4,q8_0"); }),
      "--weights: 'q8_0' after parts is either the rest or another alternative; write rest=q8_0 or ;q8_0");
  EXPECT_EQ(error_of([] { parse("experts="); }),
            "--weights: 'experts=' is not PART=FORMAT, like experts=mxfp4");
  EXPECT_EQ(error_of([] { parse("=q8_0"); }), "--weights: '=q8_0' is not PART=FORMAT, like experts=mxfp4");
  EXPECT_EQ(error_of([] { parse("rest=q8_0,rest=q4_0"); }),
            "--weights: the rest is given twice, as q8_0 and q4_0");
  EXPECT_EQ(error_of([] { parse("q8_0,rest=q4_0"); }),
            "--weights: the rest is given twice, as q8_0 and q4_0");
  EXPECT_EQ(error_of([] { parse("bf16,,q8_0"); }),
            "--weights: an item of the list is empty; write formats with one comma between");
  EXPECT_EQ(error_of([] { parse("experts=mxfp4;"); }),
            "--weights: an item of the list is empty; write formats with one comma between");
}

// A layer of each: attention, a mixture with a shared expert, a dense MLP.
Model small() {
  return read_model(
      "name: m\nweights: bf16\nhidden_size: 64\nvocab_size: 96\nlayers:\n"
      "  - attention: {heads: 4, bias: true}\n"
      "    moe: {experts: 4, per_token: 1, intermediate: 32, shared: {intermediate: 32}}\n"
      "  - attention: {heads: 4}\n"
      "    mlp: {intermediate: 32}\n");
}

std::string format_of(const Model& model, const std::string& name, std::size_t skip = 0) {
  for (const Block& block : model.blocks) {
    for (const Tensor& tensor : block.tensors) {
      if (tensor.name == name && skip-- == 0) return format_name(tensor.format);
    }
  }
  return "none";
}

Model assign(const std::string& text, const Model& model = small()) {
  return with_weights(model, parse(text).front(), std::nullopt);
}

TEST(WithAssignment, EveryPartByItsWords) {
  EXPECT_EQ(weight_parts(small()), (std::vector<std::string>{"embedding", "attention", "router", "experts",
                                                             "shared_experts", "mlp", "lm_head"}));
  const Model model =
      assign("attn=q8_0,experts=mxfp4,shared-experts=q6_k,ffn=q5_0,router=f32,head=q4_1,embeddings=q5_1");
  EXPECT_EQ(format_of(model, "q_proj"), "q8_0");
  EXPECT_EQ(format_of(model, "o_proj", 1), "q8_0");
  EXPECT_EQ(format_of(model, "experts.down_proj"), "mxfp4");
  EXPECT_EQ(format_of(model, "shared_expert.down_proj"), "q6_k");
  EXPECT_EQ(format_of(model, "down_proj"), "q5_0");
  EXPECT_EQ(format_of(model, "router"), "f32");
  EXPECT_EQ(format_of(model, "lm_head"), "q4_1");
  EXPECT_EQ(format_of(model, "embed_tokens"), "q5_1");
  EXPECT_EQ(format_of(model, "attn_norm"), "bf16");
  EXPECT_EQ(format_of(model, "q_proj.bias"), "bf16");
  EXPECT_EQ(format_name(model.head), "q4_1");
}

TEST(WithAssignment, TheRestFollowsTheRuleForOneFormat) {
  const Model model = assign("experts=mxfp4,rest=q8_0");
  const Model q8 = with_weights(small(), format("q8_0"), std::nullopt);
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    for (std::size_t t = 0; t < model.blocks[b].tensors.size(); ++t) {
      const Tensor& tensor = model.blocks[b].tensors[t];
      EXPECT_EQ(tensor.format, tensor.role == Role::expert ? format("mxfp4") : q8.blocks[b].tensors[t].format)
          << tensor.name;
    }
  }
  EXPECT_EQ(weights_label(model), "experts=mxfp4,rest=q8_0");
  // Without a rest all else stays.
  EXPECT_EQ(format_of(assign("experts=mxfp4"), "q_proj"), "bf16");
  EXPECT_EQ(format_of(assign("experts=mxfp4"), "lm_head"), "bf16");
  EXPECT_EQ(format_of(assign("experts=mxfp4,rest=int4-g32"), "lm_head"), "bf16");
}

TEST(WithAssignment, TensorsAndPatternsAndTheLaterOneWins) {
  const Model model = assign("*down_proj=q6_k,experts.*=q4_0,v_proj=q5_0");
  EXPECT_EQ(format_of(model, "down_proj"), "q6_k");
  EXPECT_EQ(format_of(model, "shared_expert.down_proj"), "q6_k");
  EXPECT_EQ(format_of(model, "experts.down_proj"), "q4_0");
  EXPECT_EQ(format_of(model, "v_proj"), "q5_0");
  EXPECT_EQ(format_of(model, "q_proj"), "bf16");
  EXPECT_EQ(format_of(assign("?_proj=q8_0"), "k_proj"), "q8_0");
  EXPECT_EQ(format_of(assign("?_proj=q8_0"), "up_proj"), "bf16");
  EXPECT_EQ(format_of(assign("*=q8_0"), "attn_norm"), "bf16");
}

TEST(WithAssignment, WhatTheModelLacksIsNamedWithWhatItHas) {
  EXPECT_EQ(error_of([] { assign("expert=q8_0", read_model(with_layers("  - attention: {heads: 4}\n"))); }),
            "--weights: m has no part or tensor 'expert'; its parts are attention, and 'rest'; tensors are "
            "named like q_proj, k_proj, v_proj");
  EXPECT_NE(
      error_of([] { assign("atention=q8_0"); })
          .find("m has no part or tensor 'atention'; its parts are embedding, attention, router, experts, "
                "shared_experts, mlp, lm_head, and 'rest'"),
      std::string::npos);
  EXPECT_NE(error_of([] { assign("gate*x=q8_0"); }).find("no part or tensor 'gate*x'"), std::string::npos);
  EXPECT_EQ(error_of([] { assign("*_norm=q8_0"); }),
            "--weights: '*_norm' names norms, biases or small parameters of m, whose formats stay");
}

TEST(WithAssignment, ATiedHeadIsTheTable) {
  const Model tied = read_model(
      "name: m\nhidden_size: 64\nvocab_size: 96\ntie_embeddings: true\nlayers:\n  - attention: {heads: 4}\n");
  for (const char* text : {"head=q8_0", "embedding=q8_0", "head=q8_0,embedding=q8_0"}) {
    const Model model = assign(text, tied);
    EXPECT_EQ(format_of(model, "lm_head"), "q8_0") << text;
    EXPECT_EQ(format_of(model, "embed_tokens"), "q8_0") << text;
  }
  EXPECT_EQ(error_of([&] { assign("head=q8_0,embedding=q4_0", tied); }),
            "--weights: the lm_head of m is its embedding table: one format for both");
  EXPECT_EQ(error_of([&] { with_weights(small(), parse("head=q8_0").front(), format("f16")); }),
            "--weights: names the lm_head or the embedding, and so does --head-weights; give one");
}

// gpt-oss as llama.cpp's GGUF holds it. 24 layers' attention is 637,009,920 weights, the lm_head and the
// table 579,133,440 each; an expert's two matrices have 2880 columns: 90 blocks of 17 bytes, or of 34 in
// q8_0.
TEST(WithAssignment, GptOssAsItsGguf) {
  const Model zoo = find_model("gpt-oss-20b");
  const Model model = assign("experts=mxfp4,rest=q8_0", zoo);
  EXPECT_EQ(stored_bytes(zoo) - stored_bytes(model), (637'009'920 + 2 * 579'133'440LL) * (32 - 17) / 16);
  EXPECT_EQ(format_name(model.weights), "mxfp4");
  EXPECT_EQ(stored_formats(zoo), "mxfp4+bf16");
  // The file has 12,109,566,560 bytes, 13.0 MB of which are the vocabulary and other metadata.
  const Model gguf = find_model("gpt-oss-20b-gguf");
  EXPECT_EQ(stored_bytes(gguf), 12'096'558'336);
  EXPECT_EQ(stored_formats(gguf), "mxfp4+q8_0");
  // Norms, biases, sinks and routers are f32 there.
  const std::int64_t matrices = 24 * 32LL * (5760 + 2880) * 90 * 17;
  EXPECT_EQ(stored_bytes(gguf), matrices + (637'009'920 + 2 * 579'133'440LL) * 34 / 32 +
                                    4 * (count_parameters(gguf).total - 24 * 32LL * (5760 + 2880) * 2880 -
                                         637'009'920 - 2 * 579'133'440LL));
  EXPECT_EQ(count_parameters(gguf).total, count_parameters(zoo).total);
}

}  // namespace
}  // namespace memwall
