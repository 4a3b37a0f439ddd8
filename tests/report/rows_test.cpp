#include "report/rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "report/json.h"

namespace memwall {
namespace {

TEST(Number, WholeNumbersAreIntegers) {
  EXPECT_EQ(number(0).dump(), "0");
  EXPECT_EQ(number(-0.0).dump(), "0");
  EXPECT_EQ(number(15'009'849'344).dump(), "15009849344");
  EXPECT_EQ(number(-3).dump(), "-3");
  EXPECT_EQ(number(9007199254740992.0).dump(), "9007199254740992");
  EXPECT_TRUE(number(9007199254740994.0).is_number_float());  // beyond 2^53 not every whole number is one
}

TEST(Number, FractionsStayAsTheyAre) {
  EXPECT_EQ(number(0.5).dump(), "0.5");
  EXPECT_EQ(number(206.125).get<double>(), 206.125);
}

TEST(Number, WhatJsonCannotSayIsNull) {
  EXPECT_TRUE(number(std::nan("")).is_null());
  EXPECT_TRUE(number(std::numeric_limits<double>::infinity()).is_null());
  EXPECT_TRUE(number(-std::numeric_limits<double>::infinity()).is_null());
}

TEST(Document, NamesItsSchemaAndItsCircumstances) {
  const Json json = document("estimate", {"1.2.3", "memwall estimate \"x\"", "2030-01-02T03:04:05Z"});
  EXPECT_EQ(
      json.dump(),
      R"({"schema":"memwall.estimate/1","memwall":{"version":"1.2.3","command":"memwall estimate \"x\"",)"
      R"("time":"2030-01-02T03:04:05Z"}})");
}

TEST(Circumstances, OfNow) {
  const Circumstances now = circumstances_now({"memwall", "models"});
  EXPECT_EQ(now.command, "memwall models");
  EXPECT_FALSE(now.version.empty());
  ASSERT_EQ(now.time.size(), 20U);
  EXPECT_EQ(now.time[10], 'T');
  EXPECT_EQ(now.time.back(), 'Z');
}

TEST(NumberRanges, JoinsNeighbours) {
  EXPECT_EQ(number_ranges({}), "");
  EXPECT_EQ(number_ranges({7}), "7");
  EXPECT_EQ(number_ranges({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(number_ranges({0, 2, 4}), "0,2,4");
  EXPECT_EQ(number_ranges({0, 1}), "0-1");
}

TEST(Flatten, NamesNestedValuesByDottedKeysInOrder) {
  const Json flat = flatten(Json::parse(R"({"a":1,"b":{"c":{"d":true},"e":null},"f":"text"})"));
  EXPECT_EQ(flat.dump(), R"({"a":1,"b.c.d":true,"b.e":null,"f":"text"})");
}

TEST(Flatten, ArraysByWhatTheyHold) {
  const Json flat = flatten(Json::parse(
      R"({"layers":[0,1,2,5],"ci95_us":[12,13],"names":["a","b"],"mixed":[1,"x",0.5],"ops":[{"n":1}],"none":[]})"));
  EXPECT_EQ(flat.dump(), R"({"layers":"0-2,5","ci95_us":"12;13","names":"a;b","mixed":"1;x;0.5","none":""})");
}

TEST(Csv, ColumnsAreTheUnionInOrderOfAppearance) {
  const std::vector<Json> rows = {Json::parse(R"({"a":1,"c":2})"), Json::parse(R"({"b":3,"a":4})")};
  EXPECT_EQ(to_csv(rows), "a,c,b\n1,2,\n4,,3\n");
}

TEST(Csv, QuotesAsRfc4180Says) {
  const std::vector<Json> rows = {
      {{"comma", "a,b"}, {"quote", "say \"x\""}, {"line", "a\nb"}, {"return", "a\rb"}, {"plain", "a b;c"}}};
  EXPECT_EQ(to_csv(rows), "comma,quote,line,return,plain\n\"a,b\",\"say \"\"x\"\"\",a\\x0ab,a\\x0db,a b;c\n");
}

TEST(Csv, ValuesOfEveryKind) {
  const std::vector<Json> rows = {
      {{"i", 15009849344}, {"d", 206.125}, {"t", 0.1}, {"b", true}, {"n", nullptr}}};
  EXPECT_EQ(to_csv(rows), "i,d,t,b,n\n15009849344,206.125,0.1,true,\n");
}

TEST(Csv, NoRowsAreAnEmptyHeader) { EXPECT_EQ(to_csv({}), "\n"); }

TEST(Markdown, AlignsNumbersRightAndEscapes) {
  const std::vector<Json> rows = {{{"name", "a|b"}, {"n", 1}}, {{"name", "c\nd"}, {"n", nullptr}}};
  EXPECT_EQ(to_markdown(rows),
            "| name | n |\n"
            "| --- | ---: |\n"
            "| a\\|b | 1 |\n"
            "| c\\x0ad |  |\n");  // a row is a line
}

TEST(Markdown, AColumnOfTextAndNumbersIsText) {
  const std::vector<Json> rows = {{{"x", 1}}, {{"x", "one"}}};
  EXPECT_EQ(to_markdown(rows), "| x |\n| --- |\n| 1 |\n| one |\n");
}

}  // namespace
}  // namespace memwall
