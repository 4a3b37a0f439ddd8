#include "report/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace memwall {
namespace {

const Style kPlain{.colour = false};
const Style kColour{.colour = true};

TEST(Table, GivesUpABlankBetweenColumnsWhereItWouldPass100) {
  Table table({{"a", Align::left}, {"b", Align::left}, {"c", Align::left}});
  table.row({std::string(33, 'x'), std::string(33, 'y'), std::string(32, 'z')});  // 98 and two gaps
  const std::string text = table.render({});
  EXPECT_NE(text.find("x y"), std::string::npos);
  EXPECT_EQ(display_width(text.substr(text.rfind('x') - 32, 100)), 100U);
}

TEST(Table, AlignsColumnsTwoBlanksApartWithoutTrailingBlanks) {
  Table table({{"op", Align::left}, {"count"}, {"bound", Align::left}});
  table.row({"q_proj", "32", "memory"});
  table.row({"o", "1", "x"});
  EXPECT_EQ(table.render(kPlain),
            "op      count  bound\n"
            "─────────────────────\n"
            "q_proj     32  memory\n"
            "o           1  x\n");
}

TEST(Table, AnEmptyCellLeavesItsColumnBlank) {
  Table table({{"a", Align::left}, {"b"}, {"c", Align::left}});
  table.row({"1", "", "3"});
  table.row({"", "22", ""});
  table.row({"", "", ""});
  EXPECT_EQ(table.render(kPlain),
            "a   b  c\n"
            "────────\n"
            "1      3\n"
            "   22\n"
            "\n");
}

TEST(Table, ARowMayEndEarly) {
  Table table({{"a"}, {"b"}});
  table.row({"1"});
  EXPECT_EQ(table.render(kPlain), "a  b\n────\n1\n");
}

TEST(Table, ARuleStandsBeforeTheNextRow) {
  Table table({{"a"}});
  table.row({"1"});
  table.rule();
  table.row({"2"});
  EXPECT_EQ(table.render(kPlain), "a\n─\n1\n─\n2\n");
}

TEST(Table, CountsCodePointsNotBytes) {
  Table table({{"shape"}, {"next"}});
  table.row({"4×8", "1"});
  table.row({"64×128", "2"});
  EXPECT_EQ(table.render(kPlain),
            " shape  next\n"
            "────────────\n"
            "   4×8     1\n"
            "64×128     2\n");
}

TEST(Table, ColourChangesNoWidth) {
  Table table({{"op", Align::left}, {"bound"}});
  table.row({"q_proj", {"memory", Tone::warn}});
  table.row({"o", {"x", Tone::bad}});
  const std::string plain = table.render(kPlain);
  std::string colourless = table.render(kColour);
  EXPECT_NE(colourless, plain);
  for (std::size_t at = 0; (at = colourless.find('\x1b')) != std::string::npos;) {
    colourless.erase(at, colourless.find('m', at) + 1 - at);
  }
  EXPECT_EQ(colourless, plain);
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
}

TEST(Style, DressesOnATerminalOnly) {
  for (const Tone tone : {Tone::plain, Tone::bold, Tone::dim, Tone::good, Tone::warn, Tone::bad}) {
    EXPECT_EQ(kPlain.apply(tone, "text"), "text");
    EXPECT_EQ(kColour.apply(tone, ""), "");
  }
  EXPECT_EQ(kColour.apply(Tone::plain, "text"), "text");
  EXPECT_EQ(kColour.apply(Tone::bold, "text"), "\x1b[1mtext\x1b[0m");
  EXPECT_EQ(kColour.apply(Tone::bad, "text"), "\x1b[31mtext\x1b[0m");
}

TEST(DisplayWidth, IsCodePoints) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("4×8"), 3U);
  EXPECT_EQ(display_width("–─×"), 3U);
}

TEST(Significant, DigitsNotDecimals) {
  EXPECT_EQ(significant(0, 4), "0");
  EXPECT_EQ(significant(316.9531, 5), "316.95");
  EXPECT_EQ(significant(1.0131, 4), "1.013");
  EXPECT_EQ(significant(0.00123456, 3), "0.00123");
  EXPECT_EQ(significant(123456, 3), "123456");  // never in exponents, no digit lost before the point
  EXPECT_EQ(significant(-2.5, 2), "-2.5");
  EXPECT_EQ(significant(1, 1), "1");
  EXPECT_EQ(significant(1e-7, 2), "0.00000010");
}

TEST(Significant, RoundingUpToTheNextMagnitudeAddsNoDigit) {
  EXPECT_EQ(significant(9.9996, 4), "10.00");
  EXPECT_EQ(significant(99.96, 3), "100");
  EXPECT_EQ(significant(0.99996, 4), "1.000");
  EXPECT_EQ(significant(9.9994, 4), "9.999");
}

TEST(Significant, WhatIsNoNumberIsADash) {
  EXPECT_EQ(significant(std::numeric_limits<double>::infinity(), 3), "–");
  EXPECT_EQ(significant(std::nan(""), 3), "–");
}

TEST(HumanBytes, TakesADecimalPrefix) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1), "1 B");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(999.5), "999.5 B");
  EXPECT_EQ(human_bytes(1000), "1.000 kB");
  EXPECT_EQ(human_bytes(131072), "131.1 kB");
  EXPECT_EQ(human_bytes(999'949), "999.9 kB");
  EXPECT_EQ(human_bytes(999'950), "1.000 MB");  // not 1000 kB
  EXPECT_EQ(human_bytes(15'009'849'344), "15.01 GB");
  EXPECT_EQ(human_bytes(2e12), "2.000 TB");
  EXPECT_EQ(human_bytes(3e15), "3.000 PB");
  EXPECT_EQ(human_bytes(4e18), "4000 PB");
}

TEST(HumanFlops, TakesADecimalPrefix) {
  EXPECT_EQ(human_flops(0), "0 FLOP");
  EXPECT_EQ(human_flops(15'550'300'160), "15.55 GFLOP");
  EXPECT_EQ(human_flops(1e15), "1.000 PFLOP");
}

TEST(HumanGib, IsBinary) {
  EXPECT_EQ(human_gib(0), "0 GiB");
  EXPECT_EQ(human_gib(1024.0 * 1024 * 1024), "1.00 GiB");
  EXPECT_EQ(human_gib(141 * 1024.0 * 1024 * 1024), "141 GiB");
  EXPECT_EQ(human_gib(16'060'522'496), "15.0 GiB");
}

TEST(HumanTime, PicksItsUnit) {
  EXPECT_EQ(human_time(3.155e-3), "3.155 ms");
  EXPECT_EQ(human_time(12.4e-6), "12.40 us");
  EXPECT_EQ(human_time(999.4e-6), "999.4 us");
  EXPECT_EQ(human_time(1e-3), "1.000 ms");
  EXPECT_EQ(human_time(1), "1.000 s");
  EXPECT_EQ(human_time(0.99996), "1.000 s");
  EXPECT_EQ(human_time(3661.4), "3661 s");
  EXPECT_EQ(human_time(25e-9), "25.00 ns");
}

TEST(Thousands, SeparatesByCommas) {
  EXPECT_EQ(thousands(0), "0");
  EXPECT_EQ(thousands(999), "999");
  EXPECT_EQ(thousands(1000), "1,000");
  EXPECT_EQ(thousands(8'030'261'248), "8,030,261,248");
  EXPECT_EQ(thousands(-999), "-999");
  EXPECT_EQ(thousands(-1'234'567), "-1,234,567");
}

}  // namespace
}  // namespace memwall
