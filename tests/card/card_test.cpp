#include "card/card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include "input/error.h"
#include "tests/support.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

// The shipped cards of this source tree.
class Cards : public testing::Test {
 private:
  DataVariable data_;
};

TEST_F(Cards, AllLoadWithPlausibleFigures) {
  const std::vector<Card> cards = all_cards();
  EXPECT_GE(cards.size(), 13U);
  for (const Card& card : cards) {
    SCOPED_TRACE(card.name);
    EXPECT_FALSE(card.vendor.empty());
    EXPECT_FALSE(card.architecture.empty());
    EXPECT_GE(card.bandwidth_GBps, 100);
    EXPECT_LE(card.bandwidth_GBps, 10'000);
    EXPECT_GE(card.capacity_GiB, 8);
    EXPECT_LE(card.capacity_GiB, 512);
    EXPECT_LE(card.l2_MiB, 512);
    ASSERT_EQ(card.peaks.count(ComputeType::f32), 1U);
    ASSERT_EQ(card.peaks.count(ComputeType::f16), 1U);
    for (const auto& [type, peak] : card.peaks) {
      EXPECT_GE(peak.tflops, 5) << compute_type_name(type);
      EXPECT_LE(peak.tflops, 10'000) << compute_type_name(type);
      EXPECT_FALSE(peak.source.empty()) << compute_type_name(type);
    }
    EXPECT_GE(card.peaks.at(ComputeType::f16).tflops, card.peaks.at(ComputeType::f32).tflops);
    EXPECT_DOUBLE_EQ(card.bytes_per_s(), card.bandwidth_GBps * 1e9);
  }
}

TEST_F(Cards, AchievableConstantsAreShares) {
  for (const Card& card : all_cards()) {
    SCOPED_TRACE(card.name);
    const Achievable& a = card.achievable;
    EXPECT_GT(a.bandwidth_share, 0.3);
    EXPECT_LE(a.bandwidth_share, 1);
    EXPECT_GT(a.compute_share, 0.1);
    EXPECT_LE(a.compute_share, 1);
    EXPECT_GT(a.kernel_us, 0);
    EXPECT_LT(a.kernel_us, 1000);
    EXPECT_GT(a.spread, 0);
    EXPECT_LE(a.spread, 0.9);
    EXPECT_FALSE(a.class_name.empty());
    EXPECT_FALSE(a.source.empty());
  }
}

TEST_F(Cards, NamesAndAliasesAreUniqueAndLowerCase) {
  std::set<std::string> words;
  const auto add = [&](const std::string& word) {
    EXPECT_TRUE(words.insert(word).second) << word;
    EXPECT_EQ(word.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ "), std::string::npos) << word;
  };
  for (const Card& card : all_cards()) {
    add(card.name);
    for (const std::string& alias : card.aliases) add(alias);
  }
}

TEST_F(Cards, AreFoundByNameAndAliasInAnyCase) {
  EXPECT_EQ(find_card("4090").name, "rtx-4090");
  EXPECT_EQ(find_card("H200").name, "h200");
  EXPECT_EQ(find_card("h100").name, "h100-sxm");
  EXPECT_EQ(find_card("A100").name, "a100-80gb");
  for (const Card& card : all_cards()) {
    EXPECT_EQ(find_card(card.name).name, card.name);
    for (const std::string& alias : card.aliases) EXPECT_EQ(find_card(alias).name, card.name) << alias;
  }
}

TEST_F(Cards, AnUnknownOneGetsThreeSuggestions) {
  EXPECT_THAT(error_of([] { find_card("h300"); }),
              MatchesRegex("unknown card 'h300'; did you mean [a-z0-9-]+, [a-z0-9-]+ or [a-z0-9-]+\\? "
                           "`memwall cards` lists them; a card YAML of your own is taken, too.*"));
  EXPECT_THAT(error_of([] { find_card("rtx-4900"); }), HasSubstr("did you mean rtx-4090, "));
  EXPECT_THAT(error_of([] { find_card("h20O"); }), HasSubstr("h200"));
}

TEST_F(Cards, DatasheetFiguresOfTwoCards) {
  const Card h200 = find_card("h200");
  EXPECT_DOUBLE_EQ(h200.bandwidth_GBps, 4800);
  EXPECT_DOUBLE_EQ(h200.capacity_GiB, 141);
  EXPECT_NEAR(h200.peaks.at(ComputeType::bf16).tflops, 989.4, 0.5);
  EXPECT_NEAR(h200.peaks.at(ComputeType::f8).tflops, 1978.9, 1);
  ASSERT_TRUE(h200.interconnect.has_value());
  EXPECT_DOUBLE_EQ(h200.interconnect->GBps, 900);
  const Card a100 = find_card("a100-80gb");
  EXPECT_NEAR(a100.bandwidth_GBps, 2039, 1);
  EXPECT_NEAR(a100.peaks.at(ComputeType::f16).tflops, 312, 0.5);
  EXPECT_EQ(a100.peaks.count(ComputeType::f8), 0U);  // no such units
}

// A card file of the test's own.
class CardFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "memwall-card-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = (folder_ / "card.yaml").string();
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  // A right card with `from` replaced by `to`.
  Card load(const std::string& from = "", const std::string& to = "") const {
    std::string text = kCard;
    if (!from.empty()) {
      const std::size_t at = text.find(from);
      EXPECT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    }
    std::ofstream(path_) << text;
    return load_card_yaml(path_);
  }

  // The message, with the path taken off the front.
  std::string error(const std::string& from, const std::string& to) const {
    const std::string message = error_of([&] { load(from, to); });
    return message.starts_with(path_) ? message.substr(path_.size()) : message;
  }

  static constexpr const char* kCard = R"(name: mine
aliases: [m, "1"]
compute_capability: "9.0"
bandwidth_GBps: {value: 1000.5, source: sheet}
capacity_GiB: {value: 24, source: sheet}
peaks_TFLOPs:
  f32: {value: 50, source: sheet}
  f16: {value: 100, source: paper, accumulate: f32}
sources:
  sheet: "a datasheet"
  paper: "a paper"
achievable:
  class: test
  bandwidth_share: 1
  compute_share: 0.5
  kernel_us: 2.5
  spread: 0.9
  source: "a guess"
)";

  fs::path folder_;
  std::string path_;
};

TEST_F(CardFile, ReadsWhatItSays) {
  const Card card = load();
  EXPECT_EQ(card.name, "mine");
  EXPECT_EQ(card.title, "mine");
  EXPECT_THAT(card.aliases, testing::ElementsAre("m", "1"));
  EXPECT_DOUBLE_EQ(card.bandwidth_GBps, 1000.5);
  EXPECT_DOUBLE_EQ(card.capacity_GiB, 24);
  EXPECT_DOUBLE_EQ(card.l2_MiB, 0);
  EXPECT_FALSE(card.interconnect.has_value());
  EXPECT_EQ(card.peaks.size(), 2U);
  EXPECT_EQ(card.peaks.at(ComputeType::f16).accumulate, "f32");
  EXPECT_EQ(card.peaks.at(ComputeType::f16).source, "paper");
  EXPECT_EQ(card.achievable.class_name, "test");
  EXPECT_FALSE(card.achievable.provisional);
  EXPECT_DOUBLE_EQ(card.achievable.bandwidth_share, 1);
  EXPECT_DOUBLE_EQ(card.achievable.kernel_us, 2.5);
}

TEST_F(CardFile, EveryFigureNamesAKnownSource) {
  EXPECT_EQ(error("1000.5, source: sheet", "1000.5, source: shet"),
            ":4:41: unknown source 'shet'; did you mean sheet?");
  EXPECT_EQ(error("1000.5, source: sheet", "1000.5"), ":4:17: bandwidth_GBps lacks the key 'source'");
  EXPECT_EQ(error("value: 50, source: sheet", "value: 50"), ":7:8: f32 lacks the key 'source'");
  EXPECT_EQ(error("source: paper", "source: papre"), ":8:29: unknown source 'papre'; did you mean paper?");
  EXPECT_EQ(error("capacity_GiB: {value: 24, source: sheet}", "capacity_GiB: 24"),
            ":5:15: capacity_GiB must be a mapping of keys to values");
}

TEST_F(CardFile, NeedsSources) {
  EXPECT_EQ(error("sources:\n  sheet: \"a datasheet\"\n  paper: \"a paper\"\n", ""),
            ":1:1: a card lacks the key 'sources'");
  EXPECT_EQ(error("\n  sheet: \"a datasheet\"\n  paper: \"a paper\"\n", " {}\n"),
            ":9:10: sources must map names to documents");
  EXPECT_EQ(error("\"a paper\"", "\"\""), ":11:10: a source must be text");
}

TEST_F(CardFile, NeedsTheF32AndF16Peaks) {
  EXPECT_EQ(error("  f16: {value: 100, source: paper, accumulate: f32}\n", ""),
            ":7:3: peaks_TFLOPs needs f32 and f16 at least");
  EXPECT_EQ(error("  f32: {value: 50, source: sheet}\n", ""),
            ":7:3: peaks_TFLOPs needs f32 and f16 at least");
  EXPECT_EQ(error("  f16:", "  fp16:"), ":8:3: unknown key in peaks_TFLOPs 'fp16'; did you mean f16?");
}

TEST_F(CardFile, SharesAreAboveZeroAndAtMostOne) {
  EXPECT_EQ(error("bandwidth_share: 1", "bandwidth_share: 1.01"),
            ":14:20: bandwidth_share must be at most 1");
  EXPECT_EQ(error("compute_share: 0.5", "compute_share: 70"), ":15:18: compute_share must be at most 1");
  EXPECT_EQ(error("compute_share: 0.5", "compute_share: 0"),
            ":15:18: compute_share must be a number above zero, in plain decimal");
  EXPECT_EQ(error("spread: 0.9", "spread: 0.91"), ":17:11: spread must be at most 0.9");
}

TEST_F(CardFile, FiguresAreNumbersAboveZero) {
  for (const char* value : {"0", "-1", "1e3", "\"24\"", "24GiB"}) {
    EXPECT_EQ(error("value: 24", std::string("value: ") + value),
              ":5:23: value must be a number above zero, in plain decimal")
        << value;
  }
}

TEST_F(CardFile, UnknownAndMissingKeys) {
  EXPECT_EQ(error("name: mine", "name: mine\nbandwidth: 3"),
            ":2:1: unknown key in a card 'bandwidth'; did you mean bandwidth_GBps?");
  EXPECT_EQ(error("name: mine\n", ""), ":1:1: a card lacks the key 'name'");
  EXPECT_EQ(error("kernel_us: 2.5", "kernel_ms: 2.5"), ":13:3: achievable lacks the key 'kernel_us'");
  EXPECT_EQ(error("value: 24,", "value: 24, unit: GB,"),
            ":5:27: unknown key in capacity_GiB 'unit'; did you mean value?");
  EXPECT_EQ(error("capacity_GiB", "interconnect: {name: x, GBps: 3, source: nope}\ncapacity_GiB"),
            ":5:42: unknown source 'nope'; did you mean paper?");
}

TEST_F(CardFile, AMissingFileIsNamed) {
  EXPECT_EQ(error_of([] { load_card_yaml("/no/such/card.yaml"); }),
            "/no/such/card.yaml: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace memwall
