// What the tests of every stage share.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "input/error.h"
#include "paths.h"

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

// Sets an environment variable for a scope and puts it back.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name_)) old_ = old;
    setenv(name_, value.c_str(), 1);
  }
  ~EnvironmentVariable() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// MEMWALL_DATA: by default the shipped files of this source tree.
class DataVariable : public EnvironmentVariable {
 public:
  explicit DataVariable(const std::string& value = MEMWALL_SOURCE_DIR)
      : EnvironmentVariable("MEMWALL_DATA", value) {}
};

}  // namespace memwall
