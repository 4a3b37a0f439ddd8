#include "huggingface/quantization_pattern.h"

#include <gtest/gtest.h>

#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

namespace memwall {
namespace {

bool matches(const ModulePattern& pattern, const std::string& name) {
  ModulePattern::Budget budget{1'000'000};
  // In two steps, as callers do: what follows depends on the states alone.
  const ModulePattern::States half =
      pattern.advance(pattern.start(), name.substr(0, name.size() / 2), budget);
  return pattern.matches(pattern.advance(half, name.substr(name.size() / 2), budget));
}

bool glob(const std::string& pattern, const std::string& name) {
  return matches(ModulePattern::glob(pattern), name);
}

bool regex(const std::string& pattern, const std::string& name) {
  return matches(ModulePattern::regex(pattern), name);
}

TEST(Globs, MatchAModuleAndWhatIsInsideIt) {
  EXPECT_TRUE(glob("*.mlp.gate", "layers.3.mlp.gate"));
  EXPECT_FALSE(glob("*.mlp.gate", "layers.3.mlp.gate_proj"));
  EXPECT_TRUE(glob("*.mlp.gate*", "layers.3.mlp.gate_proj"));
  EXPECT_TRUE(glob("layers.*.self_attn", "layers.31.self_attn.q_proj"));
  EXPECT_FALSE(glob("layers.*.self_attn", "layers.31.self_attn_norm"));
  EXPECT_TRUE(glob("layers.1*", "layers.16.mlp"));  // as fnmatch has it
  EXPECT_FALSE(glob("layers.1*", "layers.21.mlp"));
  EXPECT_TRUE(glob("layers.?.mlp", "layers.1.mlp"));
  EXPECT_FALSE(glob("layers.?.mlp", "layers.11.mlp"));
  EXPECT_TRUE(glob("layers.[0-2].mlp", "layers.2.mlp"));
  EXPECT_FALSE(glob("layers.[!0-2].mlp", "layers.2.mlp"));
  EXPECT_TRUE(glob("*", ""));
  EXPECT_TRUE(glob("", ""));
  EXPECT_FALSE(glob("", "a"));
}

TEST(Regexes, AreTiedToTheBeginOnly) {
  EXPECT_TRUE(regex("mlp", "mlp.gate"));
  EXPECT_FALSE(regex("gate", "mlp.gate"));
  EXPECT_TRUE(regex(".*gate", "mlp.gate_proj"));
  EXPECT_FALSE(regex(".*gate$", "mlp.gate_proj"));
  EXPECT_TRUE(regex("^mlp\\.gate$", "mlp.gate"));
  EXPECT_FALSE(regex("a^b", "ab"));
  EXPECT_TRUE(regex("(^a|b)c", "ac"));
  EXPECT_TRUE(regex("a$|b", "bc"));
}

TEST(Regexes, KnowTheUsualParts) {
  EXPECT_TRUE(regex(".*layers\\.\\d+\\.mlp\\.experts\\.[0-9]+\\.(gate|up|down)_proj$",
                    "model.layers.12.mlp.experts.0.up_proj"));
  EXPECT_FALSE(regex(".*layers\\.\\d\\.mlp", "model.layers.12.mlp"));
  EXPECT_TRUE(regex("layers.(0|1|[4-6])[.]", "layers.5.x"));
  EXPECT_FALSE(regex("layers.(0|1|[4-6])[.]", "layers.15.x"));
  EXPECT_TRUE(regex("a{2,3}b", "aaab"));
  EXPECT_FALSE(regex("a{2,3}b", "aaaab"));
  EXPECT_FALSE(regex("a{2}b", "ab"));
  EXPECT_TRUE(regex("a{2,}b", "aaaaab"));
  EXPECT_TRUE(regex("(?:ab)?c+?d", "ccd"));
  EXPECT_TRUE(regex("[^.]+\\.w[\\d]", "x_y.w3"));
  EXPECT_TRUE(regex("\\w+\\.[]a]", "ab.]"));
  EXPECT_TRUE(regex("", "anything"));
  EXPECT_TRUE(regex("(a|)b", "b"));
  EXPECT_TRUE(regex("(a*)*b", "aab"));
}

TEST(Regexes, RefuseTheRest) {
  for (const char* pattern : {"(?!a)", "(?=a)", "(?P<n>a)", "a\\1", "\\bgate", "(a", "a)", "[a", "a{", "a{2",
                              "a{x}", "a{3,2}", "*a", "a**", "a{1}{2}", "^*", "\\", "a{65}"}) {
    EXPECT_THROW(ModulePattern::regex(pattern), std::invalid_argument) << pattern;
  }
  EXPECT_THROW(ModulePattern::glob("[ab"), std::invalid_argument);
  EXPECT_THROW(ModulePattern::glob(std::string(1001, 'a')), std::invalid_argument);
  EXPECT_THROW(ModulePattern::regex(std::string(1001, '.')), std::invalid_argument);
  EXPECT_THROW(ModulePattern::regex(std::string(500, '(') + std::string(500, ')')), std::invalid_argument);
}

TEST(Regexes, RefuseWhatGrowsOnceWrittenOut) {
  EXPECT_THROW(ModulePattern::regex("((a{64}){64}){64}"), std::invalid_argument);
  EXPECT_THROW(ModulePattern::regex("((((){64}){64}){64}){64}"), std::invalid_argument);
}

TEST(Regexes, TakeTimeLinearInTheName) {
  const std::clock_t begin = std::clock();
  EXPECT_FALSE(regex("(a+)+(a*)*(a|aa)+$", std::string(2000, 'a') + "b"));
  EXPECT_LT(std::clock() - begin, 2 * CLOCKS_PER_SEC);
}

TEST(Patterns, StopWhereTheBudgetIsSpent) {
  const ModulePattern pattern = ModulePattern::regex(".*a");
  ModulePattern::Budget budget{100};
  EXPECT_THROW(pattern.advance(pattern.start(), std::string(100, 'a'), budget), std::length_error);
}

}  // namespace
}  // namespace memwall
