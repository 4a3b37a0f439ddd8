// Checkpoints of plain formats: names, layouts, ties, extras, and what is refused.
#include <algorithm>
#include <chrono>
#include <filesystem>

#include "load/load_model.h"
#include "paths.h"
#include "tests/load/safetensors_support.h"

namespace memwall {
namespace {

SafetensorsWriter llama(bool head = true) {
  SafetensorsWriter file;
  add_llama_linears(file, add_plain);
  add_llama_rest(file, head);
  return file;
}

TEST(SafetensorsModel, LlamaOfTwoShards) {
  const TemporaryFolder folder;
  SafetensorsWriter first;
  SafetensorsWriter second;
  add_llama_linears(first, add_plain);
  add_llama_rest(second);
  first.write(folder / "model-00001-of-00002.safetensors");
  second.write(folder / "model-00002-of-00002.safetensors");
  std::vector<std::string> places;
  for (const auto& [file, name] :
       {std::pair{&first, "model-00001-of-00002"}, {&second, "model-00002-of-00002"}}) {
    const json::Document header = json::parse(file->header(), "header");
    for (const std::string& tensor : header.root.keys)
      places.push_back(fmt::format(R"("{}":"{}.safetensors")", tensor, name));
  }
  const std::int64_t total = first.data_bytes() + second.data_bytes();
  write_text(folder / "model.safetensors.index.json",
             fmt::format(R"({{"metadata":{{"total_size":{}}},"weight_map":{{{}}}}})", total,
                         fmt::join(places, ",")));
  const Checkpoint checkpoint = read_safetensors_folder(folder.path());
  const Model model = bind_exactly(llama_config(), checkpoint);
  EXPECT_EQ(stored_bytes(model), checkpoint.index_total_size);
  // What the configuration alone makes is the same.
  EXPECT_EQ(model.blocks, config_model(llama_config()).blocks);
  EXPECT_EQ(all_warnings(model), "");
  EXPECT_TRUE(model.extras.empty());
}

TEST(SafetensorsModel, Tied) {
  const Model tied = bind_exactly(llama_config(R"(,"tie_word_embeddings":true)"), llama(false));
  EXPECT_TRUE(tensor_of(tied, BlockKind::head, "lm_head").tied);
  EXPECT_TRUE(tied.extras.empty());

  const Model twice = bind_exactly(llama_config(R"(,"tie_word_embeddings":true)"), llama(true));
  EXPECT_TRUE(tensor_of(twice, BlockKind::head, "lm_head").tied);
  ASSERT_NE(extra_of(twice, "a copy of the embedding"), nullptr);
  EXPECT_EQ(extra_of(twice, "a copy of the embedding")->bytes, 256 * 64 * 2);

  const Model without = bind_exactly(llama_config(R"(,"tie_word_embeddings":false)"), llama(false));
  EXPECT_TRUE(tensor_of(without, BlockKind::head, "lm_head").tied);
  EXPECT_NE(all_warnings(without).find("no lm_head is stored"), std::string::npos);
}

TEST(SafetensorsModel, TiedUnderTheHeadsName) {
  SafetensorsWriter file;
  add_llama_linears(file, add_plain);
  SafetensorsWriter rest;
  add_llama_rest(rest, false);
  file.add("lm_head.weight", "BF16", {320, 64})
      .add("model.norm.weight", "BF16", {64});  // a padded vocabulary
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      file.add(fmt::format("model.layers.{}.{}.weight", layer, norm), "BF16", {64});
  }
  const Model model = bind_exactly(llama_config(R"(,"tie_word_embeddings":true)"), file);
  EXPECT_EQ(tensor_of(model, BlockKind::embedding, "embed_tokens").out, 320);
  EXPECT_EQ(tensor_of(model, BlockKind::head, "lm_head").out, 320);
}

TEST(SafetensorsModel, FusedInTheFileAlone) {
  SafetensorsWriter file;
  add_llama_rest(file);
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    file.add(prefix + "self_attn.qkv_proj.weight", "BF16", {128, 64})
        .add(prefix + "self_attn.qkv_proj.bias", "BF16", {128});
    file.add(prefix + "self_attn.o_proj.weight", "BF16", {64, 64});
    file.add(prefix + "mlp.gate_up_proj.weight", "BF16", {256, 64})
        .add(prefix + "mlp.down_proj.weight", "BF16", {64, 128});
  }
  const Model model = bind_exactly(llama_config(), file);
  EXPECT_EQ(tensor_of(model, BlockKind::attention, "qkv_proj").out, 128);
  EXPECT_EQ(tensor_of(model, BlockKind::attention, "qkv_proj.bias").out, 128);
  EXPECT_EQ(tensor_of(model, BlockKind::mlp, "gate_up_proj").out, 256);
  EXPECT_EQ(all_warnings(model), "");
}

TEST(SafetensorsModel, FusedInTheConfigurationAlone) {
  const std::string config = R"({"model_type":"phi3","hidden_size":64,"num_hidden_layers":2,
    "num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":128,"vocab_size":256,
    "tie_word_embeddings":false,"pad_token_id":0})";
  const Model model = bind_exactly(config, llama());
  EXPECT_EQ(tensor_of(model, BlockKind::attention, "q_proj").out, 64);
  EXPECT_EQ(tensor_of(model, BlockKind::attention, "k_proj").out, 32);
  EXPECT_EQ(tensor_of(model, BlockKind::mlp, "up_proj").out, 128);
  EXPECT_EQ(block_of(model, BlockKind::attention)->find("qkv_proj"), nullptr);
}

TEST(SafetensorsModel, Gpt2WithMasks) {
  const std::string config =
      R"({"model_type":"gpt2","torch_dtype":"float32","n_embd":64,"n_layer":2,"n_head":4,
    "n_positions":32,"n_ctx":32,"vocab_size":256})";
  SafetensorsWriter file;
  for (const std::string layer : {"h.0.", "h.1."}) {
    for (const char* norm : {"ln_1", "ln_2"})
      file.add(layer + norm + ".weight", "F32", {64}).add(layer + norm + ".bias", "F32", {64});
    file.add(layer + "attn.bias", "F32", {1, 1, 32, 32}).add(layer + "attn.masked_bias", "F32", {});
    // Conv1D: rows are inputs.
    file.add(layer + "attn.c_attn.weight", "F32", {64, 192}).add(layer + "attn.c_attn.bias", "F32", {192});
    file.add(layer + "attn.c_proj.weight", "F32", {64, 64}).add(layer + "attn.c_proj.bias", "F32", {64});
    file.add(layer + "mlp.c_fc.weight", "F32", {64, 256}).add(layer + "mlp.c_fc.bias", "F32", {256});
    file.add(layer + "mlp.c_proj.weight", "F32", {256, 64}).add(layer + "mlp.c_proj.bias", "F32", {64});
  }
  file.add("wte.weight", "F32", {256, 64}).add("wpe.weight", "F32", {32, 64});
  file.add("ln_f.weight", "F32", {64}).add("ln_f.bias", "F32", {64});
  const Model model = bind_exactly(config, file);
  EXPECT_EQ(model.blocks, config_model(config).blocks);
  ASSERT_EQ(model.extras.size(), 1U);
  EXPECT_EQ(model.extras.front().what, "attention masks and decays");
  EXPECT_EQ(model.extras.front().bytes, 2 * (32 * 32 + 1) * 4);
  EXPECT_EQ(model.extras.front().tensors, 4);
}

// Gemma's four norms share names with Llama's two.
TEST(SafetensorsModel, NormsOnBothSides) {
  const std::string config = R"({"model_type":"gemma2","torch_dtype":"bfloat16","hidden_size":64,
    "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"intermediate_size":128,
    "vocab_size":256,"sliding_window":64})";
  SafetensorsWriter file = llama(false);
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* norm : {"pre_feedforward_layernorm", "post_feedforward_layernorm"})
      file.add(fmt::format("model.layers.{}.{}.weight", layer, norm), "BF16", {64});
  }
  const Model model = bind_exactly(config, file);
  EXPECT_EQ(model.blocks, config_model(config).blocks);
}

TEST(SafetensorsModel, ExpertsOneByOne) {
  const std::string config = R"({"model_type":"qwen2_moe","hidden_size":64,"num_hidden_layers":1,
    "num_attention_heads":4,"num_key_value_heads":4,"intermediate_size":128,"moe_intermediate_size":32,
    "shared_expert_intermediate_size":96,"num_experts":12,"num_experts_per_tok":2,"vocab_size":256,
    "tie_word_embeddings":false,"torch_dtype":"bfloat16"})";
  SafetensorsWriter file;
  const std::string layer = "model.layers.0.";
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    file.add(layer + "self_attn." + name + ".weight", "BF16", {64, 64});
    if (name[0] != 'o') file.add(layer + "self_attn." + name + ".bias", "BF16", {64});
  }
  const auto mlp = [&](const std::string& path, std::int64_t width) {
    file.add(path + "gate_proj.weight", "BF16", {width, 64})
        .add(path + "up_proj.weight", "BF16", {width, 64});
    file.add(path + "down_proj.weight", "BF16", {64, width});
  };
  for (int expert = 0; expert < 12; ++expert) mlp(fmt::format("{}mlp.experts.{}.", layer, expert), 32);
  mlp(layer + "mlp.shared_expert.", 96);
  file.add(layer + "mlp.gate.weight", "BF16", {12, 64})
      .add(layer + "mlp.shared_expert_gate.weight", "BF16", {1, 64});
  for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
    file.add(layer + norm + ".weight", "BF16", {64});
  file.add("model.embed_tokens.weight", "BF16", {256, 64}).add("model.norm.weight", "BF16", {64});
  file.add("lm_head.weight", "BF16", {256, 64});
  const Model model = bind_exactly(config, file);
  EXPECT_EQ(model.blocks, config_model(config).blocks);
  EXPECT_EQ(all_warnings(model), "");

  mlp(layer + "mlp.experts.12.", 32);
  EXPECT_NE(bind_error(config, file).find("layer 0 has 13 of 'mlp.experts.#.down_proj', but"),
            std::string::npos)
      << bind_error(config, file);
}

TEST(SafetensorsModel, GatedDeltaNet) {
  const std::string config = R"({"model_type":"qwen3_next","torch_dtype":"bfloat16","hidden_size":64,
    "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"intermediate_size":128,
    "vocab_size":256,"num_experts":0,"linear_num_key_heads":2,"linear_num_value_heads":4,
    "linear_key_head_dim":8,"linear_value_head_dim":8,"linear_conv_kernel_dim":4,
    "layer_types":["linear_attention","full_attention"],"tie_word_embeddings":false})";
  SafetensorsWriter file;
  add_llama_rest(file);
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    file.add(layer + "mlp.gate_proj.weight", "BF16", {128, 64})
        .add(layer + "mlp.up_proj.weight", "BF16", {128, 64});
    file.add(layer + "mlp.down_proj.weight", "BF16", {64, 128});
  }
  const std::string net = "model.layers.0.linear_attn.";
  file.add(net + "in_proj_qkvz.weight", "BF16", {96, 64}).add(net + "in_proj_ba.weight", "BF16", {8, 64});
  file.add(net + "conv1d.weight", "BF16", {64, 1, 4})
      .add(net + "dt_bias", "BF16", {4})
      .add(net + "A_log", "F32", {4});
  file.add(net + "norm.weight", "BF16", {8}).add(net + "out_proj.weight", "BF16", {64, 32});
  const std::string attention = "model.layers.1.self_attn.";
  file.add(attention + "q_proj.weight", "BF16", {128, 64}).add(attention + "k_proj.weight", "BF16", {32, 64});
  file.add(attention + "v_proj.weight", "BF16", {32, 64}).add(attention + "o_proj.weight", "BF16", {64, 64});
  file.add(attention + "q_norm.weight", "BF16", {16}).add(attention + "k_norm.weight", "BF16", {16});
  const std::int64_t without = file.data_bytes();
  file.add("mtp.fc.weight", "BF16", {64, 128}).add("mtp.layers.0.mlp.up_proj.weight", "BF16", {128, 64});
  const Model model = bind_exactly(config, file);
  EXPECT_EQ(format_name(tensor_of(model, BlockKind::mixer, "A_log").format), "f32");
  EXPECT_EQ(tensor_of(model, BlockKind::mixer, "gated_norm").rows, 4);
  ASSERT_EQ(model.extras.size(), 1U);
  EXPECT_EQ(model.extras.front().what, "multi-token-prediction layers");
  EXPECT_EQ(stored_bytes(model), without);
  EXPECT_EQ(all_warnings(model), "");
}

// Qwen's first generation has names of its own: w2 gates, c_proj is the way down.
TEST(SafetensorsModel, FirstQwen) {
  const std::string config = R"({"model_type":"qwen","bf16":true,"torch_dtype":"bfloat16","hidden_size":64,
    "num_hidden_layers":2,"num_attention_heads":4,"kv_channels":16,"intermediate_size":256,"vocab_size":256,
    "tie_word_embeddings":false})";
  SafetensorsWriter file;
  for (const std::string layer : {"transformer.h.0.", "transformer.h.1."}) {
    file.add(layer + "attn.c_attn.weight", "BF16", {192, 64}).add(layer + "attn.c_attn.bias", "BF16", {192});
    file.add(layer + "attn.c_proj.weight", "BF16", {64, 64})
        .add(layer + "mlp.c_proj.weight", "BF16", {64, 128});
    file.add(layer + "mlp.w1.weight", "BF16", {128, 64}).add(layer + "mlp.w2.weight", "BF16", {128, 64});
    file.add(layer + "ln_1.weight", "BF16", {64}).add(layer + "ln_2.weight", "BF16", {64});
  }
  file.add("transformer.wte.weight", "BF16", {256, 64}).add("transformer.ln_f.weight", "BF16", {64});
  file.add("lm_head.weight", "BF16", {256, 64});
  const Model model = bind_exactly(config, file);
  EXPECT_EQ(model.blocks, config_model(config).blocks);
  EXPECT_EQ(all_warnings(model), "");
}

// The first of two shards of a real checkpoint: its second is not at hand.
TEST(SafetensorsModel, RealPhi) {
  const std::string folder = MEMWALL_SOURCE_DIR "/../shared/data/files/safetensors/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no shared data";
  const Checkpoint checkpoint = read_safetensors_file(folder + "tiny-random-PhiModel-1-of-2.safetensors");
  const Model model = bind_checkpoint(load_config(folder + "tiny-random-PhiModel-config.json"), checkpoint);
  EXPECT_EQ(stored_bytes(model), checkpoint.data_bytes);
  EXPECT_EQ(checkpoint.data_bytes, 185'128);
  EXPECT_TRUE(model.extras.empty());
  const Block* head = block_of(model, BlockKind::head);
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->find("lm_head"), nullptr);  // a PhiModel has none
  EXPECT_EQ(block_of(model, BlockKind::attention)->layers.size(), 2U);
  EXPECT_EQ(count_parameters(model).total, 185'128 / 4);
}

// DeepSeek-V3's number of tensors, and a third more.
TEST(SafetensorsModel, ManyTensors) {
  const std::string config = R"({"model_type":"mixtral","hidden_size":64,"num_hidden_layers":100,
    "num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":32,"num_local_experts":400,
    "num_experts_per_tok":2,"vocab_size":256,"tie_word_embeddings":false})";
  Checkpoint checkpoint;
  checkpoint.path = "many";
  const auto add = [&](std::string name, std::vector<std::int64_t> shape) {
    StoredTensor tensor{
        .name = std::move(name), .shape = std::move(shape), .type = "BF16", .format = Format{}};
    tensor.bytes = 2 * tensor.elements();
    checkpoint.data_bytes += tensor.bytes;
    checkpoint.tensors.push_back(std::move(tensor));
  };
  add("lm_head.weight", {256, 64});
  add("model.embed_tokens.weight", {256, 64});
  add("model.norm.weight", {64});
  for (int layer = 0; layer < 100; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    for (int expert = 0; expert < 400; ++expert) {
      for (const char* name : {"w1", "w2", "w3"}) {
        add(fmt::format("{}block_sparse_moe.experts.{}.{}.weight", prefix, expert, name),
            name[1] == '2' ? std::vector<std::int64_t>{64, 32} : std::vector<std::int64_t>{32, 64});
      }
    }
    add(prefix + "block_sparse_moe.gate.weight", {400, 64});
    add(prefix + "input_layernorm.weight", {64});
    add(prefix + "post_attention_layernorm.weight", {64});
    for (const auto& [name, rows] : {std::pair{"q", 64}, {"k", 32}, {"v", 32}, {"o", 64}})
      add(fmt::format("{}self_attn.{}_proj.weight", prefix, name), {rows, 64});
  }
  const auto begin = std::chrono::steady_clock::now();
  const Model model = bind_exactly(config, checkpoint);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(block_of(model, BlockKind::moe)->layers.size(), 100U);
  EXPECT_LT(seconds.count(), 5);  // a tenth of a second optimised; sanitizers and a busy machine take more
}

// A tiny Hy4 as save_pretrained of transformers writes it: nothing is missing, nothing found by shape alone.
TEST(SafetensorsModel, NamesOfHy4) {
  const std::string folder = MEMWALL_SOURCE_DIR "/../shared/data/trials/configs/safetensors-hy_v4";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no shared checkpoints here";
  const Model bound = find_model(folder);
  const Model alone = find_model(folder + "/config.json");
  EXPECT_EQ(count_parameters(bound).total, count_parameters(alone).total);
  EXPECT_EQ(count_parameters(bound).active, count_parameters(alone).active);
  EXPECT_EQ(bound.warnings, alone.warnings);
  EXPECT_FALSE(bound.approximate);
}

}  // namespace
}  // namespace memwall
