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
    std::int64_t last_id = -1;
    for (const auto& [id, tokens_of] : routing.experts) {
      EXPECT_GT(id, last_id);
      EXPECT_LT(id, experts);
      last_id = id;
      EXPECT_FALSE(tokens_of.empty());
      EXPECT_EQ(std::set<std::int64_t>(tokens_of.begin(), tokens_of.end()).size(), tokens_of.size());
      for (const std::int64_t token : tokens_of) ++uses[static_cast<std::size_t>(token)];
    }
    EXPECT_EQ(uses, std::vector<std::int64_t>(static_cast<std::size_t>(tokens), per_token));
    EXPECT_EQ(routing.touched(), static_cast<std::int64_t>(routing.experts.size()));
    EXPECT_LE(routing.touched(), std::min(experts, tokens * per_token));
    EXPECT_GE(routing.touched(), per_token);
  }
}

TEST(RoutingDraw, TheSeedDecides) {
  const auto draw = [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    return draw_routing(16, 64, 4, random).experts;
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
  for (const RoutedExpert& expert : routing.experts)
    EXPECT_NEAR(static_cast<double>(expert.tokens.size()), 4000, 5 * 55);
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

// Three layers of eight experts: a launch's matrices are its layer's, by the ids drawn.
TEST(ExpertDraws, ALayersExpertsAreItsOwnAndThoseDrawn) {
  const ExpertDraws draws(2, 8, 2, true, 3 * 8, 5);
  std::set<std::int64_t> seen;
  for (std::int64_t turn = 0; turn < 60; ++turn) {
    const Routing& routing = draws.routing(turn);
    for (std::size_t i = 0; i < routing.experts.size(); ++i) {
      EXPECT_EQ(draws.matrix(turn, i), turn % 3 * 8 + routing.experts[i].id);
      seen.insert(draws.matrix(turn, i));
    }
  }
  EXPECT_EQ(seen.size(), 24U);
}

TEST(ExpertDraws, LayersDrawApartAndAnewInEveryStep) {
  const ExpertDraws draws(2, 64, 4, true, 32 * 64, 5);  // as many layers as there are draws
  for (std::int64_t turn = 0; turn < 32; ++turn) {
    EXPECT_NE(draws.routing(turn).experts, draws.routing(turn + 1).experts);
    EXPECT_NE(draws.routing(turn).experts, draws.routing(turn + 32).experts);
  }
}

// A pool of no whole number of launches: 13 matrices, 4 at a time.
TEST(ExpertDraws, APoolRotates) {
  const ExpertDraws draws(2, 8, 2, false, 13, 5);
  for (std::int64_t turn = 0; turn < 20; ++turn) {
    for (std::size_t i = 0; i < draws.routing(turn).experts.size(); ++i)
      EXPECT_EQ(draws.matrix(turn, i), (turn * 4 + static_cast<std::int64_t>(i)) % 13);
  }
}

}  // namespace
}  // namespace memwall
