// The models memwall ships, against the counts their publishers state.
#include "load/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "support.h"

namespace memwall {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Expected {
  std::int64_t total;
  std::int64_t embedding;
  std::int64_t active;        // read by a batch-1 decode step
  std::int64_t kv_per_token;  // bytes, with a 16-bit cache
};
// From the publishers' config.json files, counted independently of this program.
const std::map<std::string, Expected> kExpected = {
    {"gemma-2-9b", {9'241'705'984, 917'504'000, 9'241'705'984, 344'064}},
    {"llama-2-7b", {6'738'415'616, 131'072'000, 6'607'343'616, 524'288}},
    {"llama-3.1-70b", {70'553'706'496, 1'050'673'152, 69'503'033'344, 327'680}},
    {"llama-3.1-8b", {8'030'261'248, 525'336'576, 7'504'924'672, 131'072}},
    {"llama-3.2-1b", {1'235'814'400, 262'668'288, 1'235'814'400, 32'768}},
    {"llama-3.2-3b", {3'212'749'824, 394'002'432, 3'212'749'824, 114'688}},
    {"mistral-7b-v0.1", {7'241'732'096, 131'072'000, 7'110'660'096, 131'072}},
    {"mixtral-8x7b", {46'702'792'704, 131'072'000, 12'748'853'248, 131'072}},
    {"phi-4", {14'659'507'200, 513'802'240, 14'145'704'960, 204'800}},
    {"qwen2.5-0.5b", {494'032'768, 136'134'656, 494'032'768, 12'288}},
    {"qwen2.5-7b", {7'615'616'512, 544'997'376, 7'070'619'136, 57'344}},
    {"qwen3-8b", {8'190'735'360, 622'329'856, 7'568'405'504, 147'456}},
};

TEST(Zoo, CountsWhatThePublishersState) {
  const DataVariable data;
  const std::vector<Model> models = zoo();
  EXPECT_GE(models.size(), 12U);
  for (const Model& model : models) {
    ASSERT_TRUE(model.published.has_value()) << model.name;
    EXPECT_FALSE(model.published->source.empty()) << model.name;
    EXPECT_EQ(count_parameters(model).total, model.published->parameters - model.published->buffers)
        << model.name;
  }
}

TEST(Zoo, CountsWhatTheConfigsSay) {
  const DataVariable data;
  std::size_t checked = 0;
  for (const Model& model : zoo()) {
    const auto it = kExpected.find(model.name);
    if (it == kExpected.end()) continue;
    ++checked;
    const ParameterCount count = count_parameters(model);
    EXPECT_EQ(count.total, it->second.total) << model.name;
    EXPECT_EQ(count.embedding, it->second.embedding) << model.name;
    EXPECT_EQ(count.active, it->second.active) << model.name;
    EXPECT_EQ(kv_bytes_per_token(model), it->second.kv_per_token) << model.name;
    // Stored in 16 bits throughout, so bytes are twice the counts.
    EXPECT_EQ(stored_bytes(model), 2 * it->second.total) << model.name;
    EXPECT_EQ(read_bytes(model), 2 * it->second.active) << model.name;
  }
  EXPECT_EQ(checked, kExpected.size());
}

TEST(Zoo, EveryModelSaysWhereItIsFrom) {
  const DataVariable data;
  for (const Model& model : zoo()) {
    EXPECT_THAT(model.source, StartsWith("https://")) << model.name;
    EXPECT_FALSE(model.architecture.empty()) << model.name;
    EXPECT_GT(model.max_context, 0) << model.name;
    EXPECT_EQ(std::filesystem::path(model.file).stem(), model.name);
  }
}

TEST(Zoo, NamesAndAliasesAreUnique) {
  const DataVariable data;
  std::set<std::string> words;
  for (const Model& model : zoo()) {
    EXPECT_TRUE(words.insert(model.name).second) << model.name;
    for (const std::string& alias : model.aliases) EXPECT_TRUE(words.insert(alias).second) << alias;
  }
}

TEST(Zoo, SlidingWindowsBoundTheCache) {
  const DataVariable data;
  const Model gemma = find_model("gemma-2-9b");
  EXPECT_EQ(kv_cache_bytes(gemma, 4096), 344'064LL * 4096);
  EXPECT_EQ(kv_cache_bytes(gemma, 8192), 344'064LL / 2 * 4096 + 344'064LL / 2 * 8192);
  EXPECT_EQ(kv_cache_bytes(find_model("mistral-7b"), 32'768), 131'072LL * 4096);
}

TEST(FindModel, FindsNamesAliasesAndFiles) {
  const DataVariable data;
  EXPECT_EQ(find_model("llama-3.1-8b").name, "llama-3.1-8b");
  EXPECT_EQ(find_model("Llama-3.1-8B-Instruct").name, "llama-3.1-8b");
  EXPECT_EQ(find_model("mixtral").name, "mixtral-8x7b");
  EXPECT_EQ(find_model(std::string(MEMWALL_SOURCE_DIR) + "/models/phi-4.yaml").name, "phi-4");
}

std::string find_error(const std::string& word) {
  return error_of([&] { find_model(word); });
}

TEST(FindModel, SuggestsThreeForAnUnknownOne) {
  const DataVariable data;
  const std::string message = find_error("lama-3.1-8b");
  EXPECT_THAT(message, StartsWith("unknown model 'lama-3.1-8b'; did you mean llama-3.1-8b, "));
  EXPECT_THAT(message, HasSubstr(" or "));
  EXPECT_THAT(message, HasSubstr("? `memwall models` lists them"));
}

TEST(FindModel, RefusesFilesThatAreNotThere) {
  const DataVariable data;
  EXPECT_EQ(find_error("no/such/model.yaml"),
            "no/such/model.yaml: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace memwall
