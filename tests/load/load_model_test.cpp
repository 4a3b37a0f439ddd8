// MODEL in all its forms: what is read, and what is refused in which words.
#include "load/load_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/checkpoint/gguf_writer.h"
#include "tests/checkpoint/safetensors_writer.h"
#include "tests/support.h"
#include "tests/temporary_folder.h"

namespace memwall {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kConfig =
    R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,)"
    R"("num_key_value_heads":2,"intermediate_size":128,"vocab_size":100,"torch_dtype":"bfloat16"})";

SafetensorsWriter llama() {
  SafetensorsWriter writer;
  writer.add("model.embed_tokens.weight", "BF16", {100, 64});
  writer.add("model.layers.0.input_layernorm.weight", "BF16", {64});
  writer.add("model.layers.0.self_attn.q_proj.weight", "BF16", {64, 64});
  writer.add("model.layers.0.self_attn.k_proj.weight", "BF16", {32, 64});
  writer.add("model.layers.0.self_attn.v_proj.weight", "BF16", {32, 64});
  writer.add("model.layers.0.self_attn.o_proj.weight", "BF16", {64, 64});
  writer.add("model.layers.0.post_attention_layernorm.weight", "BF16", {64});
  writer.add("model.layers.0.mlp.gate_proj.weight", "BF16", {128, 64});
  writer.add("model.layers.0.mlp.up_proj.weight", "BF16", {128, 64});
  writer.add("model.layers.0.mlp.down_proj.weight", "BF16", {64, 128});
  writer.add("model.norm.weight", "BF16", {64});
  writer.add("lm_head.weight", "BF16", {100, 64});
  return writer;
}
constexpr std::int64_t kParameters = 2 * 6400 + 3 * 64 + 2 * 4096 + 2 * 2048 + 3 * 8192;

std::string error_for(const std::string& word) {
  return error_of([&] { find_model(word); });
}

class LoadModel : public testing::Test {
 protected:
  TemporaryFolder folder;
  DataVariable data;
};

TEST_F(LoadModel, AConfigurationAloneOrInItsFolder) {
  write_text(folder / "config.json", kConfig);
  const Model by_file = find_model(folder / "config.json");
  EXPECT_EQ(count_parameters(by_file).total, kParameters);
  EXPECT_EQ(by_file.name, std::filesystem::path(folder.path()).filename());
  EXPECT_EQ(count_parameters(find_model(folder.path())).total, kParameters);
}

TEST_F(LoadModel, TheNamesOfTheZooWhateverTheirCase) {
  EXPECT_EQ(find_model("Llama-3.1-8B").name, "llama-3.1-8b");
}

TEST_F(LoadModel, SafetensorsWithTheConfigurationBesideThem) {
  write_text(folder / "config.json", kConfig);
  llama().write(folder / "model.safetensors");
  for (const std::string& word : {folder.path(), folder / "model.safetensors"}) {
    const Model model = find_model(word);
    EXPECT_EQ(count_parameters(model).total, kParameters);
    EXPECT_EQ(stored_bytes(model), 2 * kParameters);
    EXPECT_FALSE(find_bare_checkpoint(word).has_value());
  }
}

TEST_F(LoadModel, SafetensorsAloneAreListedButAreNoModel) {
  llama().write(folder / "model.safetensors");
  for (const std::string& word : {folder.path(), folder / "model.safetensors"}) {
    EXPECT_THAT(error_for(word), AllOf(HasSubstr("no config.json"), HasSubstr("heads")));
    ASSERT_TRUE(find_bare_checkpoint(word).has_value());
    EXPECT_EQ(find_bare_checkpoint(word)->data_bytes, 2 * kParameters);
  }
}

TEST_F(LoadModel, AnIndexWithoutShardsIsReadFromItsConfiguration) {
  write_text(
      folder / "model.safetensors.index.json",
      R"({"metadata":{"total_size":10},"weight_map":{"lm_head.weight":"model-00001-of-00001.safetensors"}})");
  EXPECT_THAT(error_for(folder / "model.safetensors.index.json"), HasSubstr("config.json"));
  write_text(folder / "config.json", kConfig);
  const Model model = find_model(folder / "model.safetensors.index.json");
  EXPECT_EQ(count_parameters(model).total, kParameters);
  EXPECT_THAT(model.warnings, testing::Contains(HasSubstr("none of its shards")));
}

TEST_F(LoadModel, APipeIsRefusedWithoutWaiting) {
  for (const char* name : {"pipe", "pipe.yaml", "pipe.json", "pipe.gguf"}) {
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
    EXPECT_THAT(error_for(folder / name), HasSubstr("is a pipe or a device")) << name;
  }
}

TEST_F(LoadModel, AnIndexsWrongTotalIsSaid) {
  write_text(folder / "config.json", kConfig);
  llama().write(folder / "model-00001-of-00001.safetensors");
  std::string map;
  for (const StoredTensor& tensor :
       read_safetensors_file(folder / "model-00001-of-00001.safetensors").tensors)
    map += (map.empty() ? "\"" : ",\"") + tensor.name + "\":\"model-00001-of-00001.safetensors\"";
  const auto warnings = [&](std::int64_t total) {
    write_text(folder / "model.safetensors.index.json",
               "{\"metadata\":{\"total_size\":" + std::to_string(total) + "},\"weight_map\":{" + map + "}}");
    return find_model(folder.path()).warnings;
  };
  EXPECT_THAT(warnings(2 * kParameters), testing::IsEmpty());
  EXPECT_THAT(warnings(7), testing::ElementsAre(HasSubstr("total_size of 7")));
  // What lies beside an indexed model is an extra, of which the index does not tell.
  SafetensorsWriter()
      .add("model.layers.0.self_attn.q_proj.weight", "BF16", {64, 64})
      .write(folder / "mtp.safetensors");
  EXPECT_THAT(warnings(2 * kParameters), testing::IsEmpty());
  for (const std::string& word : {folder.path(), folder / "model.safetensors.index.json"}) {
    const Model model = find_model(word);
    EXPECT_EQ(stored_bytes(model), 2 * kParameters);
    ASSERT_EQ(model.extras.size(), 1U);
    EXPECT_EQ(model.extras[0].what, "multi-token-prediction layers");
    EXPECT_EQ(model.extras[0].bytes, 2 * 64 * 64);
  }
}

TEST_F(LoadModel, AMissingShardIsNamed) {
  write_text(folder / "config.json", kConfig);
  SafetensorsWriter first;
  first.add("model.norm.weight", "BF16", {64});
  first.write(folder / "model-00001-of-00002.safetensors");
  write_text(folder / "model.safetensors.index.json",
             R"({"weight_map":{"model.norm.weight":"model-00001-of-00002.safetensors",)"
             R"("lm_head.weight":"model-00002-of-00002.safetensors"}})");
  EXPECT_THAT(error_for(folder.path()), HasSubstr("model-00002-of-00002.safetensors"));
}

TEST_F(LoadModel, ATokenizersJsonIsNoConfiguration) {
  write_text(folder / "tokenizer.json", R"({"version":"1.0","model":{"type":"BPE"}})");
  EXPECT_THAT(error_for(folder / "tokenizer.json"), HasSubstr("hidden_size"));
}

TEST_F(LoadModel, PyTorchIndexesAreRefused) {
  write_text(folder / "pytorch_model.bin.index.json", R"({"weight_map":{}})");
  EXPECT_THAT(error_for(folder / "pytorch_model.bin.index.json"), HasSubstr("config.json"));
}

TEST_F(LoadModel, AFolderWithTwoModelsAsksForOne) {
  write_text(folder / "a.gguf", "GGUF");
  write_text(folder / "b.gguf", "GGUF");
  EXPECT_THAT(error_for(folder.path()), AllOf(HasSubstr("a.gguf"), HasSubstr("b.gguf")));
  std::filesystem::remove(folder / "b.gguf");
  write_text(folder / "config.json", kConfig);
  EXPECT_THAT(error_for(folder.path()), HasSubstr("more than one model"));
}

TEST_F(LoadModel, AnEmptyFolderHoldsNoModel) {
  EXPECT_THAT(error_for(folder.path()), HasSubstr("holds no model"));
}

TEST_F(LoadModel, ASymlinkLoopIsAnError) {
  std::filesystem::create_symlink(folder / "b.gguf", folder / "a.gguf");
  std::filesystem::create_symlink(folder / "a.gguf", folder / "b.gguf");
  std::filesystem::create_symlink(folder / "config.json", folder / "config.json");
  EXPECT_NE(error_for(folder / "a.gguf"), "no InputError was thrown");
  EXPECT_NE(error_for(folder / "config.json"), "no InputError was thrown");
}

TEST_F(LoadModel, AFolderWithoutPermissionIsAnError) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  std::filesystem::permissions(folder.path(), std::filesystem::perms::none);
  EXPECT_THAT(error_for(folder.path()), HasSubstr("cannot be read"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace memwall
