#include "card/card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "card/assumptions.h"
#include "input/error.h"
#include "input/yaml.h"
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

TEST_F(CardFile, ASourceThatIsNamedIsKnown) {
  EXPECT_EQ(error("1000.5, source: sheet", "1000.5, source: shet"),
            ":4:41: unknown source 'shet'; did you mean sheet?");
  EXPECT_EQ(error("source: paper", "source: papre"), ":8:29: unknown source 'papre'; did you mean paper?");
  EXPECT_EQ(error("\n  sheet: \"a datasheet\"\n  paper: \"a paper\"\n", " {}\n"),
            ":9:10: sources must map names to documents");
  EXPECT_EQ(error("\"a paper\"", "\"\""), ":11:10: a source must be text");
}

TEST_F(CardFile, SourcesMayBeLeftOut) {
  EXPECT_DOUBLE_EQ(load("1000.5, source: sheet", "1000.5").bandwidth_GBps, 1000.5);
  EXPECT_DOUBLE_EQ(load("capacity_GiB: {value: 24, source: sheet}", "capacity_GiB: 24").capacity_GiB, 24);
  EXPECT_DOUBLE_EQ(load("f32: {value: 50, source: sheet}", "f32: 50").peaks.at(ComputeType::f32).tflops, 50);
  // Without a list of sources a figure's is free text.
  const Card card = load("sources:\n  sheet: \"a datasheet\"\n  paper: \"a paper\"\n", "");
  EXPECT_EQ(card.peaks.at(ComputeType::f16).source, "paper");
  EXPECT_TRUE(card.assumed.empty());
}

TEST_F(CardFile, EveryFigureHasBounds) {
  struct Field {
    const char* from;  // in kCard, ending in the value
    const char* value;
    const char* where;
    const char* what;
    const char* range;
    const char* below;
    const char* above;
  };
  const Field fields[] = {
      {"bandwidth_GBps: {value: 1000.5", "1000.5", ":4:25", "bandwidth_GBps", "0.1 to 100000", "0.09",
       "100001"},
      {"capacity_GiB: {value: 24", "24", ":5:23", "capacity_GiB", "0.01 to 65536", "0.009", "65537"},
      {"f32: {value: 50", "50", ":7:16", "f32", "0.001 to 100000", "0.0009", "100001"},
      {"f16: {value: 100", "100", ":8:16", "f16", "0.001 to 100000", "0.0009", "100001"},
      {"bandwidth_share: 1", "1", ":14:20", "bandwidth_share", "0.01 to 1", "0.009", "1.01"},
      {"compute_share: 0.5", "0.5", ":15:18", "compute_share", "0.01 to 1", "0.009", "70"},
      {"kernel_us: 2.5", "2.5", ":16:14", "kernel_us", "0.001 to 10000", "0.0009", "10001"},
      {"spread: 0.9", "0.9", ":17:11", "spread", "0.001 to 0.9", "0.0009", "0.91"},
  };
  for (const Field& field : fields) {
    const std::string start =
        std::string(field.from, std::string(field.from).size() - std::string(field.value).size());
    const std::string wanted = std::string(field.where) + ": " + field.what + " must be a number from " +
                               field.range + ", in plain decimal";
    for (const char* value :
         {"0", "-1", "1e3", "1e300", ".nan", ".inf", "nan", "24GiB", field.below, field.above})
      EXPECT_EQ(error(field.from, start + value), wanted + ", not " + value) << field.what;
    EXPECT_EQ(error(field.from, start + "\"24\""), wanted + ", without quotes") << field.what;
    EXPECT_EQ(error(field.from, start + "1" + std::string(300, '0')),
              wanted + ", not 1" + std::string(23, '0') + "…")
        << field.what;
  }
  EXPECT_EQ(error("capacity_GiB", "l2_MiB: 65537\ncapacity_GiB"),
            ":5:9: l2_MiB must be a number from 0.001 to 65536, in plain decimal, not 65537");
  EXPECT_EQ(error("capacity_GiB", "interconnect: {name: x, GBps: 0, source: sheet}\ncapacity_GiB"),
            ":5:31: GBps must be a number from 0.01 to 100000, in plain decimal, not 0");
  EXPECT_EQ(error("{value: 24, source: sheet}", "[24]"),
            ":5:15: capacity_GiB must be a number from 0.01 to 65536, in plain decimal");
}

TEST_F(CardFile, UnknownAndMissingKeys) {
  EXPECT_EQ(error("name: mine", "name: mine\nbandwidth: 3"),
            ":2:1: unknown key in a card 'bandwidth'; did you mean bandwidth_GBps?");
  EXPECT_EQ(error("name: mine\n", ""), ":1:1: a card lacks the key 'name'");
  EXPECT_EQ(error("bandwidth_GBps: {value: 1000.5, source: sheet}\n", ""),
            ":1:1: a card lacks the key 'bandwidth_GBps'");
  EXPECT_EQ(error("kernel_us: 2.5", "kernel_ms: 2.5"),
            ":16:3: unknown key in achievable 'kernel_ms'; did you mean kernel_us?");
  EXPECT_EQ(error("  f16:", "  fp16:"), ":8:3: unknown key in peaks_TFLOPs 'fp16'; did you mean f16?");
  EXPECT_EQ(error("value: 24,", "value: 24, unit: GB,"),
            ":5:27: unknown key in capacity_GiB 'unit'; did you mean value?");
  EXPECT_EQ(error("capacity_GiB", "interconnect: {name: x, GBps: 3, source: nope}\ncapacity_GiB"),
            ":5:42: unknown source 'nope'; did you mean paper?");
}

// What people know of a card is its name, its bandwidth and perhaps its memory.
class BareCard : public CardFile {
 protected:
  Card bare(const std::string& text) const {
    std::ofstream(path_) << text;
    return load_card_yaml(path_);
  }
  static std::vector<double> constants(const Card& card) {
    const Achievable& a = card.achievable;
    return {a.bandwidth_share, a.compute_share, a.kernel_us, a.spread};
  }
};

TEST_F(BareCard, ABandwidthIsEnough) {
  const Card card = bare("name: mine\nbandwidth_GBps: 1792\n");
  EXPECT_DOUBLE_EQ(card.bandwidth_GBps, 1792);
  EXPECT_EQ(card.capacity_GiB, 0);  // unknown
  // Ridges of 1000 FLOP/byte in 16 bits, 250 in f32; the expected speed takes a fifth.
  EXPECT_DOUBLE_EQ(card.peaks.at(ComputeType::f16).tflops, 1792);
  EXPECT_DOUBLE_EQ(card.peaks.at(ComputeType::bf16).tflops, 1792);
  EXPECT_DOUBLE_EQ(card.peaks.at(ComputeType::int8).tflops, 2 * 1792);
  EXPECT_DOUBLE_EQ(card.peaks.at(ComputeType::f8).tflops, 2 * 1792);
  EXPECT_DOUBLE_EQ(card.peaks.at(ComputeType::f4).tflops, 4 * 1792);
  EXPECT_DOUBLE_EQ(card.peaks.at(ComputeType::f32).tflops, 448);
  EXPECT_THAT(constants(card), testing::ElementsAre(0.85, 0.6 * 0.2, 10, 0.3));
  EXPECT_TRUE(card.achievable.provisional);
  ASSERT_EQ(card.assumed.size(), 3U);
  EXPECT_THAT(card.assumed[0], StartsWith("no arithmetic peak is given: ridges above every shipped card's"));
  EXPECT_THAT(card.assumed[1], StartsWith("what kernels achieve is not given: bandwidth_share 0.85, "));
  EXPECT_EQ(card.assumed[2], "capacity_GiB is not given: whether it fits is unknown");
}

TEST_F(BareCard, ThePeaksThatLackFollowTheOnesGiven) {
  const auto peaks = [&](const std::string& given) {
    const Card card =
        bare("name: mine\nbandwidth_GBps: 100\ncapacity_GiB: 8\npeaks_TFLOPs: {" + given + "}\n");
    return std::pair{card.peaks.at(ComputeType::f16).tflops, card.peaks.at(ComputeType::f32).tflops};
  };
  EXPECT_EQ(peaks("f16: 80"), std::pair(80.0, 80.0));
  EXPECT_EQ(peaks("bf16: 80"), std::pair(80.0, 80.0));
  EXPECT_EQ(peaks("f32: 20"), std::pair(20.0, 20.0));
  EXPECT_EQ(peaks("tf32: 40"), std::pair(80.0, 40.0));
  EXPECT_EQ(peaks("int8: 160"), std::pair(80.0, 80.0));
  EXPECT_EQ(peaks("f8: 160"), std::pair(80.0, 80.0));
  EXPECT_EQ(peaks("f4: 320"), std::pair(80.0, 80.0));
  EXPECT_EQ(peaks("f16: 80, f32: 20"), std::pair(80.0, 20.0));
  const Card card = bare("name: mine\nbandwidth_GBps: 100\npeaks_TFLOPs: {f16: 80}\n");
  EXPECT_EQ(card.peaks.size(), 2U);  // no units are made up beside those that are known
  EXPECT_EQ(card.assumed.front(), "the f32 peak is not given: f32 80 TFLOP/s (as f16, the most it can be)");
  EXPECT_DOUBLE_EQ(card.achievable.compute_share, 0.6);
  EXPECT_EQ(error_of([&] { bare("name: mine\nbandwidth_GBps: 100\npeaks_TFLOPs: {}\n"); }),
            path_ + ":3:15: peaks_TFLOPs holds no peak; leave it out, or give f16 at least");
}

TEST_F(BareCard, ConstantsThatLackFollowTheClass) {
  const auto of = [&](const std::string& achievable) {
    return bare("name: mine\nbandwidth_GBps: 100\npeaks_TFLOPs: {f16: 80, f32: 20}\nachievable: {" +
                achievable + "}\n");
  };
  const Card consumer = of("class: gddr-consumer");
  EXPECT_THAT(constants(consumer), testing::ElementsAre(0.90, 0.85, 8, 0.15));
  EXPECT_EQ(consumer.achievable.class_name, "gddr-consumer");
  EXPECT_TRUE(consumer.achievable.provisional);
  EXPECT_THAT(constants(of("class: gddr-consumer, kernel_us: 3")), testing::ElementsAre(0.90, 0.85, 3, 0.15));
  EXPECT_THAT(constants(of("class: of-my-own, kernel_us: 3")), testing::ElementsAre(0.85, 0.6, 3, 0.3));
  const Card all = of("class: uma, bandwidth_share: 0.8, compute_share: 0.5, kernel_us: 9, spread: 0.2");
  EXPECT_FALSE(all.achievable.provisional);
  EXPECT_EQ(all.achievable.class_name, "uma");
  EXPECT_EQ(all.assumed.size(), 1U);  // the capacity
}

// The constants that classes stand for are those of the shipped cards, and the assumed ridges pass all of
// theirs.
TEST_F(Cards, AgreeWithWhatIsAssumedOfOthers) {
  std::set<std::string> classes;
  for (const Card& card : all_cards()) {
    SCOPED_TRACE(card.name);
    EXPECT_TRUE(card.assumed.empty());
    const auto known =
        std::find_if(achievable_classes().begin(), achievable_classes().end(),
                     [&](const Achievable& a) { return a.class_name == card.achievable.class_name; });
    ASSERT_NE(known, achievable_classes().end());
    classes.insert(known->class_name);
    EXPECT_EQ(known->bandwidth_share, card.achievable.bandwidth_share);
    EXPECT_EQ(known->compute_share, card.achievable.compute_share);
    EXPECT_EQ(known->kernel_us, card.achievable.kernel_us);
    EXPECT_EQ(known->spread, card.achievable.spread);
    const auto ridge = [&](ComputeType type) {
      return card.peaks.contains(type) ? card.peaks.at(type).tflops * 1e12 / card.bytes_per_s() : 0;
    };
    EXPECT_LT(ridge(ComputeType::f16), 1000);
    EXPECT_LT(ridge(ComputeType::f32), 250);
    EXPECT_LT(std::max(ridge(ComputeType::f8), ridge(ComputeType::int8)), 2000);
  }
  EXPECT_EQ(classes.size(), achievable_classes().size());
}

// A shipped figure without a document behind it is a rumour.
TEST_F(Cards, EveryShippedFigureNamesItsSource) {
  for (const auto& entry : fs::directory_iterator(MEMWALL_SOURCE_DIR "/configs/cards")) {
    const yaml::Node card = yaml::load(entry.path().string());
    ASSERT_NE(card.find("sources"), nullptr) << entry.path();
    int figures = 0;
    const auto expect_source = [&](const yaml::Node& figure) {
      ++figures;
      EXPECT_NE(figure.find("source"), nullptr) << *figure.file << ":" << figure.line;
    };
    for (const char* key : {"bandwidth_GBps", "capacity_GiB", "l2_MiB", "interconnect", "achievable"}) {
      if (const yaml::Node* figure = card.find(key)) expect_source(*figure);
    }
    for (const auto& [type, figure] : card.find("peaks_TFLOPs")->entries) expect_source(figure);
    EXPECT_GE(figures, 5) << entry.path();
  }
}

TEST_F(CardFile, AMissingFileIsNamed) {
  EXPECT_EQ(error_of([] { load_card_yaml("/no/such/card.yaml"); }),
            "/no/such/card.yaml: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace memwall
