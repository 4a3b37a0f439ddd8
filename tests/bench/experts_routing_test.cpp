#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <stdexcept>

#include "bench/routing.h"
#include "cost/cost.h"

namespace memwall {
namespace {

TEST(RoutingDraw, EveryTokenGetsDistinctExperts) {
  std::mt19937_64 random(1);
  for (const auto& [tokens, experts, per_token] :
       {std::tuple{1, 1, 1}, {1, 8, 2}, {5, 8, 8}, {33, 64, 6}, {7, 300, 8}}) {
    const Routing routing = draw_routing(tokens, experts, per_token, random);
    std::vector<std::int64_t> uses(static_cast<std::size_t>(tokens), 0);
    for (const std::vector<std::int64_t>& tokens_of : routing.tokens_of) {
      EXPECT_FALSE(tokens_of.empty());
      EXPECT_EQ(std::set<std::int64_t>(tokens_of.begin(), tokens_of.end()).size(), tokens_of.size());
      for (const std::int64_t token : tokens_of) ++uses[static_cast<std::size_t>(token)];
    }
    EXPECT_EQ(uses, std::vector<std::int64_t>(static_cast<std::size_t>(tokens), per_token));
    EXPECT_EQ(routing.touched(), static_cast<std::int64_t>(routing.tokens_of.size()));
    EXPECT_LE(routing.touched(), std::min(experts, tokens * per_token));
    EXPECT_GE(routing.touched(), per_token);
  }
}

TEST(RoutingDraw, TheSeedDecides) {
  const auto draw = [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    return draw_routing(16, 64, 4, random).tokens_of;
  };
  EXPECT_EQ(draw(7), draw(7));
  EXPECT_NE(draw(7), draw(8));
}

// 16000 tokens choose 2 of 8: an expert gets 4000 in expectation, with a deviation of sqrt(16000/4*3/4) = 55.
// Routings list experts in order, and with so many tokens none is left out.
TEST(RoutingDraw, ExpertsAreEquallyLikely) {
  std::mt19937_64 random(3);
  const Routing routing = draw_routing(16000, 8, 2, random);
  ASSERT_EQ(routing.touched(), 8);
  for (const std::vector<std::int64_t>& tokens_of : routing.tokens_of)
    EXPECT_NEAR(static_cast<double>(tokens_of.size()), 4000, 5 * 55);
}

// The mean of the distinct experts over many draws is E (1 - (1 - k/E)^B), within five standard errors.
TEST(RoutingDraw, TouchesWhatTheFormulaExpects) {
  constexpr int kDraws = 4000;
  std::mt19937_64 random(11);
  for (const auto& [tokens, experts, per_token] :
       {std::tuple{1, 64, 8}, {4, 8, 2}, {16, 128, 8}, {64, 256, 8}, {32, 32, 4}}) {
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const auto touched = static_cast<double>(draw_routing(tokens, experts, per_token, random).touched());
      sum += touched;
      squares += touched * touched;
    }
    const double mean = sum / kDraws;
    const double error = std::sqrt(std::max(0.0, squares / kDraws - mean * mean) / kDraws);
    EXPECT_NEAR(mean, experts_touched(experts, per_token, tokens), 5 * error + 1e-9) << tokens << " tokens";
  }
}

TEST(RoutingDraw, RefusesWhatCannotBeRouted) {
  std::mt19937_64 random(1);
  EXPECT_THROW(draw_routing(0, 8, 2, random), std::invalid_argument);
  EXPECT_THROW(draw_routing(1, 8, 0, random), std::invalid_argument);
  EXPECT_THROW(draw_routing(1, 8, 9, random), std::invalid_argument);
}

}  // namespace
}  // namespace memwall
