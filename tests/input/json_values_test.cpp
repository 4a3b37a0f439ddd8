// Values of a JSON tree as numbers, truth values and texts.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "input/json.h"
#include "tests/support.h"

namespace memwall::json {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::int64_t integer(const std::string& text) {
  const Document document = parse(text, "f");
  return as_integer(document.file, document.root, "n", {-kMost - 1, kMost});
}

TEST(JsonValues, IntegersMayBeWrittenAsFloats) {
  EXPECT_EQ(integer("4096"), 4096);
  EXPECT_EQ(integer("4096.0"), 4096);
  EXPECT_EQ(integer("2.8e9"), 2'800'000'000);
  EXPECT_EQ(integer("1e4"), 10'000);
  EXPECT_EQ(integer("1500e-2"), 15);
  EXPECT_EQ(integer("-0.0"), 0);
  EXPECT_EQ(to_integer("0e999999999999999999999"), 0);  // RapidJSON refuses it
  EXPECT_EQ(to_integer("1e999999999999999999999"), std::nullopt);
  EXPECT_EQ(integer("9223372036854775807"), kMost);
  EXPECT_EQ(integer("-9223372036854775808"), -kMost - 1);
  EXPECT_EQ(integer("9223372036854775807.00"), kMost);  // a double would not hold it
  for (const char* text : {"2.5", "1e-1", "15e-2", "9223372036854775808", "1e19", "NaN", "Infinity",
                           "1e-99999999999999999999"}) {
    EXPECT_THAT(error_of([&] { integer(text); }), HasSubstr(fmt::format(", not {}", text)));
  }
}

TEST(JsonValues, ValuesOfAnotherKindAreRefusedInPlace) {
  const Document document = parse(
      "{\"a\":\n \"x\\ny\", \"b\": 0, \"c\": true, \"d\": 2.5, \"e\": [], \"g\": null, \"h\": -Infinity}",
      "f");
  const auto at = [&](const char* key) -> const Value& { return *document.root.find(key); };
  EXPECT_EQ(error_of([&] {
              as_integer("f", at("a"), "size", {1, 9});
            }),
            "f:2:2: size must be a whole number, 1 to 9, not the text 'x\\x0ay'");
  EXPECT_EQ(error_of([&] {
              as_integer("f", at("b"), "size", {1, 9});
            }),
            "f:2:15: size must be a whole number, 1 to 9, not 0");
  EXPECT_THAT(error_of([&] { as_integer("f", at("c"), "size", {1, 9}); }), HasSubstr(", not true"));
  EXPECT_THAT(error_of([&] { as_number("f", at("e"), "scale"); }),
              HasSubstr("scale must be a number, not a list"));
  EXPECT_THAT(error_of([&] { as_bool("f", at("b"), "tie"); }), HasSubstr("tie must be true or false, not 0"));
  EXPECT_THAT(error_of([&] { as_text("f", at("g"), "type"); }), HasSubstr("type must be a text, not null"));
  EXPECT_THAT(error_of([&] { as_text("f", at("a"), "type"); }), HasSubstr("type must be one line"));
  EXPECT_EQ(as_number("f", at("d"), "scale"), 2.5);
  EXPECT_EQ(as_number("f", at("h"), "scale"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(as_bool("f", at("c"), "tie"));
}

TEST(JsonValues, NumbersPastADoublesRange) {
  const auto number = [](const char* text) { return as_number("f", parse(text, "f").root, "n"); };
  EXPECT_EQ(number("1.9e308"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(number("-1.9e308"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(number("1e-400"), 0);
  EXPECT_EQ(number("0.1"), 0.1);
  EXPECT_THAT(error_of([&] { number("NaN"); }), HasSubstr("n must be a number, not NaN"));
}

TEST(JsonValues, PrintableTextsAreShortAndPlain) {
  EXPECT_EQ(excerpt("a\x1b[1m\n\xc2\x9b\x7f"), "a\\x1b[1m\\x0a\\u009b\\x7f");
  EXPECT_EQ(excerpt(std::string(100, 'x')), std::string(80, 'x') + "...");
  EXPECT_EQ(excerpt(std::string(79, 'x') + "\xe4\xb8\xad!"), std::string(79, 'x') + "...");
  EXPECT_EQ(excerpt("\xc3\xa9"), "\xc3\xa9");
}

}  // namespace
}  // namespace memwall::json
