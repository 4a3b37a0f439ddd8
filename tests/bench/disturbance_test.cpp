#include "bench/disturbance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memwall {
namespace {

using ::testing::HasSubstr;

constexpr const char* kStat =
    "cpu  300 10 60 1000 20 5 15 50 7 0\n"
    "cpu0 100 10 20 500 10 5 5 20 7 0\n"
    "cpu1 200 0 40 500 10 0 10 30 0 0\n"
    "intr 13845214 0 0\nctxt 5\n";

TEST(Disturbance, ReadsTheTimesOfTheCpusInUse) {
  const auto both = parse_machine_times(kStat, {0, 1}, 100);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->cpus, 2);
  EXPECT_DOUBLE_EQ(both->busy_s, 3.9);  // 140 + 250 ticks
  EXPECT_DOUBLE_EQ(both->used_s, 3.9);
  EXPECT_DOUBLE_EQ(both->steal_s, 0.5);
  const auto second = parse_machine_times(kStat, {1}, 100);
  ASSERT_TRUE(second.has_value());
  EXPECT_DOUBLE_EQ(second->busy_s, 3.9);
  EXPECT_DOUBLE_EQ(second->used_s, 2.5);
  EXPECT_DOUBLE_EQ(second->steal_s, 0.3);
}

TEST(Disturbance, KnowsNothingFromOtherTexts) {
  for (const char* text : {"", "cpu  1 2 3 4 5 6 7 8\n", "cpu0 1 2 3\n", "cpu0 a b c d e f g h\n",
                           "cpux 1 2 3 4 5 6 7 8\n", "cpu1 1 2 3 4 5 6 7 8\n", "cpu0 1 2 3 4 5 6 7"})
    EXPECT_FALSE(parse_machine_times(text, {0}, 100).has_value()) << text;
}

TEST(Disturbance, AThreadThatWaitedOrAProcessThatStoodStillHoldsASampleUp) {
  const ProcessMoment start{10, 5, 1};
  EXPECT_FALSE(held_up(start, {10.004, 5.008, 1}));       // two threads, all the time
  EXPECT_FALSE(held_up(start, {10.004, 5.004, 1.0001}));  // one that waited a little
  EXPECT_TRUE(held_up(start, {10.004, 5.008, 1.0002}));   // 5 %
  EXPECT_TRUE(held_up(start, {10.3, 5.008, 1}));          // stopped
}

MachineMoment moment(double wall, double own, double used, double all, double steal) {
  return {{wall, own, 0}, {all, used, steal, 4}};
}

TEST(Disturbance, WhatOthersTookIsWhatWasBusyAndNotOurs) {
  Disturbance found;
  note_load(found, moment(100, 50, 1000, 2000, 10), moment(101, 52, 1002.5, 2003.5, 10.2), 2);
  EXPECT_NEAR(found.others, 0.25, 1e-9);      // half a second of two
  EXPECT_NEAR(found.elsewhere, 0.375, 1e-9);  // one and a half of four
  EXPECT_NEAR(found.steal, 0.1, 1e-9);
  // Ticks tell nothing of less than half a second; and more of ours than all is none of others.
  Disturbance none;
  note_load(none, moment(100, 50, 1000, 2000, 10), moment(100.4, 50.8, 1003, 2003, 11), 2);
  note_load(none, moment(100, 50, 1000, 2000, 10), moment(101, 52.1, 1002, 2002, 10), 2);
  EXPECT_EQ(none.others + none.elsewhere + none.steal, 0);
}

TEST(Disturbance, SaysWhatItWas) {
  EXPECT_EQ(disturbed_by({}, 20), "");
  EXPECT_EQ(disturbed_by({.discarded = 200, .kept = 5}, 20), "");  // a quarter
  EXPECT_THAT(disturbed_by({.discarded = 9, .kept = 6}, 20),
              HasSubstr("waited for a CPU during 6 of 20 samples"));
  EXPECT_EQ(disturbed_by({.others = 0.1, .elsewhere = 0.1, .steal = 0.1}, 20), "");
  EXPECT_EQ(disturbed_by({.others = 0.25}, 20), "other processes took 25 % of its CPUs");
  EXPECT_EQ(disturbed_by({.elsewhere = 0.5}, 20), "other processes took 50 % of the machine");
  EXPECT_EQ(disturbed_by({.steal = 0.11}, 20), "the hypervisor gave 11 % of its CPUs to others");
}

}  // namespace
}  // namespace memwall
