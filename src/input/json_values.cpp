// Values of a JSON tree as numbers, truth values and texts.
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <system_error>

#include "input/json.h"

namespace memwall::json {
namespace {

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

// U+0080 to U+009F, the C1 controls, in UTF-8.
bool is_c1_control(std::string_view text, std::size_t at) {
  return text[at] == '\xc2' && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xa0;
}

[[noreturn]] void fail_kind(const std::string& file, const Value& value, std::string_view what,
                            std::string_view wanted) {
  fail(file, value, fmt::format("{} must be {}, not {}", what, wanted, shown(value)));
}

}  // namespace

bool holds_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_control(static_cast<unsigned char>(text[i])) || is_c1_control(text, i)) return true;
  }
  return false;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "true or false";
    case Kind::number:
      return "a number";
    case Kind::text:
      return "a text";
    case Kind::array:
      return "a list";
    case Kind::object:
      return "an object";
  }
  return "";
}

std::string shown(const Value& value) {
  if (value.kind == Kind::number) return excerpt(value.text);
  if (value.kind == Kind::boolean) return value.boolean ? "true" : "false";
  if (value.kind == Kind::text) return fmt::format("the text '{}'", excerpt(value.text));
  return std::string(kind_name(value.kind));
}

std::optional<std::int64_t> to_integer(std::string_view number) {
  std::int64_t plain = 0;
  const auto [plain_end, plain_error] = std::from_chars(number.data(), number.data() + number.size(), plain);
  if (plain_error == std::errc{} && plain_end == number.data() + number.size()) return plain;

  const bool negative = !number.empty() && number.front() == '-';
  if (negative) number.remove_prefix(1);

  // DIGITS[.DIGITS][eEXPONENT] is the integer of all digits, times a power of ten.
  const std::size_t exponent_at = number.find_first_of("eE");
  std::int64_t power = 0;
  if (exponent_at != std::string_view::npos) {
    std::string_view exponent = number.substr(exponent_at + 1);
    if (!exponent.empty() && exponent.front() == '+') exponent.remove_prefix(1);
    const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
    if (end != exponent.data() + exponent.size() || error == std::errc::invalid_argument) return std::nullopt;
    constexpr std::int64_t kFar = 1'000'000'000;  // past any digits in a file
    if (error != std::errc{} || power > kFar || power < -kFar) {
      power = exponent.front() == '-' ? -kFar : kFar;
    }
    number = number.substr(0, exponent_at);
  }
  std::string digits(number);
  if (const std::size_t point = digits.find('.'); point != std::string::npos) {
    digits.erase(point, 1);
    power -= static_cast<std::int64_t>(digits.size() - point);
  }
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;

  digits.erase(0, digits.find_first_not_of('0'));
  if (digits.empty()) return 0;
  const std::size_t last = digits.find_last_not_of('0');
  power += static_cast<std::int64_t>(digits.size() - 1 - last);
  digits.resize(last + 1);
  constexpr std::int64_t kMostDigits = 19;
  if (power < 0 || power + static_cast<std::int64_t>(digits.size()) > kMostDigits) return std::nullopt;
  digits.append(static_cast<std::size_t>(power), '0');
  if (negative) digits.insert(digits.begin(), '-');
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

std::int64_t as_integer(const std::string& file, const Value& value, std::string_view what, Range range) {
  std::optional<std::int64_t> integer;
  if (value.kind == Kind::number) integer = to_integer(value.text);
  if (!integer || *integer < range.low || *integer > range.high) {
    fail_kind(file, value, what, fmt::format("a whole number, {} to {}", range.low, range.high));
  }
  return *integer;
}

double as_number(const std::string& file, const Value& value, std::string_view what) {
  if (value.kind != Kind::number || value.text == "NaN") fail_kind(file, value, what, "a number");
  const std::string& text = value.text;
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // from_chars does not say whether too large or too small; strtod answers with infinity or zero.
  if (error == std::errc::result_out_of_range) return std::strtod(text.c_str(), nullptr);
  return number;
}

bool as_bool(const std::string& file, const Value& value, std::string_view what) {
  if (value.kind != Kind::boolean) fail_kind(file, value, what, "true or false");
  return value.boolean;
}

const std::string& as_text(const std::string& file, const Value& value, std::string_view what) {
  if (value.kind != Kind::text) fail_kind(file, value, what, "a text");
  if (holds_control(value.text)) fail_kind(file, value, what, "one line without control characters");
  return value.text;
}

}  // namespace memwall::json
