// Files that are small and mean something huge.
#include <gtest/gtest.h>

#include <string>

#include "input/error.h"
#include "model/yaml_model.h"

namespace memwall {
namespace {

TEST(ModelLimits, ManyShapesTimesManyLayersAreRefused) {
  std::string text = "name: bomb\nlayers:\n  - repeat: 10000\n";
  for (int i = 0; i < 101; ++i) text += "    s" + std::to_string(i) + ": [1, 1]\n";
  EXPECT_THROW(model_from_yaml(yaml::parse(text, "bomb.yaml")), InputError);
}

TEST(ModelLimits, ABlockBesideAPatternIsNamed) {
  const std::string text =
      "name: x\nhidden_size: 8\nlayers:\n  - pattern:\n      - mlp: {intermediate: 8}\n    mlp: "
      "{intermediate: 8}\n";
  try {
    model_from_yaml(yaml::parse(text, "x.yaml"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("x.yaml:6:5: 'mlp' stands beside pattern", 0), 0U)
        << error.what();
  }
}

}  // namespace
}  // namespace memwall
