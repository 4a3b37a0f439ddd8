// Numbers as people write them on a command line, read strictly: whole decimal digits, nothing clamped,
// nothing guessed.
#pragma once

#include <cstdint>
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

// "1,2,4": one or more integers, none empty. Throws InputError.
std::vector<std::int64_t> parse_integer_list(std::string_view text, std::string_view what, Range range);

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
