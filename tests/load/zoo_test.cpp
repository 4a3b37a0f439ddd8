// The models memwall ships, against the counts their publishers state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "load/load_model.h"
#include "paths.h"
#include "tests/support.h"

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
    {"command-r", {34'980'831'232, 2'097'152'000, 34'980'831'232, 1'310'720}},
    {"deepseek-v2-lite", {15'706'484'224, 209'715'200, 2'451'435'008, 31'104}},
    {"deepseek-v3", {671'026'419'200, 926'679'040, 36'625'618'432, 70'272}},
    {"deepseek-v3.2", {671'877'944'064, 926'679'040, 37'477'143'296, 85'888}},
    {"falcon-7b", {6'921'720'704, 295'469'056, 6'921'720'704, 8'192}},
    {"falcon-mamba-7b", {7'272'665'088, 266'338'304, 7'006'326'784, 0}},
    {"gemma-2-9b", {9'241'705'984, 917'504'000, 9'241'705'984, 344'064}},
    {"gemma-3-27b", {27'009'346'304, 1'409'630'208, 27'009'346'304, 507'904}},
    {"glm-5", {743'911'218'432, 951'582'720, 40'833'146'112, 109'824}},
    {"gpt-j-6b", {6'050'882'784, 206'438'400, 5'844'444'384, 458'752}},
    {"gpt-oss-120b", {116'829'156'672, 579'133'440, 5'132'849'472, 73'728}},
    {"gpt2", {124'439'808, 39'383'808, 123'653'376, 36'864}},
    {"granite-3.1-1b-a400m", {1'334'628'352, 50'334'720, 428'658'688, 49'152}},
    {"jamba-1.5-mini", {51'570'323'328, 268'435'456, 11'841'875'840, 16'384}},
    {"kimi-k2", {1'026'408'232'448, 1'174'405'120, 31'687'095'808, 70'272}},
    {"llama-2-7b", {6'738'415'616, 131'072'000, 6'607'343'616, 524'288}},
    {"llama-3.1-70b", {70'553'706'496, 1'050'673'152, 69'503'033'344, 327'680}},
    {"llama-3.1-8b", {8'030'261'248, 525'336'576, 7'504'924'672, 131'072}},
    {"llama-3.2-1b", {1'235'814'400, 262'668'288, 1'235'814'400, 32'768}},
    {"llama-3.2-3b", {3'212'749'824, 394'002'432, 3'212'749'824, 114'688}},
    {"llama-4-maverick", {400'711'848'960, 1'034'485'760, 16'150'205'440, 196'608}},
    {"mimo-v2-flash", {308'778'780'864, 624'951'296, 14'820'985'024, 222'720}},
    {"minimax-m2.7", {228'689'764'864, 614'596'608, 10'415'956'480, 253'952}},
    {"mistral-7b-v0.1", {7'241'732'096, 131'072'000, 7'110'660'096, 131'072}},
    {"mixtral-8x7b", {46'702'792'704, 131'072'000, 12'748'853'248, 131'072}},
    {"mpt-7b", {6'649'286'656, 206'569'472, 6'649'286'656, 524'288}},
    {"nemotron-3-nano", {31'577'940'288, 352'321'536, 3'227'754'816, 6'144}},
    {"nemotron-3-super", {120'668'707'840, 536'870'912, 12'233'366'528, 8'192}},
    {"nemotron-super-49b", {49'867'145'216, 1'050'673'152, 48'816'472'064, 200'704}},
    {"olmo-2-7b", {7'298'617'344, 411'041'792, 6'887'575'552, 524'288}},
    {"phi-4", {14'659'507'200, 513'802'240, 14'145'704'960, 204'800}},
    {"pythia-410m", {405'334'016, 51'511'296, 353'822'720, 98'304}},
    {"qwen2.5-0.5b", {494'032'768, 136'134'656, 494'032'768, 12'288}},
    {"qwen2.5-7b", {7'615'616'512, 544'997'376, 7'070'619'136, 57'344}},
    {"qwen3-235b-a22b", {235'093'634'560, 622'329'856, 21'568'433'664, 192'512}},
    {"qwen3-8b", {8'190'735'360, 622'329'856, 7'568'405'504, 147'456}},
    {"qwen3-next-80b-a3b", {79'674'391'296, 311'164'928, 3'563'764'480, 24'576}},
    {"qwen3.6-35b-a3b", {34'660'610'688, 508'559'360, 2'946'429'568, 20'480}},
    {"wizardcoder-15b", {15'517'462'528, 352'327'680, 15'467'130'880, 20'480}},
};

TEST(Zoo, CountsWhatThePublishersState) {
  const DataVariable data;
  const std::vector<Model> models = zoo();
  EXPECT_GE(models.size(), 88U);
  for (const Model& model : models) {
    ASSERT_TRUE(model.published.has_value()) << model.name;
    EXPECT_FALSE(model.published->source.empty()) << model.name;
    EXPECT_EQ(published_difference(model), 0) << model.name;
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
    if (model.weights.kind != FormatKind::bf16 && model.weights.kind != FormatKind::f16) continue;
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
