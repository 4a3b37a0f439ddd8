#include "input/numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "input/error.h"

namespace memwall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Range kSmall{1, 1000};
constexpr Range kAny{INT64_MIN, INT64_MAX};

template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError was thrown";
}

std::string integer_error(std::string_view text, Range range = kSmall) {
  return error_of([&] { parse_integer(text, "--batch", range); });
}

std::string list_error(std::string_view text) {
  return error_of([&] { parse_integer_list(text, "--batch", kSmall); });
}

TEST(ParseInteger, ReadsPlainDigitsWithinTheRange) {
  EXPECT_EQ(parse_integer("1", "n", kSmall), 1);
  EXPECT_EQ(parse_integer("1000", "n", kSmall), 1000);
  EXPECT_EQ(parse_integer("0", "n", {0, 5}), 0);
  EXPECT_EQ(parse_integer("-7", "n", {-9, 9}), -7);
  EXPECT_EQ(parse_integer("9223372036854775807", "n", kAny), INT64_MAX);
  EXPECT_EQ(parse_integer("-9223372036854775808", "n", kAny), INT64_MIN);
}

TEST(ParseInteger, RefusesWhatIsNotPlainDigits) {
  for (const char* text : {"", "-", "+1", " 1", "1 ", "1\n", "010", "00", "-01", "0x10", "1e3", "1.0", "1,2",
                           "--1", "1_000", "one", "\xd9\xa1"}) {
    EXPECT_EQ(integer_error(text, kAny), std::string("--batch: '") + text +
                                             "' is not a whole number; write plain digits, "
                                             "-9223372036854775808 to 9223372036854775807");
  }
}

TEST(ParseInteger, RefusesWhatIsOutOfRangeAndClampsNothing) {
  EXPECT_EQ(integer_error("0"), "--batch: 0 is out of range; it must be 1 to 1000");
  EXPECT_EQ(integer_error("1001"), "--batch: 1001 is out of range; it must be 1 to 1000");
  EXPECT_EQ(integer_error("-1"), "--batch: -1 is out of range; it must be 1 to 1000");
  EXPECT_EQ(integer_error("100000000000000000000"),
            "--batch: 100000000000000000000 is out of range; it must be 1 to 1000");
  EXPECT_THAT(integer_error("9223372036854775808", kAny), HasSubstr("9223372036854775808 is out of range"));
  EXPECT_THAT(integer_error(std::string(100'000, '9'), kAny), HasSubstr("is out of range"));
}

TEST(ParseIntegerList, ReadsItemsInTheOrderGiven) {
  EXPECT_THAT(parse_integer_list("8", "n", kSmall), ElementsAre(8));
  EXPECT_THAT(parse_integer_list("4,1,1000,4", "n", kSmall), ElementsAre(4, 1, 1000));
}

TEST(ParseIntegerList, RefusesEmptyItems) {
  for (const char* text : {"", ",", "1,,2", ",1", "1,"}) {
    EXPECT_EQ(list_error(text),
              "--batch: an item of the list is empty; write numbers with one comma between, like 1,2,4")
        << text;
  }
}

TEST(ParseIntegerList, RefusesABadItemByItself) {
  EXPECT_THAT(list_error("1,010"), HasSubstr("'010' is not a whole number"));
  EXPECT_THAT(list_error("1, 2"), HasSubstr("' 2' is not a whole number"));
  EXPECT_THAT(list_error("1,+2"), HasSubstr("'+2' is not a whole number"));
  EXPECT_THAT(list_error("1e3,2"), HasSubstr("'1e3' is not a whole number"));
  EXPECT_THAT(list_error("1;2"), HasSubstr("'1;2' is not a whole number"));
  EXPECT_THAT(list_error("1,0"), HasSubstr("0 is out of range"));
  EXPECT_THAT(list_error("1,-1"), HasSubstr("-1 is out of range"));
  EXPECT_THAT(list_error("1,100000000000000000000"), HasSubstr("100000000000000000000 is out of range"));
}

TEST(ParseIntegerList, HoldsTenThousandValuesAndNoMore) {
  std::string text = "1";
  for (int i = 1; i < 10'000; ++i) text += ",1";
  EXPECT_THAT(parse_integer_list(text, "n", kSmall), ElementsAre(1));
  EXPECT_EQ(list_error(text + ",1"), "--batch: 10001 values; a list has at most 10000");
  EXPECT_EQ(list_error("1-1000," + text), "--batch: over 10000 values; a list has at most 10000");
  constexpr Range kLong{1, 1'000'000'000};
  EXPECT_EQ(parse_integer_list("1-10000", "n", kLong).size(), 10'000U);
  EXPECT_EQ(error_of([&] { parse_integer_list("1-1000000000", "-c", kLong); }),
            "-c: 1000000000 values; a list has at most 10000");
}

TEST(ParseIntegerList, SaysWhichValueIsRepeated) {
  std::optional<std::int64_t> repeated;
  EXPECT_THAT(parse_integer_list("1,2,4", "n", kSmall, &repeated), ElementsAre(1, 2, 4));
  EXPECT_FALSE(repeated.has_value());
  EXPECT_THAT(parse_integer_list("8,1-3,2,8", "n", kSmall, &repeated), ElementsAre(8, 1, 2, 3));
  EXPECT_EQ(repeated, 2);
}

TEST(ParseIntegerList, ReadsRangesAsLlamaBenchDoes) {
  EXPECT_THAT(parse_integer_list("1-4", "n", kSmall), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(parse_integer_list("7-7", "n", kSmall), ElementsAre(7));
  EXPECT_THAT(parse_integer_list("1-10+4", "n", kSmall), ElementsAre(1, 5, 9));
  EXPECT_THAT(parse_integer_list("1-64*2", "n", kSmall), ElementsAre(1, 2, 4, 8, 16, 32, 64));
  EXPECT_THAT(parse_integer_list("3-100*3,500", "n", kSmall), ElementsAre(3, 9, 27, 81, 500));
  EXPECT_THAT(parse_integer_list("1k-4k*2", "n", {1, 1 << 20}), ElementsAre(1024, 2048, 4096));
  EXPECT_THAT(parse_integer_list("9223372036854775806-9223372036854775807*2", "n", kAny),
              ElementsAre(9223372036854775806));
  EXPECT_THAT(list_error("4-1"), HasSubstr("the range '4-1' runs downwards"));
  EXPECT_THAT(list_error("1-4*1"), HasSubstr("the range '1-4*1' never ends"));
  EXPECT_THAT(error_of([] { parse_integer_list("0-4*2", "n", {0, 9}); }), HasSubstr("never ends"));
  for (const char* text :
       {"1-", "1-4+", "1-4*", "1-4+0", "1-4+2+2", "1--4", "-1-4", "1-4-8", "1-x", "1-4*-2"})
    EXPECT_NE(list_error(text), "no InputError was thrown") << text;
  EXPECT_THAT(list_error("1-2000"), HasSubstr("2000 is out of range"));
}

TEST(ParseCount, TakesKAsContextsAreWritten) {
  constexpr Range kLong{1, 1'000'000'000};
  EXPECT_EQ(parse_count("8k", "n", kLong), 8192);
  EXPECT_EQ(parse_count("128K", "n", kLong), 131072);
  EXPECT_EQ(parse_count("1M", "n", kLong), 1048576);
  EXPECT_EQ(parse_count("512", "n", kLong), 512);
  EXPECT_THAT(error_of([&] { parse_count("1000000k", "--context", kLong); }),
              HasSubstr("--context: 1000000k is out of range; it must be 1 to 1000000000"));
  EXPECT_THAT(error_of([&] { parse_count("9223372036854775807k", "n", kLong); }),
              HasSubstr("is out of range"));
  for (const char* text : {"k", "8kk", "8 k", "08k", "1.5k", "8kb", ""})
    EXPECT_THAT(error_of([&] { parse_count(text, "n", kLong); }), HasSubstr("is not a whole number")) << text;
}

TEST(ParsePositive, ReadsPlainDecimals) {
  EXPECT_DOUBLE_EQ(parse_positive("4800", "n"), 4800);
  EXPECT_DOUBLE_EQ(parse_positive("3.35", "n"), 3.35);
  EXPECT_DOUBLE_EQ(parse_positive("0.001", "n"), 0.001);
}

TEST(ParsePositive, RefusesEverythingElse) {
  for (const char* text : {"", "0", "0.0", "-1", "-0.5", "+1", " 1", "1 ", ".5", "1.", "1.2.3", "1e3", "01.5",
                           "0x1p3", "nan", "inf", "1,5"}) {
    EXPECT_EQ(error_of([&] { parse_positive(text, "--slo"); }),
              std::string("--slo: '") + text + "' is not a number above zero");
  }
  EXPECT_THAT(error_of([] { parse_positive(std::string(400, '9'), "--slo"); }),
              HasSubstr("is not a number above zero"));
}

TEST(ParseBytes, ReadsBytesAndBothKindsOfSuffix) {
  EXPECT_EQ(parse_bytes("1", "n"), 1);
  EXPECT_EQ(parse_bytes("1500000000", "n"), 1'500'000'000);
  EXPECT_EQ(parse_bytes("3KiB", "n"), 3'072);
  EXPECT_EQ(parse_bytes("512MiB", "n"), 536'870'912);
  EXPECT_EQ(parse_bytes("2GiB", "n"), 2'147'483'648);
  EXPECT_EQ(parse_bytes("1.5GiB", "n"), 1'610'612'736);
  EXPECT_EQ(parse_bytes("1TiB", "n"), 1'099'511'627'776);
  EXPECT_EQ(parse_bytes("3KB", "n"), 3'000);
  EXPECT_EQ(parse_bytes("3MB", "n"), 3'000'000);
  EXPECT_EQ(parse_bytes("3GB", "n"), 3'000'000'000);
  EXPECT_EQ(parse_bytes("3TB", "n"), 3'000'000'000'000);
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text :
       {"", "0", "0GiB", "-1", "-1GiB", "GiB", "2G", "2gib", "2 GiB", " 2GiB", "2GiB ", "02GiB", "1e9",
        "0x10", "0.5", "2GiBGiB", "4611686018427387904", "4194304TiB", "100000000000000000000"}) {
    EXPECT_EQ(error_of([&] { parse_bytes(text, "--buffer"); }),
              std::string("--buffer: '") + text +
                  "' is not a size; write bytes or a number with MiB or GiB, like 2GiB");
  }
}

TEST(PlainNumbers, AreDecimalDigitsWithoutALeadingZero) {
  EXPECT_TRUE(is_plain_integer("0"));
  EXPECT_TRUE(is_plain_integer("-10"));
  EXPECT_FALSE(is_plain_integer("-"));
  EXPECT_FALSE(is_plain_integer("010"));
  EXPECT_TRUE(is_plain_decimal("10"));
  EXPECT_TRUE(is_plain_decimal("0.50"));
  EXPECT_FALSE(is_plain_decimal("00.5"));
  EXPECT_FALSE(is_plain_decimal("1."));
  EXPECT_FALSE(is_plain_decimal("."));
}

}  // namespace
}  // namespace memwall
