#include "bench/work_plan.h"

#include <gtest/gtest.h>

namespace memwall {
namespace {

TEST(WorkPlan, CountsEachUnitOnceAndByItsTime) {
  WorkPlan plan;
  EXPECT_TRUE(plan.empty());
  plan.add("probe", 1);
  plan.add("op", 3);
  plan.add("op", 3);
  EXPECT_EQ(plan.state().of, 2U);
  EXPECT_EQ(plan.state().done, 0U);
  plan.end("a unit within another");
  EXPECT_EQ(plan.state().of, 2U);
  EXPECT_EQ(plan.state().done, 0U);
  plan.end("probe");
  plan.end("probe");
  EXPECT_EQ(plan.state().done, 1U);
  EXPECT_DOUBLE_EQ(plan.state().share, 0.25);
  plan.end("op");
  EXPECT_EQ(plan.state().done, 2U);
  EXPECT_EQ(plan.state().of, 2U);
  EXPECT_DOUBLE_EQ(plan.state().share, 1);
  EXPECT_FALSE(plan.empty());
}

}  // namespace
}  // namespace memwall
