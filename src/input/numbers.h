// Numbers as people write them on a command line, read strictly: whole decimal digits, nothing clamped,
// nothing guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

struct Range {
  std::int64_t low = 1;
  std::int64_t high = 1;
};

// A plain decimal integer within `range`: no sign but '-', no leading zero, no blanks. Throws InputError;
// `what` names the value in the message ("--batch").
std::int64_t parse_integer(std::string_view text, std::string_view what, Range range);

// The same with k (1024) or M (1024^2) behind it, as contexts are written: "8k" is 8192, "128K" 131072.
std::int64_t parse_count(std::string_view text, std::string_view what, Range range);

// "1,2,4", "8k,128k", "1-64": one or more counts, none empty, in the order given. Ranges are llama-bench's:
// FIRST-LAST, FIRST-LAST+STEP and FIRST-LAST*FACTOR, LAST included where it is met. At most kMostListed
// counts, which is checked before a range is expanded. A repeated count stays one; `repeated` is set to the
// first such. Throws InputError.
inline constexpr std::int64_t kMostListed = 10'000;
std::vector<std::int64_t> parse_integer_list(std::string_view text, std::string_view what, Range range,
                                             std::optional<std::int64_t>* repeated = nullptr);

// A plain decimal number above zero ("3.35", "4800"). Throws InputError.
double parse_positive(std::string_view text, std::string_view what);

// "512MiB", "2GiB", "1500000000": bytes, with the binary or decimal suffixes KiB MiB GiB TiB, KB MB GB TB.
// Throws InputError.
std::int64_t parse_bytes(std::string_view text, std::string_view what);

// True where `text` is decimal digits without a leading zero (but "0" itself), a '-' allowed in front.
bool is_plain_integer(std::string_view text);
// The same with an optional fraction.
bool is_plain_decimal(std::string_view text);

}  // namespace memwall
