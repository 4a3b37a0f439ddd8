#include "report/checkpoint_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace memwall {
namespace {

using testing::HasSubstr;
using testing::Not;

StoredTensor tensor(std::string name) {
  return {.name = std::move(name),
          .shape = {2, 3},
          .type = "F16",
          .format = Format{FormatKind::f16, 0, false},
          .bytes = 12};
}

TEST(TensorsText, LayersAreOneRow) {
  Checkpoint checkpoint;
  for (const char* name : {"layers.0.up", "layers.1.up", "layers.10.up"})
    checkpoint.tensors.push_back(tensor(name));
  const std::string text = tensors_text(checkpoint, Style{});
  EXPECT_THAT(text, HasSubstr("layers.*.up"));
  EXPECT_THAT(text, Not(HasSubstr("further rows")));
}

// Names of a hostile file: all differ, and a table of them all would serve nobody.
TEST(TensorsText, RowsBeyondWhatIsReadAreSummed) {
  Checkpoint checkpoint;
  for (int i = 0; i < 6000; ++i) checkpoint.tensors.push_back(tensor("t" + std::to_string(i)));
  const std::string text = tensors_text(checkpoint, Style{});
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 5010);
  EXPECT_THAT(text, HasSubstr("1,000 further rows (--format csv lists all)   1000"));
  EXPECT_THAT(text, HasSubstr("36,000"));  // values in all
}

}  // namespace
}  // namespace memwall
