// What a checkpoint holds besides the model, what it lacks, and what is refused.
#include "tests/load/safetensors_support.h"

namespace memwall {
namespace {

SafetensorsWriter llama() {
  SafetensorsWriter file;
  add_llama_linears(file, add_plain);
  add_llama_rest(file);
  return file;
}

TEST(SafetensorsExtras, WhatDecodingTextDoesNotRun) {
  SafetensorsWriter file = llama();
  file.add("model.visual.blocks.0.attn.qkv.weight", "BF16", {96, 32})
      .add("model.audio_tower.conv1.weight", "F16", {8});
  file.add("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {8}).add("score.weight", "F32", {2, 64});
  file.add("model.layers.1.self_attn.k_scale", "F32", {})
      .add("model.layers.2.mlp.up_proj.weight", "BF16", {4, 4});
  const Model model = bind_exactly(llama_config(R"(,"vision_config":{}, "audio_config":{})"), file);
  for (const auto& [word, bytes] : {std::pair{"a vision tower", 6144},
                                    {"an audio encoder", 16},
                                    {"rotary tables", 32},
                                    {"another head", 512},
                                    {"scales of", 4},
                                    {"does not count", 32}}) {
    const Extra* extra = extra_of(model, word);
    ASSERT_NE(extra, nullptr) << word;
    EXPECT_EQ(extra->bytes, bytes) << word;
  }
  EXPECT_EQ(model.extras.size(), 6U);
  EXPECT_EQ(stored_bytes(model), llama().data_bytes());
  // Announced and not there.
  EXPECT_TRUE(bind_exactly(llama_config(R"(,"vision_config":{})"), llama()).extras.empty());
}

// One model and what lies beside it, though the names of its tensors may be the model's own.
TEST(SafetensorsExtras, FilesBesideTheModelsAreExtras) {
  for (const auto& [name, what] : std::vector<std::pair<std::string, std::string>>{
           {"mtp.safetensors", "multi-token-prediction layers"},
           {"model_mtp-00001-of-00001.safetensors", "multi-token-prediction layers"},
           {"draft.safetensors", "heads that draft tokens"},
           {"eagle-head.safetensors", "heads that draft tokens"},
           {"vision.safetensors", "a vision tower"}}) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    llama().write(folder / "model.safetensors");
    SafetensorsWriter()
        .add("model.layers.0.self_attn.q_proj.weight", "BF16", {64, 64})
        .add("mtp.fc.weight", "BF16", {64, 128})
        .write(folder / name);
    const Model model = bind_exactly(llama_config(), read_safetensors_folder(folder.path()));
    EXPECT_EQ(stored_bytes(model), llama().data_bytes());
    ASSERT_EQ(model.extras.size(), 1U);
    EXPECT_EQ(model.extras[0].what, what);
    EXPECT_EQ(model.extras[0].tensors, 2);
    EXPECT_EQ(model.extras[0].bytes, 2 * (64 * 64 + 64 * 128));
    EXPECT_FALSE(model.approximate);
  }
}

TEST(SafetensorsExtras, MissingAndUnknown) {
  SafetensorsWriter file = llama();
  file.add("model.layers.0.mlp.extra_matrix.weight", "F16", {6, 8})
      .add("model.layers.0.mystery", "F32", {10});
  file.add("model.step_projection.weight", "BF16", {64, 4})
      .add("model.embed_per_layer.weight", "BF16", {256, 32});
  const Model model = bind_exactly(llama_config(R"(,"attention_bias":true)"), file);
  EXPECT_TRUE(model.approximate);
  EXPECT_EQ(tensor_of(model, BlockKind::attention, "mlp.extra_matrix", 0).role, Role::linear);
  EXPECT_EQ(tensor_of(model, BlockKind::attention, "mystery", 0).out, 10);
  EXPECT_EQ(tensor_of(model, BlockKind::head, "step_projection").role, Role::linear);
  EXPECT_EQ(tensor_of(model, BlockKind::embedding, "embed_per_layer").read, Read::gathered);
  const std::string warnings = all_warnings(model);
  EXPECT_NE(warnings.find("self_attn.q_proj.bias (2 layers)"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("mystery"), std::string::npos) << warnings;
}

TEST(SafetensorsExtras, Refusals) {
  EXPECT_NE(
      bind_error(llama_config(), SafetensorsWriter().add("model.norm.weight", "BF16", {64}))
          .find("the configuration's layer 0 has self_attn.q_proj, but no tensor of that name is stored"),
      std::string::npos);
  const auto replaced = [](const std::string& path, std::int64_t rows) {
    SafetensorsWriter file;
    add_llama_linears(
        file, [&](SafetensorsWriter& f, const std::string& module, std::int64_t out, std::int64_t in) {
          const bool hit = module == path;
          if (!hit || rows > 0) f.add(module + ".weight", "BF16", {hit ? rows : out, in});
        });
    add_llama_rest(file);
    return file;
  };
  EXPECT_NE(bind_error(llama_config(), replaced("model.layers.1.mlp.down_proj", 0))
                .find("layer 1 has mlp.down_proj, but no tensor of that name"),
            std::string::npos);
  const std::string shape = bind_error(llama_config(), replaced("model.layers.1.self_attn.q_proj", 128));
  EXPECT_NE(shape.find("'model.layers.1.self_attn.q_proj.weight' is [128, 64], but the configuration makes "
                       "self_attn.q_proj of layer 1 [64, 64]"),
            std::string::npos)
      << shape;
  const std::string few = bind_error(R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,
      "num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":128,"vocab_size":300})",
                                     llama());
  EXPECT_NE(few.find("'lm_head.weight' is [256, 64], but the configuration makes lm_head of model [300, 64]"),
            std::string::npos)
      << few;
}

}  // namespace
}  // namespace memwall
