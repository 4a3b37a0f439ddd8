#include "input/suggest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memwall {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Nearest, PutsTheSmallestEditDistanceFirst) {
  EXPECT_THAT(nearest("atention", {"mlp", "moe", "attention", "kv_cache"}, 1), ElementsAre("attention"));
  EXPECT_THAT(nearest("kitten", {"sitting", "mitten", "smitten"}, 3),
              ElementsAre("mitten", "smitten", "sitting"));
}

TEST(Nearest, CountsATranspositionAsOneEdit) {
  // Without transpositions both are two edits away, and the first would win.
  EXPECT_THAT(nearest("mpl", {"mxx", "mlp"}, 1), ElementsAre("mlp"));
}

TEST(Nearest, FavoursCandidatesThatHoldTheWordOrAreHeldByIt) {
  EXPECT_THAT(nearest("llama", {"gamma", "llama-3.1-70b"}, 1), ElementsAre("llama-3.1-70b"));
  EXPECT_THAT(nearest("4090", {"3090", "rtx-4090"}, 2), ElementsAre("3090", "rtx-4090"));
  EXPECT_THAT(nearest("h200", {"h100-pcie", "nvidia-h200"}, 1), ElementsAre("nvidia-h200"));
  EXPECT_THAT(nearest("nvidia-h200-sxm", {"nvidia-a40-pcie", "h200"}, 1), ElementsAre("h200"));
}

TEST(Nearest, IgnoresTheCaseOfLettersAndKeepsTheCandidatesSpelling) {
  EXPECT_THAT(nearest("h200", {"A100", "H200"}, 1), ElementsAre("H200"));
  EXPECT_THAT(nearest("H200", {"a100", "h200"}, 1), ElementsAre("h200"));
}

TEST(Nearest, KeepsTheOrderOfEqualCandidates) {
  EXPECT_THAT(nearest("b", {"a", "c", "d"}, 3), ElementsAre("a", "c", "d"));
}

TEST(Nearest, ReturnsAtMostWhatWasAskedFor) {
  const std::vector<std::string> words = {"q4_0", "q4_1", "q5_0"};
  EXPECT_THAT(nearest("q4_0", words, 2), ElementsAre("q4_0", "q4_1"));
  EXPECT_EQ(nearest("q4_0", words, 9).size(), 3U);
  EXPECT_THAT(nearest("q4_0", words, 0), IsEmpty());
  EXPECT_THAT(nearest("q4_0", {}, 3), IsEmpty());
}

TEST(Nearest, AnEmptyWordIsNearestToTheShortest) {
  EXPECT_THAT(nearest("", {"attention", "mlp"}, 1), ElementsAre("mlp"));
}

TEST(Nearest, AVeryLongWordIsComparedByItsBeginning) {
  EXPECT_THAT(nearest(std::string(1'000'000, 'x'), {"xx", "y"}, 1), ElementsAre("xx"));
}

TEST(JoinOr, WritesCommasAndAnOr) {
  EXPECT_EQ(join_or({}), "");
  EXPECT_EQ(join_or({"a"}), "a");
  EXPECT_EQ(join_or({"a", "b"}), "a or b");
  EXPECT_EQ(join_or({"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace memwall
