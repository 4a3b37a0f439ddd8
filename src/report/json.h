// JSON documents: the one set of named figures from which JSON, CSV and Markdown are all printed. Key order
// is kept. docs/json.md lists the keys.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

using Json = nlohmann::ordered_json;

// A whole number as an integer, anything else as a double, and null for NaN and infinities.
Json number(double value);

// What a result was made with and when.
struct Circumstances {
  std::string version;
  std::string command;  // the command line
  std::string time;     // UTC, ISO 8601
};

// The version of this build, the arguments as typed, the time now.
Circumstances circumstances_now(const std::vector<std::string>& arguments);

// {"schema": "memwall.<command>/1", "memwall": {version, command, time}}.
Json document(std::string_view command, const Circumstances& circumstances);

}  // namespace memwall
