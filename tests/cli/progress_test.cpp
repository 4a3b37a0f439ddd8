#include "cli/progress.h"

#include <gtest/gtest.h>

#include "report/table.h"

namespace memwall {
namespace {

TEST(ProgressLine, SaysHowFarAndHowMuchLonger) {
  EXPECT_EQ(progress_line("decode q_proj", {.done = 11, .of = 40, .share = 0.5}, 50),
            "12 of 40, about 50 s left  decode q_proj");
  EXPECT_EQ(progress_line("decode q_proj", {.done = 11, .of = 40, .share = 0.2}, 75),
            "12 of 40, about 5 min left  decode q_proj");
  EXPECT_EQ(progress_line("x", {.done = 39, .of = 40, .share = 0.99}, 100), "40 of 40, about 5 s left  x");
}

TEST(ProgressLine, GuessesNothingFromNothing) {
  EXPECT_EQ(progress_line("copy bandwidth", {.done = 1, .of = 40, .share = 0.04}, 2),
            "2 of 40  copy bandwidth");
  EXPECT_EQ(progress_line("copy bandwidth", {}, 2), "copy bandwidth");
  EXPECT_EQ(progress_line("x", {.done = 40, .of = 40, .share = 1}, 2), "40 of 40, about 5 s left  x");
}

TEST(ProgressLine, IsOneRowOfWholeCharacters) {
  std::string what = "matmul ";
  for (int i = 0; i < 60; ++i) what += "4096×4096 ";
  const std::string line = progress_line(what, {.done = 1, .of = 40, .share = 0}, 2);
  EXPECT_LE(display_width(line), 79U);
  EXPECT_GE(display_width(line), 77U);
  EXPECT_NE(static_cast<unsigned char>(line.back()), 0xC3U) << "half a sign";
}

}  // namespace
}  // namespace memwall
