#include "input/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "input/error.h"

namespace memwall {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

bool is_plain_integer(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return all_digits(text) && (text.size() == 1 || text.front() != '0');
}

bool is_plain_decimal(std::string_view text) {
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return is_plain_integer(text);
  return is_plain_integer(text.substr(0, point)) && all_digits(text.substr(point + 1));
}

std::int64_t parse_integer(std::string_view text, std::string_view what, Range range) {
  if (!is_plain_integer(text)) {
    throw InputError(fmt::format("{}: '{}' is not a whole number; write plain digits, {} to {}", what, text,
                                 range.low, range.high));
  }
  const std::optional<std::int64_t> value = to_integer(text);
  if (!value || *value < range.low || *value > range.high) {
    throw InputError(
        fmt::format("{}: {} is out of range; it must be {} to {}", what, text, range.low, range.high));
  }
  return *value;
}

std::vector<std::int64_t> parse_integer_list(std::string_view text, std::string_view what, Range range) {
  constexpr std::size_t kMostItems = 10'000;
  std::vector<std::int64_t> values;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    if (item.empty()) {
      throw InputError(fmt::format(
          "{}: an item of the list is empty; write numbers with one comma between, like 1,2,4", what));
    }
    values.push_back(parse_integer(item, what, range));
    if (values.size() > kMostItems) throw InputError(fmt::format("{}: more than {} items", what, kMostItems));
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

double parse_positive(std::string_view text, std::string_view what) {
  double value = 0;
  if (is_plain_decimal(text)) std::from_chars(text.data(), text.data() + text.size(), value);
  if (!(value > 0) || !std::isfinite(value)) {
    throw InputError(fmt::format("{}: '{}' is not a number above zero", what, text));
  }
  return value;
}

std::int64_t parse_bytes(std::string_view text, std::string_view what) {
  struct Suffix {
    std::string_view name;
    std::int64_t factor;
  };
  constexpr std::int64_t kKi = 1024;
  constexpr std::array kSuffixes = {
      Suffix{"KiB", kKi},
      Suffix{"MiB", kKi * kKi},
      Suffix{"GiB", kKi * kKi * kKi},
      Suffix{"TiB", kKi * kKi * kKi * kKi},
      Suffix{"KB", 1000},
      Suffix{"MB", 1000'000},
      Suffix{"GB", 1000'000'000},
      Suffix{"TB", 1000'000'000'000},
  };
  std::int64_t factor = 1;
  std::string_view digits = text;
  for (const Suffix& suffix : kSuffixes) {
    if (text.size() > suffix.name.size() && text.substr(text.size() - suffix.name.size()) == suffix.name) {
      factor = suffix.factor;
      digits.remove_suffix(suffix.name.size());
      break;
    }
  }
  double value = -1;
  if (is_plain_decimal(digits)) std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const double bytes = value * static_cast<double>(factor);
  if (!(bytes >= 1) || bytes >= std::ldexp(1.0, 62)) {
    throw InputError(fmt::format("{}: '{}' is not a size; write bytes or a number with MiB or GiB, like 2GiB",
                                 what, text));
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace memwall
