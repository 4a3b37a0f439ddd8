// A router's choice of experts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "kernels/cpu/elementwise.h"
#include "support.h"

namespace memwall::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double wide(float value) { return static_cast<double>(value); }

class TopK : public OnEverySet {};
MEMWALL_ON_EVERY_SET(TopK);

struct Choice {
  std::vector<std::int32_t> indices;
  std::vector<float> weights;
};

Choice choose(Exact<float> logits, std::int64_t rows, std::int64_t experts, std::int64_t k) {
  Choice choice{std::vector<std::int32_t>(static_cast<std::size_t>(rows * k), -1),
                std::vector<float>(static_cast<std::size_t>(rows * k))};
  top_k_softmax(logits.data(), experts, k, choice.indices.data(), choice.weights.data(), 0, rows);
  return choice;
}

Choice choose(const std::vector<float>& logits, std::int64_t k) {
  return choose(Exact<float>(logits), 1, static_cast<std::int64_t>(logits.size()), k);
}

using Indices = std::vector<std::int32_t>;

TEST_P(TopK, TiesGoToTheLowerIndex) {
  EXPECT_EQ(choose({1, 3, 3, 2, 3}, 2).indices, (Indices{1, 2}));
  EXPECT_EQ(choose({1, 3, 3, 2, 3}, 4).indices, (Indices{1, 2, 4, 3}));
  EXPECT_EQ(choose({0, 0, 0}, 3).indices, (Indices{0, 1, 2}));
  EXPECT_EQ(choose({0.0F, -0.0F, 0.0F}, 2).indices, (Indices{0, 1}));
}

TEST_P(TopK, WeightsAreTheSoftmaxOfTheChosen) {
  const Choice choice = choose({1000.0F, 998.0F, -5.0F, 999.0F}, 3);
  EXPECT_EQ(choice.indices, (Indices{0, 3, 1}));
  const double sum = 1.0 + std::exp(-1.0) + std::exp(-2.0);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(wide(choice.weights[i]), std::exp(-static_cast<double>(i)) / sum, 1e-6);
  }
}

TEST_P(TopK, AgreesWithAStableSort) {
  struct Shape {
    std::int64_t experts, k;
  };
  for (const auto& [experts, k] : {Shape{64, 1}, Shape{64, 2}, Shape{64, 8}, Shape{64, 64}, Shape{7, 3},
                                   Shape{257, 8}, Shape{511, 33}}) {
    std::vector<float> logits = random_floats(20 * experts, 1);
    for (float& logit : logits) logit = std::round(logit * 10.0F);  // many ties
    for (std::size_t i = 0; i < logits.size(); i += 13) logits[i] = -kInfinity;
    const Choice choice = choose(Exact<float>(logits, 1), 20, experts, k);
    for (std::int64_t row = 0; row < 20; ++row) {
      Indices order(static_cast<std::size_t>(experts));
      std::iota(order.begin(), order.end(), 0);
      const float* scores = logits.data() + row * experts;
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
      order.resize(static_cast<std::size_t>(k));
      EXPECT_EQ(Indices(choice.indices.begin() + row * k, choice.indices.begin() + (row + 1) * k), order);
      double sum = 0.0;
      for (std::int64_t i = 0; i < k; ++i) sum += wide(choice.weights[row * k + i]);
      EXPECT_NEAR(sum, 1.0, 1e-6);
    }
  }
}

TEST_P(TopK, NanRanksLastAndBadKIsRefused) {
  const float nan = std::nanf("");
  EXPECT_EQ(choose({nan, 1.0F, nan, 2.0F}, 2).indices, (Indices{3, 1}));
  EXPECT_EQ(choose({nan, 1.0F, nan, 2.0F}, 3).indices, (Indices{3, 1, 0}));
  // Among the first k, and then far behind them.
  std::vector<float> logits = random_floats(100, 1);
  std::fill(logits.begin(), logits.begin() + 30, nan);
  logits[97] = nan;
  logits[98] = 2.0F;
  EXPECT_EQ(choose(logits, 2).indices.front(), 98);
  EXPECT_EQ(choose(logits, 69).indices[68] >= 30, true);
  EXPECT_EQ(choose(logits, 70).indices[69], 0);
  EXPECT_THROW(choose({1.0F}, 2), std::invalid_argument);
  EXPECT_THROW(choose({1.0F}, 0), std::invalid_argument);
}

}  // namespace
}  // namespace memwall::cpu
