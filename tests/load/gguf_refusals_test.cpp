#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "cost/op.h"
#include "paths.h"
#include "tests/load/gguf_models.h"

namespace memwall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(GgufModels, RefusesWhatIsNoModelToDecodeWith) {
  EXPECT_THAT(model_refusal(SmallGguf("llama")), HasSubstr("holds no tensors"));
  SmallGguf vocabulary("llama");
  vocabulary.texts("tokenizer.ggml.tokens", {"a"});
  EXPECT_EQ(model_refusal(vocabulary),
            "holds a vocabulary and no tensors; name a file that holds the model's weights");
  SmallGguf adapter("llama");
  adapter.text("general.type", "adapter").tensor("blk.0.attn_q.weight.lora_a", "F32", {64, 8});
  EXPECT_EQ(model_refusal(adapter),
            "holds a 'adapter' (general.type), not a model; name the file of the model that it is for");
  const auto refusal = [&](const char* architecture) {
    return model_refusal(SmallGguf(architecture).tables().attention(0).mlp(0));
  };
  EXPECT_EQ(refusal("clip"),
            "its architecture, 'clip', is a vision or audio tower (mmproj); name the language model's file");
  EXPECT_EQ(refusal("bert"), "its architecture, 'bert', is an encoder, which embeds texts and decodes none");
  EXPECT_THAT(refusal("t5"), HasSubstr("is an encoder-decoder; memwall counts decoder-only models"));
  EXPECT_THAT(refusal("eagle3"), HasSubstr("the draft head of another model"));
  GgufWriter odd;
  odd.text("general.architecture", "two\nlines").tensor("token_embd.weight", "F32", {64});
  EXPECT_EQ(model_refusal(odd),
            "general.architecture is 'two\\x0alines', which can be no architecture's name");
}

SmallGguf one_layer(std::uint32_t heads = 4, std::uint32_t kv_heads = 2) {
  SmallGguf file("llama", 1);
  file.key("attention.head_count", heads).key("attention.head_count_kv", kv_heads);
  file.tables().attention(0).mlp(0);
  return file;
}

TEST_F(GgufModels, RefusesMetadataThatContradictTheTensors) {
  EXPECT_EQ(model_refusal(one_layer(0)),
            "'llama.attention.head_count' is 0 for layer 0; it must be 1 to 2147483648");
  EXPECT_EQ(model_refusal(one_layer(4, 3)),
            "'llama.attention.head_count' (4) must be a multiple of 'llama.attention.head_count_kv' (3), in "
            "layer 0");
  EXPECT_EQ(model_refusal(one_layer(6, 2)),
            "'llama.attention.head_count' (6) does not divide 'llama.embedding_length' (64), and there is no "
            "'llama.attention.key_length'");
  EXPECT_EQ(
      model_refusal(one_layer(4, 4)),
      "tensor 'blk.0.attn_k.weight' has 32 rows, but 4 heads (llama.attention.head_count_kv) of 16 make 64");
  EXPECT_EQ(
      model_refusal(one_layer().key("attention.key_length", 32)),
      "tensor 'blk.0.attn_q.weight' has 64 rows, but 4 heads (llama.attention.head_count) of 32 make 128");
  EXPECT_EQ(model_refusal(one_layer().at(1, "attn_norm.weight", {64})),
            "tensor 'blk.1.attn_norm.weight' is of layer 1, but 'llama.block_count' is 1");
  EXPECT_EQ(model_refusal(one_layer().key("nextn_predict_layers", 1)),
            "'llama.nextn_predict_layers' is 1; it must be 0 to 0");
  EXPECT_EQ(model_refusal(SmallGguf("llama", 2).heads().tables().attention(0)),
            "layer 1 has no tensors, but 'llama.block_count' is 2");
  EXPECT_EQ(model_refusal(SmallGguf("llama", 10'001).tables()),
            "'llama.block_count' is 10001; it must be 1 to 10000");
  EXPECT_EQ(model_refusal(SmallGguf("llama", 1).heads().attention(0).mlp(0)),
            "the tensor 'token_embd.weight' is missing");
  SmallGguf no_output("llama", 1);
  no_output.heads().tables().at(0, "attn_q.weight", {64, 64}).at(0, "attn_k.weight", {64, 32});
  EXPECT_EQ(model_refusal(no_output), "the tensor 'blk.0.attn_v.weight' is missing");
  SmallGguf narrow("llama", 1);
  narrow.heads().tables().attention(0).at(0, "ffn_up.weight", {64, 96}).at(0, "ffn_down.weight", {90, 64});
  narrow.at(0, "ffn_gate.weight", {64, 90});
  EXPECT_EQ(model_refusal(narrow),
            "tensor 'blk.0.ffn_up.weight' has 96 rows, but 'blk.0.ffn_down.weight' makes 90");
  SmallGguf bias = one_layer();
  bias.at(0, "attn_q.bias", {63});
  EXPECT_EQ(model_refusal(bias), "tensor 'blk.0.attn_q.bias' has 63 elements, but its weight has 64 rows");
  SmallGguf listed("llama", 3);
  listed.keys("attention.head_count", {4, 4})
      .key("attention.head_count_kv", 2)
      .tables()
      .attention(0)
      .attention(1)
      .attention(2);
  EXPECT_EQ(model_refusal(listed), "'llama.attention.head_count' lists 2 layers, but there are 3");
  const std::vector<std::vector<std::int32_t>> lists = {{4}, {4, 4, 4, 4}};
  for (const std::vector<std::int32_t>& heads : lists) {
    SmallGguf other("llama", 3);
    other.keys("attention.head_count", heads).key("attention.head_count_kv", 2).tables();
    for (std::int32_t layer = 0; layer < 3; ++layer) other.attention(layer).mlp(layer);
    EXPECT_EQ(model_refusal(other), "'llama.attention.head_count' lists " + std::to_string(heads.size()) +
                                        " layers, but there are 3");
  }
  SmallGguf sliding("mimo2", 3);
  sliding.heads()
      .key("attention.sliding_window", 100)
      .keys("attention.sliding_window_pattern", {1, 0})
      .tables();
  for (std::int32_t layer = 0; layer < 3; ++layer) sliding.attention(layer).mlp(layer);
  EXPECT_EQ(model_refusal(sliding),
            "'mimo2.attention.sliding_window_pattern' lists 2 layers, but there are 3");
}

TEST_F(GgufModels, RefusesExpertsThatCannotBe) {
  const auto file = [](std::uint32_t experts, std::uint32_t used) {
    SmallGguf writer("llama", 1);
    writer.heads().key("expert_count", experts).key("expert_used_count", used);
    writer.tables().attention(0).experts(0);
    return writer;
  };
  EXPECT_EQ(model_refusal(file(8, 9)), "'llama.expert_used_count' is 9 for layer 0; it must be 1 to 8");
  EXPECT_EQ(model_refusal(file(8, 0)), "'llama.expert_used_count' is 0 for layer 0; it must be 1 to 8");
  EXPECT_EQ(model_refusal(file(4, 2)),
            "tensor 'blk.0.ffn_gate_inp.weight' has 8 rows, but llama.expert_count make 4");
  SmallGguf uneven("llama", 1);
  uneven.heads().key("expert_count", 8).key("expert_used_count", 2).tables().attention(0);
  uneven.at(0, "ffn_gate_inp.weight", {64, 8}).at(0, "ffn_up_exps.weight", {64, 32, 8});
  uneven.at(0, "ffn_gate_exps.weight", {64, 32, 8}).at(0, "ffn_down_exps.weight", {32, 64, 7});
  EXPECT_EQ(model_refusal(uneven),
            "tensor 'blk.0.ffn_down_exps.weight' must hold a matrix for each of 8 experts; its shape is 7 x "
            "64 x 32");
}

TEST_F(GgufModels, RefusesAMixerThatIsNotKnown) {
  SmallGguf file("newest", 1);
  file.heads().tables().mlp(0).at(0, "attn_kv.weight", {64, 64});
  EXPECT_EQ(model_refusal(file),
            "tensor 'blk.0.attn_kv.weight' is not understood, so what layer 0 keeps of earlier tokens is not "
            "known; describe the model in YAML (docs/model-format.md)");
}

// Sizes that fit a header but no sum.
TEST_F(GgufModels, RefusesSizesThatPass63Bits) {
  SmallGguf file("mamba", 1);
  file.key("ssm.inner_size", 0x80000000U).key("ssm.state_size", 0x80000000U).key("ssm.conv_kernel", 4);
  file.key("ssm.time_step_rank", 4).tables().at(0, "ssm_in.weight", {64, 64}).at(0, "ssm_x.weight", {64, 64});
  EXPECT_EQ(model_refusal(file), "its sizes multiply to more than 2^63 - 1");
}

// Files that llama.cpp's own tools wrote.
class GgufModelSamples : public testing::Test {
 protected:
  static std::string sample(const std::string& name) {
    return std::string(MEMWALL_SOURCE_DIR) + "/../shared/data/files/gguf/" + name;
  }
};

TEST_F(GgufModelSamples, MixedFormatsAreOpsOfTheirOwn) {
  const std::string path = sample("tiny-Q4_K_M.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const Model model = load_gguf(path);
  EXPECT_EQ(model.name, "synthetic");
  EXPECT_EQ(format_name(model.weights), "q4_k");
  EXPECT_EQ(format_name(model.head), "q6_k");
  EXPECT_EQ(stored_bytes(model), 1996032);
  std::vector<std::string> down;
  for (const Op& op : lower(model)) {
    if (op.name == "down_proj") {
      down.push_back(format_name(linear_of(op.work)->format));
      EXPECT_EQ(op.count(), 2);
    }
  }
  EXPECT_THAT(down, ElementsAre("q4_k", "q6_k"));
}

TEST_F(GgufModelSamples, EveryByteIsPlaced) {
  for (const char* name : {"tiny-Q2_K.gguf", "tiny-Q4_0.gguf", "tiny-Q4_K_M.gguf", "tiny-Q6_K.gguf"}) {
    const std::string path = sample(name);
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    std::int64_t stored = 0;
    for (const StoredTensor& tensor : read_gguf(path).tensors) stored += tensor.bytes;
    EXPECT_EQ(stored_bytes(load_gguf(path)), stored) << name;
    EXPECT_EQ(count_parameters(load_gguf(path)).total, 3279104) << name;
  }
}

TEST_F(GgufModelSamples, AVocabularyIsNoModel) {
  const std::string path = sample("llamacpp__ggml-vocab-phi-3.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  EXPECT_EQ(error_of([&] { load_gguf(path); }),
            path + ": holds a vocabulary and no tensors; name a file that holds the model's weights");
}

// A decoder's tensors but for those of `missing`; `experts`: with experts and a shared one in place of MLPs.
SmallGguf without(const std::string& architecture, const std::set<std::string>& missing, bool experts,
                  std::uint32_t layers = 2) {
  SmallGguf file(architecture, layers);
  file.heads();
  if (experts) file.key("expert_count", 8).key("expert_used_count", 2);
  const auto add = [&](const std::string& name, const std::vector<std::uint64_t>& ne) {
    if (!missing.contains(name)) file.add(name, ne);
  };
  add("token_embd.weight", {64, 128});
  add("output_norm.weight", {64});
  add("output.weight", {64, 128});
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const std::string at = "blk." + std::to_string(layer) + ".";
    add(at + "attn_norm.weight", {64});
    add(at + "attn_q.weight", {64, 64});
    add(at + "attn_k.weight", {64, 32});
    add(at + "attn_v.weight", {64, 32});
    add(at + "attn_output.weight", {64, 64});
    add(at + "ffn_norm.weight", {64});
    if (experts) add(at + "ffn_gate_inp.weight", {64, 8});
    for (const std::string& suffix :
         experts ? std::vector<std::string>{"_exps", "_shexp"} : std::vector<std::string>{""}) {
      const std::vector<std::uint64_t> stack =
          suffix == "_exps" ? std::vector<std::uint64_t>{8} : std::vector<std::uint64_t>{};
      const auto matrix = [&](std::uint64_t in, std::uint64_t out) {
        std::vector<std::uint64_t> ne{in, out};
        ne.insert(ne.end(), stack.begin(), stack.end());
        return ne;
      };
      add(at + "ffn_gate" + suffix + ".weight", matrix(64, 96));
      add(at + "ffn_up" + suffix + ".weight", matrix(64, 96));
      add(at + "ffn_down" + suffix + ".weight", matrix(96, 64));
    }
  }
  return file;
}

// Never another tensor's name, and never a model of another kind: without ffn_gate an ungated one, without
// output one whose head is its embedding.
TEST_F(GgufModels, AMissingTensorIsNamedItself) {
  for (const bool experts : {false, true}) {
    model_of(without("olmoe", {}, experts));
    std::vector<std::string> names = {"token_embd", "output_norm", "output"};
    for (const char* stem : {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm"})
      names.push_back(std::string("blk.0.") + stem);
    if (experts) names.push_back("blk.1.ffn_gate_inp");
    for (const std::string& suffix :
         experts ? std::vector<std::string>{"_exps", "_shexp"} : std::vector<std::string>{""}) {
      for (const char* stem : {"ffn_gate", "ffn_up", "ffn_down"}) names.push_back("blk.1." + (stem + suffix));
    }
    for (const std::string& name : names) {
      EXPECT_EQ(model_refusal(without("olmoe", {name + ".weight"}, experts)),
                "the tensor '" + name + ".weight' is missing");
    }
  }
  // Of a single layer, with no other to compare it with.
  for (const std::string name : {"attn_norm", "attn_q", "ffn_gate"}) {
    EXPECT_EQ(model_refusal(without("llama", {"blk.0." + name + ".weight"}, false, 1)),
              "the tensor 'blk.0." + name + ".weight' is missing");
  }
  // Llama's head may be its embedding.
  EXPECT_TRUE(model_of(without("llama", {"output.weight"}, false)).blocks.back().find("lm_head")->tied);
  // Of an architecture that is not known, what its other layers have is wanted, and no more.
  EXPECT_EQ(model_refusal(without("novel", {"blk.1.ffn_gate.weight"}, false)),
            "the tensor 'blk.1.ffn_gate.weight' is missing");
  EXPECT_FALSE(
      model_of(without("novel", {"blk.0.ffn_gate.weight", "blk.1.ffn_gate.weight"}, false)).blocks[2].gated);
}

}  // namespace
}  // namespace memwall
