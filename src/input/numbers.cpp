#include "input/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_set>

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

namespace {

// A count's digits and what its suffix multiplies them by.
struct Suffixed {
  std::string_view digits;
  std::int64_t factor = 1;
};

Suffixed split_suffix(std::string_view text) {
  constexpr std::int64_t kKi = 1024;
  if (text.empty()) return {text, 1};
  const char last = text.back();
  const std::int64_t factor = last == 'k' || last == 'K' ? kKi : last == 'm' || last == 'M' ? kKi * kKi : 1;
  if (factor > 1) text.remove_suffix(1);
  return {text, factor};
}

// FIRST-LAST, FIRST-LAST+STEP or FIRST-LAST*FACTOR. By 1 where neither follows.
struct Span {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 1;
  bool multiplies = false;
};

std::int64_t count_of(const Span& span) {
  if (!span.multiplies) {
    const std::int64_t steps = (span.last - span.first) / span.step;
    return steps == std::numeric_limits<std::int64_t>::max() ? steps : steps + 1;
  }
  std::int64_t count = 0;
  for (std::int64_t value = span.first;; value *= span.step) {
    ++count;
    if (value > span.last / span.step) return count;
  }
}

// Nothing where the item is no range but a single count.
std::optional<Span> read_span(std::string_view item, std::string_view what, Range range) {
  const std::size_t dash = item.find('-', 1);
  if (item.empty() || dash == std::string_view::npos) return std::nullopt;
  const auto refuse = [&](std::string_view why) {
    throw InputError(fmt::format(
        "{}: the range '{}' {}; write FIRST-LAST, FIRST-LAST+STEP or FIRST-LAST*FACTOR", what, item, why));
  };
  std::string_view rest = item.substr(dash + 1);
  const std::size_t sign = rest.find_first_of("+*");
  Span span;
  if (sign != std::string_view::npos) {
    span.multiplies = rest[sign] == '*';
    constexpr std::int64_t kMostStep = 1'000'000'000;
    span.step = parse_count(rest.substr(sign + 1), what, {1, kMostStep});
    if (span.multiplies && span.step == 1) refuse("never ends");
    rest = rest.substr(0, sign);
  }
  span.first = parse_count(item.substr(0, dash), what, range);
  span.last = parse_count(rest, what, range);
  if (span.first > span.last) refuse("runs downwards");
  if (span.first < 0) refuse("begins below 0");
  if (span.multiplies && span.first == 0) refuse("never ends");
  return span;
}

}  // namespace

std::int64_t parse_count(std::string_view text, std::string_view what, Range range) {
  const Suffixed count = split_suffix(text);
  if (count.factor == 1) return parse_integer(text, what, range);
  if (!is_plain_integer(count.digits)) {
    throw InputError(
        fmt::format("{}: '{}' is not a whole number; write plain digits, or with k for 1024, {} to {}", what,
                    text, range.low, range.high));
  }
  const std::optional<std::int64_t> digits = to_integer(count.digits);
  std::int64_t value = 0;
  if (!digits || __builtin_mul_overflow(*digits, count.factor, &value) || value < range.low ||
      value > range.high) {
    throw InputError(
        fmt::format("{}: {} is out of range; it must be {} to {}", what, text, range.low, range.high));
  }
  return value;
}

std::vector<std::int64_t> parse_integer_list(std::string_view text, std::string_view what, Range range,
                                             std::optional<std::int64_t>* repeated) {
  // All items are read before the first range is expanded.
  std::vector<Span> spans;
  std::int64_t total = 0;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    if (item.empty()) {
      throw InputError(fmt::format(
          "{}: an item of the list is empty; write numbers with one comma between, like 1,2,4", what));
    }
    std::optional<Span> span = read_span(item, what, range);
    if (!span) {
      const std::int64_t value = parse_count(item, what, range);
      span = Span{.first = value, .last = value};
    }
    const std::int64_t count = count_of(*span);
    total = count > kMostListed ? count : total + count;
    if (total > kMostListed) {
      throw InputError(fmt::format("{}: {}{} values; a list has at most {}", what,
                                   comma == std::string_view::npos ? "" : "over ",
                                   comma == std::string_view::npos ? total : kMostListed, kMostListed));
    }
    spans.push_back(*span);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  std::vector<std::int64_t> values;
  std::unordered_set<std::int64_t> seen;
  for (const Span& span : spans) {
    std::int64_t value = span.first;
    for (std::int64_t left = count_of(span); left > 0; --left) {
      if (seen.insert(value).second) {
        values.push_back(value);
      } else if (repeated != nullptr && !*repeated) {
        *repeated = value;
      }
      if (left > 1) value = span.multiplies ? value * span.step : value + span.step;
    }
  }
  return values;
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
