// What the model tests share.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "input/error.h"
#include "input/yaml.h"
#include "model/model.h"
#include "model/yaml_model.h"

namespace memwall {

inline Model read_model(const std::string& text) { return model_from_yaml(yaml::parse(text, "m.yaml")); }

// The message of the InputError a bad model file gives; one line, always.
inline std::string model_error(const std::string& text) {
  try {
    read_model(text);
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  return "no InputError was thrown";
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

// The shipped files of this source tree, for a scope.
class ShippedData {
 public:
  ShippedData() {
    if (const char* old = std::getenv("MEMWALL_DATA")) old_ = old;
    setenv("MEMWALL_DATA", MEMWALL_SOURCE_DIR, 1);
  }
  ~ShippedData() {
    if (old_) {
      setenv("MEMWALL_DATA", old_->c_str(), 1);
    } else {
      unsetenv("MEMWALL_DATA");
    }
  }
  ShippedData(const ShippedData&) = delete;
  ShippedData& operator=(const ShippedData&) = delete;

 private:
  std::optional<std::string> old_;
};

}  // namespace memwall
