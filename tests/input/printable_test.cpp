#include "input/printable.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace memwall {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "llama-3.1-8b", "a \\ b", "4096×14336 …", "模型 日本語", "ü", "🙂"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_FALSE(has_unprintable(text)) << text;
  }
}

TEST(Printable, WritesOutWhatATerminalWouldActOn) {
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"a\nb", "a\\x0ab"},
      {"a\tb\r", "a\\x09b\\x0d"},
      {"\033[31mred", "\\x1b[31mred"},
      {std::string("\0", 1), "\\x00"},
      {"\x7f", "\\x7f"},
      {"\xc2\x9b"
       "31m",
       "\\u009b31m"},  // C1: CSI
      {"\xe2\x80\xae"
       "fdp",
       "\\u202efdp"},  // right-to-left override
      {"\xe2\x80\x8e\xe2\x80\x8f", "\\u200e\\u200f"},
      {"\xe2\x81\xa6\xe2\x81\xa9", "\\u2066\\u2069"},
      {"\xd8\x9c", "\\u061c"},
      {"\xe2\x80\x8b\xef\xbb\xbf", "\\u200b\\ufeff"},  // zero-width space, byte order mark
      {"\xe2\x80\xa8", "\\u2028"},
      {"\xf3\xa0\x81\x81", "\\ue0041"},  // a tag character
  };
  for (const auto& [text, shown] : cases) {
    EXPECT_EQ(printable(text), shown);
    EXPECT_EQ(printable(printable(text)), shown);
    EXPECT_TRUE(has_unprintable(text)) << shown;
  }
}

TEST(Printable, WritesOutBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("a\xff"
                      "b"),
            "a\\xffb");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                    // cut
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\x80ok"), "\\x80ok");
}

TEST(Printable, LinesAndColoursStayWhereTheyAreOurs) {
  EXPECT_EQ(printable_lines("a\nb\x1b\n"), "a\nb\\x1b\n");
  EXPECT_EQ(printable_lines("\x1b[1mbold\x1b[0m"), "\\x1b[1mbold\\x1b[0m");
  EXPECT_EQ(printable_lines("\x1b[1mbold\x1b[0m\x1b[2J", true), "\x1b[1mbold\x1b[0m\\x1b[2J");
}

TEST(Printable, JsonKeepsItsMeaning) {
  EXPECT_EQ(printable_json("{\n  \"a\": \"\xe2\x80\xae\x7f\xc2\x9b×\"\n}"),
            "{\n  \"a\": \"\\u202e\\u007f\\u009b×\"\n}");
  EXPECT_EQ(printable_json("\"\xf3\xa0\x81\x81\""), "\"\\udb40\\udc41\"");
}

TEST(Excerpt, CutsAtACharacter) {
  EXPECT_EQ(excerpt("short"), "short");
  EXPECT_EQ(excerpt(std::string(80, 'x')), std::string(80, 'x'));
  EXPECT_EQ(excerpt(std::string(81, 'x')), std::string(80, 'x') + "...");
  EXPECT_EQ(excerpt("üüü", 5), "üü...");
  EXPECT_EQ(excerpt("ab\x1b", 5), "ab...");
  EXPECT_EQ(excerpt(std::string(1'000'000, '\n')).size(), 80U + 3);
}

}  // namespace
}  // namespace memwall
