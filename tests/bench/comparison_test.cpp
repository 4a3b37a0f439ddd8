#include <gtest/gtest.h>

#include <cmath>

#include "bench/cpu_data.h"

namespace memwall {
namespace {

TEST(Comparison, TellsTheLargestErrorOverItsTolerance) {
  Comparison comparison;
  EXPECT_FALSE(comparison.result().passed());  // nothing compared
  comparison.add(1.0, 1.5, 1.0);
  comparison.add(2.0, 2.25, 1.0);
  EXPECT_EQ(comparison.result().worst, 0.5);
  EXPECT_EQ(comparison.result().outputs, 2);
  EXPECT_TRUE(comparison.result().passed());
  comparison.add(0.0, -3.0, 2.0);
  EXPECT_FALSE(comparison.result().passed());
}

// Whatever comes behind it.
TEST(Comparison, KeepsANaN) {
  Comparison comparison;
  comparison.add(std::nan(""), 1.0, 1.0);
  EXPECT_FALSE(comparison.result().passed());
  comparison.add(1.0, 1.0, 1.0);
  comparison.add(1.0, 1.5, 1.0);
  EXPECT_FALSE(comparison.result().passed());
  EXPECT_TRUE(std::isnan(comparison.result().worst));
}

}  // namespace
}  // namespace memwall
