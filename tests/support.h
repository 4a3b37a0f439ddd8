// What the tests of every stage share.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "input/error.h"

namespace memwall {

// The message of the InputError that `call` throws; one line, always.
template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find_first_of("\n\r"), std::string::npos) << message;
    return message;
  }
  return "no InputError was thrown";
}

// Sets MEMWALL_DATA for a scope and puts it back: by default the shipped files of this source tree.
class DataVariable {
 public:
  explicit DataVariable(const std::string& value = MEMWALL_SOURCE_DIR) {
    if (const char* old = std::getenv(kName)) old_ = old;
    setenv(kName, value.c_str(), 1);
  }
  ~DataVariable() {
    if (old_) {
      setenv(kName, old_->c_str(), 1);
    } else {
      unsetenv(kName);
    }
  }
  DataVariable(const DataVariable&) = delete;
  DataVariable& operator=(const DataVariable&) = delete;

 private:
  static constexpr const char* kName = "MEMWALL_DATA";
  std::optional<std::string> old_;
};

}  // namespace memwall
