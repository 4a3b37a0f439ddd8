// What the model tests share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "input/error.h"
#include "input/yaml.h"
#include "model/model.h"
#include "model/yaml_model.h"
#include "tests/support.h"

namespace memwall {

inline Model read_model(const std::string& text) { return model_from_yaml(yaml::parse(text, "m.yaml")); }

// The message of the InputError a bad model file gives; one line, always.
inline std::string model_error(const std::string& text) {
  return error_of([&] { read_model(text); });
}

// A small vocabulary-less model around `layers`, which start on line 4.
inline std::string with_layers(const std::string& layers) {
  return "name: m\nhidden_size: 64\nlayers:\n" + layers;
}

// "q_proj 64x64 bf16", one a tensor; copies as a prefix "8*".
inline std::vector<std::string> shapes(const Block& block) {
  std::vector<std::string> result;
  for (const Tensor& t : block.tensors) {
    result.push_back((t.copies > 1 ? std::to_string(t.copies) + "*" : "") + t.name + " " +
                     std::to_string(t.out) + "x" + std::to_string(t.in) + " " + format_name(t.format));
  }
  return result;
}

}  // namespace memwall
