// estimate from end to end: formats of parts, cards that say little, what does not fit.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "paths.h"
#include "tests/cli/process.h"

namespace memwall {
namespace {

using Json = nlohmann::json;

const std::string kBare = MEMWALL_TEST_DATA "/fixtures/bare-card.yaml";

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Json results_of(const std::string& arguments) {
  const Finished done = run("estimate " + arguments + " --format json");
  EXPECT_EQ(done.status, 0) << arguments << "\n" << done.err;
  return Json::parse(done.out);
}

TEST(EstimateParts, OneAssignmentIsOneResultWhoseLabelReadsBack) {
  const Json json = results_of("gpt-oss-20b --card 4090 --context 512 --weights experts=mxfp4,rest=q8_0");
  ASSERT_EQ(json["results"].size(), 1U);
  const Json& result = json["results"][0];
  EXPECT_EQ(result["weights"], "experts=mxfp4,rest=q8_0");
  EXPECT_NEAR(result["ceiling"]["tokens_per_s"].get<double>(), 390, 0.5);
  const Json again =
      results_of("gpt-oss-20b --card 4090 --context 512 --weights " + result["weights"].get<std::string>());
  EXPECT_EQ(again["results"], json["results"]);
}

TEST(EstimateParts, AlternativesAreRows) {
  const Json json =
      results_of("gpt-oss-20b --card 4090 --weights bf16,q8_0,experts=mxfp4;attention=q8_0,head=q6_k");
  ASSERT_EQ(json["results"].size(), 3U);
  EXPECT_EQ(json["results"][0]["weights"], "bf16");
  EXPECT_EQ(json["results"][1]["weights"], "experts=mxfp4,rest=q8_0");
  EXPECT_EQ(json["results"][2]["weights"], "attention=q8_0,head=q6_k");
  EXPECT_EQ(json["results"][2]["head_weights"], "q6_k");
  const Finished csv = run("estimate gpt-oss-20b --card 4090 --weights experts=mxfp4,rest=q8_0 --format csv");
  EXPECT_TRUE(holds(csv.out, ",\"experts=mxfp4,rest=q8_0\",")) << csv.out;
}

TEST(EstimateParts, AnUnknownOneIsRefusedWithThoseThatThereAre) {
  const Finished done = run("estimate llama-3.1-8b --card 4090 --weights experts=mxfp4");
  EXPECT_EQ(done.status, 2);
  EXPECT_EQ(done.out, "");
  EXPECT_TRUE(holds(done.err,
                    "llama-3.1-8b has no part or tensor 'experts'; its parts are embedding, attention, "
                    "mlp, lm_head, and 'rest'"))
      << done.err;
}

TEST(EstimateParts, InspectShowsThemAndTheYamlKeepsThem) {
  const std::string model = "inspect gpt-oss-20b --weights experts=mxfp4,rest=q8_0";
  const Finished table = run(model);
  EXPECT_TRUE(holds(table.out, "experts=mxfp4,rest=q8_0 (lm_head and embedding q8_0)")) << table.out;
  const TemporaryFolder folder;
  const std::string file = folder / "parts.yaml";
  ASSERT_EQ(run(model + " --format yaml --output " + file).status, 0);
  const Json direct = Json::parse(run(model + " --format json").out);
  const Json back = Json::parse(run("inspect " + file + " --format json").out);
  EXPECT_EQ(back["model"]["bytes"], direct["model"]["bytes"]);
}

TEST(EstimateBareCard, SaysWhatItAssumes) {
  const Finished done = run("estimate llama-3.1-8b --card " + kBare);
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_TRUE(holds(done.out, "\nceiling    118.33 tokens/s, 8.451 ms a step  (no run is faster"))
      << done.out;
  EXPECT_TRUE(holds(done.out, "\nassumed    no arithmetic peak is given")) << done.out;
  EXPECT_TRUE(holds(done.out, "\nassumed    capacity_GiB is not given: whether it fits is unknown\n"))
      << done.out;
  const Json json = results_of("llama-3.1-8b --card " + kBare);
  EXPECT_TRUE(json["results"][0]["memory"]["fits"].is_null());
  EXPECT_TRUE(json["results"][0]["memory"]["capacity_GiB"].is_null());
  EXPECT_TRUE(json["results"][0]["expected"]["provisional"]);
  EXPECT_EQ(json["cards"][0]["assumed"].size(), 3U);
  EXPECT_EQ(json["warnings"].size(), 3U);
}

TEST(EstimateMemory, WhatDoesNotFitSaysSoInEveryFormat) {
  const std::string line = "estimate llama-3.1-70b --card 4090,mi300x";
  EXPECT_TRUE(holds(run(line).out, "\n*: does not fit in the card's memory"));
  for (const char* format : {"json", "csv", "md"}) {
    const std::string text = run(line + " --format " + format).out;
    EXPECT_TRUE(holds(text, "does not fit in the card's memory: no run there has these speeds")) << text;
  }
}

}  // namespace
}  // namespace memwall
