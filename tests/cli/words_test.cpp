// What people type for cards, models, formats and lists, and the notes on what was taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "paths.h"
#include "tests/cli/process.h"
#include "tests/support.h"

namespace memwall {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string kTiny = MEMWALL_TEST_DATA "/fixtures/tiny.yaml";
const std::string kCard = MEMWALL_TEST_DATA "/fixtures/round-card.yaml";

struct Result {
  Json json;
  std::string err;
};

Result estimate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "estimate");
  // The tiny model warns beyond 64 tokens.
  if (std::find(arguments.begin(), arguments.end(), "--context") == arguments.end())
    arguments.insert(arguments.end(), {"--context", "16"});
  arguments.insert(arguments.end(), {"--format", "json"});
  const Finished done = run(arguments);
  EXPECT_EQ(done.status, 0) << done.err;
  return {done.status == 0 ? Json::parse(done.out) : Json(), done.err};
}

std::string card_of(const std::string& word) {
  const Result result = estimate({kTiny, "--card", word});
  return result.json["results"][0]["card"];
}

std::string model_of(const std::string& word) {
  const Finished done = run(Words{"inspect", word, "--format", "json"});
  EXPECT_EQ(done.status, 0) << word << done.err;
  return done.status == 0 ? Json::parse(done.out)["model"]["name"].get<std::string>() : "";
}

TEST(CardWords, AsPeopleWriteThem) {
  for (const char* word :
       {"RTX 4090", "rtx4090", "rtx-4090", "4090", "NVIDIA GeForce RTX 4090", "GeForce RTX 4090"})
    EXPECT_EQ(card_of(word), "rtx-4090") << word;
  EXPECT_EQ(card_of("m3 max"), "m3-max-40c");
  EXPECT_EQ(card_of("Apple M3 Max 30-core"), "m3-max-30c");
  EXPECT_EQ(card_of("DGX Spark"), "dgx-spark");
  EXPECT_EQ(card_of("GB10"), "dgx-spark");
  EXPECT_EQ(card_of("Strix Halo"), "strix-halo");
  EXPECT_EQ(card_of("H100 SXM"), "h100-sxm");
  EXPECT_EQ(card_of("NVIDIA H100 80GB HBM3"), "h100-sxm");
  EXPECT_EQ(card_of("NVIDIA A100-SXM4-40GB"), "a100-40gb");
  EXPECT_EQ(card_of("AMD Instinct MI300X"), "mi300x");
}

TEST(CardWords, WhatWasTakenIsSaid) {
  EXPECT_EQ(estimate({kTiny, "--card", "a100"}).err,
            "memwall: note: --card: card 'a100' is taken as a100-80gb (NVIDIA A100 SXM 80GB); another is "
            "a100-40gb\n");
  EXPECT_EQ(estimate({kTiny, "--card", "RTX 4090"}).err, "");
  EXPECT_THAT(estimate({kTiny, "--card", "m3 max"}).err, HasSubstr("m3-max-30c"));
}

TEST(CardWords, ARepeatedCardIsOne) {
  const Result result = estimate({kTiny, "--card", "h200,H200,h200-sxm"});
  EXPECT_EQ(result.json["results"].size(), 1U);
  EXPECT_EQ(result.err, "memwall: note: --card: h200 is listed twice and taken once\n");
}

TEST(ModelWords, AsPeopleWriteThem) {
  for (const char* word :
       {"meta-llama/Llama-3.1-8B-Instruct", "llama3.1:8b", "Llama 3.1 8B", "Llama-3.1-8B-Instruct",
        "llama-3_1-8b", "llama3.1:8b-instruct-q4_K_M", "unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit",
        "hf.co/x/Llama-3.1-8B-Instruct-GGUF:Q4_K_M", "https://huggingface.co/meta-llama/Llama-3.1-8B"})
    EXPECT_EQ(model_of(word), "llama-3.1-8b") << word;
  EXPECT_EQ(model_of("qwen3:32b"), "qwen3-32b");
  EXPECT_EQ(model_of("Qwen/Qwen3-8B-Instruct"), "qwen3-8b");
  EXPECT_EQ(model_of("Qwen/Qwen3-30B-A3B-Instruct-2507"), "qwen3-30b-a3b");
  EXPECT_EQ(model_of("qwen3-30b"), "qwen3-30b-a3b");
  EXPECT_EQ(model_of("google/gemma-3-27b-it"), "gemma-3-27b");
  EXPECT_EQ(model_of("gpt-oss:20b"), "gpt-oss-20b");
}

TEST(ModelWords, WhatIsLeftAsideIsSaid) {
  EXPECT_EQ(run(Words{"inspect", "llama3.1:8b"}).err, "");
  EXPECT_EQ(run(Words{"inspect", "Qwen/Qwen3-8B-Instruct"}).err,
            "memwall: note: model 'Qwen/Qwen3-8B-Instruct' is taken as qwen3-8b (Qwen3 8B)\n");
  EXPECT_EQ(
      run(Words{"inspect", "Qwen/Qwen3-8B-AWQ"}).err,
      "memwall: note: model 'Qwen/Qwen3-8B-AWQ' is taken as qwen3-8b (Qwen3 8B); '-AWQ' is left aside, and "
      "--weights sets a format\n");
  EXPECT_THAT(run(Words{"inspect", "mixtral"}).err, HasSubstr("another is mixtral-8x22b"));
}

TEST(ModelWords, AnotherSizeOrDistillIsNotTaken) {
  for (const char* word : {"deepseek-r1:8b", "qwen2-7b", "llama-3.1-9b", "phi-9", "rtx-4090"})
    expect_refused(run(Words{"inspect", word}), word);
}

TEST(FormatWords, OfWeightsAndCaches) {
  const Result result =
      estimate({"llama-3.1-8b", "--card", "4090", "--weights", "Q8_0,fp16", "--kv", "q8_0,q4_0,nvfp4"});
  ASSERT_EQ(result.json["results"].size(), 6U);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.json["results"][0]["weights"], "q8_0");
  EXPECT_EQ(result.json["results"][5]["weights"], "f16");
  // 131,072 a token in bf16, which has 2 bytes an element: 1.0625, 0.5625 and 0.5625 of one.
  EXPECT_EQ(result.json["results"][0]["bytes"]["kv_write"], 131'072 / 2 * 34 / 32);
  EXPECT_EQ(result.json["results"][1]["bytes"]["kv_write"], 131'072 / 2 * 18 / 32);
  EXPECT_EQ(result.json["results"][2]["bytes"]["kv_write"], 131'072 / 2 * 9 / 16);
  EXPECT_EQ(estimate({kTiny, "--card", "4090", "--weights", "awq"}).err,
            "memwall: note: --weights: 'awq' is taken as int4-g128-zp: AWQ's usual groups of 128 with zero "
            "points\n");
  EXPECT_THAT(estimate({kTiny, "--card", "4090", "--weights", "q4_0,Q4_0"}).err,
              HasSubstr("q4_0 is listed twice"));
}

TEST(Lists, CountsWithKAndRanges) {
  const Result result = estimate({kTiny, "--card", kCard, "--batch", "1-8*2,4", "--context", "1k"});
  std::vector<std::int64_t> batches;
  for (const Json& each : result.json["results"]) {
    EXPECT_EQ(each["context"], 1024);
    batches.push_back(each["batch"]);
  }
  EXPECT_THAT(batches, testing::ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(result.err, testing::StartsWith("memwall: note: --batch: 4 is listed twice and taken once\n"));
}

TEST(OutputEnding, ChoosesTheFormat) {
  const TemporaryFolder folder;
  EXPECT_EQ(run("cards -o " + (folder / "cards.json")).err, "");
  EXPECT_TRUE(Json::parse(content_of(folder / "cards.json")).contains("cards"));
  run("cards -o " + (folder / "cards.CSV"));
  EXPECT_EQ(content_of(folder / "cards.CSV"), run("cards --format csv").out);
  run("cards -o " + (folder / "cards.md"));
  EXPECT_EQ(content_of(folder / "cards.md"), run("cards --format md").out);
  run("cards -o " + (folder / "cards.txt"));
  EXPECT_EQ(content_of(folder / "cards.txt"), run("cards").out);
  run("inspect " + kTiny + " -o " + (folder / "tiny.yaml"));
  EXPECT_EQ(content_of(folder / "tiny.yaml").rfind("name: tiny", 0), 0U);
}

TEST(OutputEnding, OneThatNamesAnotherFormatIsATableWithANote) {
  const TemporaryFolder folder;
  const Finished done = run("cards -o " + (folder / "cards.tsv"));
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.err, HasSubstr("cards.tsv is written as a table; --format json, csv or md"));
  expect_refused(run("inspect " + kTiny + " -o yaml"), "did you mean --format yaml?");
}

TEST(OutputEnding, AFormatThatContradictsItIsWrittenWithANote) {
  const TemporaryFolder folder;
  const Finished done = run("cards --format csv -o " + (folder / "cards.json"));
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.err, HasSubstr("cards.json is written as csv"));
  EXPECT_EQ(content_of(folder / "cards.json"), run("cards --format csv").out);
}

TEST(Notices, WaitUntilTheArgumentsAreRight) {
  // One line, though a100 and 4bit have notes and --device auto has one where there is no GPU.
  expect_refused(run("estimate llama-3.1-8b --card a100,nope --weights 4bit"), "estimate");
  expect_refused(run("measure " + kTiny + " --device auto --memory 1MiB"), "measure");
  expect_refused(run("baseline --device auto --n 16 --memory 1"), "baseline");
}

TEST(Names, AreEscapedWhereverTheyAreShown) {
  const TemporaryFolder folder;
  const std::string path = folder / "rtl\u202e\x1b[2J.yaml";
  std::ofstream(path) << "name: plain\ntitle: \"a\u202eb\u200bc\"\nlayers:\n  - one: [64, 64]\n";
  for (const char* format : {"table", "csv", "md", "json"}) {
    const Finished done = run(Words{"estimate", path, "--card", "4090", "--format", format});
    EXPECT_EQ(done.status, 0) << done.err;
    for (const std::string& text : {done.out, done.err}) {
      for (const char* raw : {"\u202e", "\u200b", "\x1b"})
        EXPECT_EQ(text.find(raw), std::string::npos) << format << text;
    }
    if (std::string(format) == "table") {
      EXPECT_THAT(done.out, HasSubstr("a\\u202eb\\u200bc"));
    }
    if (std::string(format) == "json") {
      EXPECT_THAT(Json::parse(done.out)["memwall"]["command"], HasSubstr("\u202e"));
    }
  }
  const Finished refused = run(Words{"inspect", folder / "\xff\u2066none.yaml"});
  expect_refused(refused, "no such file");
  EXPECT_THAT(refused.err, HasSubstr("\\xff\\u2066none.yaml"));
}

TEST(Files, NeedNoDataFolders) {
  const TemporaryFolder folder;
  ::setenv("MEMWALL_DATA", "/nowhere", 1);
  const auto memwall = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), MEMWALL_EXECUTABLE);
    return Process(arguments).wait();
  };
  EXPECT_EQ(memwall({"estimate", kTiny, "--card", kCard}).status, 0);
  std::filesystem::create_directory(folder / "mine");
  std::ofstream(folder / "mine/config.json")
      << R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,)"
         R"("intermediate_size":128,"vocab_size":100})";
  EXPECT_EQ(memwall({"inspect", folder / "mine/config.json"}).status, 0);
  expect_refused(memwall({"inspect", "llama-3.1-8b"}), "a name");
  // The folder's own name, not ".".
  const Finished here = Process({"sh", "-c", "cd \"$1\" && \"$0\" inspect . --format json",
                                 MEMWALL_EXECUTABLE, folder / "mine"})
                            .wait();
  EXPECT_EQ(here.status, 0) << here.err;
  if (here.status == 0) {
    EXPECT_EQ(Json::parse(here.out)["model"]["name"], "mine");
  }
  ::setenv("MEMWALL_DATA", MEMWALL_SOURCE_DIR, 1);
}

}  // namespace
}  // namespace memwall
