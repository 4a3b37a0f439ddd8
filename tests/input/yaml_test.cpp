#include "input/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "input/error.h"
#include "tests/support.h"

namespace memwall::yaml {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

std::string parse_error(const std::string& text) {
  return error_of([&] { parse(text, "f.yaml"); });
}

std::string repeated(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(YamlParse, KeepsKindsOrderQuotesAndPositions) {
  const Node root = parse("b: 1\n'a': [x, \"4\"]\n\nc:\n  d: ~\n", "f.yaml");
  ASSERT_EQ(root.kind, Kind::mapping);
  ASSERT_EQ(root.entries.size(), 3U);
  EXPECT_EQ(root.entries[0].first.text, "b");
  EXPECT_EQ(root.entries[1].first.text, "a");
  const Node& list = root.entries[1].second;
  ASSERT_EQ(list.kind, Kind::sequence);
  ASSERT_EQ(list.items.size(), 2U);
  EXPECT_FALSE(list.items[0].quoted);
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(list.items[1].text, "4");
  EXPECT_EQ(list.items[1].line, 2);
  EXPECT_EQ(list.items[1].column, 10);
  const Node* c = root.find("c");
  ASSERT_NE(c, nullptr);
  ASSERT_NE(c->find("d"), nullptr);
  EXPECT_EQ(c->find("d")->kind, Kind::null);
  EXPECT_EQ(c->find("d")->line, 5);
  EXPECT_EQ(c->find("d")->column, 3);  // where its key stands
  EXPECT_EQ(c->find("b"), nullptr);
  EXPECT_EQ(*root.file, "f.yaml");
}

// yaml-cpp takes a quote that the file ends for one that ends there, and lets a text in quotes pass over
// lines: either hides the keys behind a forgotten quotation mark.
TEST(YamlParse, RefusesQuotesWithoutAnEnd) {
  constexpr const char* kMessage = "a quote without an end; a text in quotes ends with";
  for (const char* text :
       {"a: 1\nb: \"x\nc: 2\n", "a: 1\nb: 'x\nc: 2\n", "a: 1\nb: \"x\nc: \"\n", "a: 1\nb: 'it''s\nc: 2\n",
        "a: 1\nb: \"x\\\"\nc: 2\n", "a: 1\nb: \"x\r\nc: 2\r\n", "a: 1\nb: [x, \"y]\nc: 2\n",
        "\xef\xbb\xbf"
        "a: 1\nb: \"x\nc: 2\n",
        "a: 1\n'b: x\nc: 2\n", "a: 1\nb: \"\n"}) {
    const std::string message = parse_error(text);
    EXPECT_THAT(message, StartsWith("f.yaml:2:")) << text;
    EXPECT_THAT(message, HasSubstr(kMessage)) << text;
  }
  EXPECT_THAT(parse_error("a: 1\nb: \"x\nc: 2\n"), StartsWith("f.yaml:2:4: "));
  EXPECT_THAT(parse_error("a: 1\nb: [x, \"y]\nc: 2\n"), StartsWith("f.yaml:2:8: "));
}

TEST(YamlParse, ReadsQuotesThatEnd) {
  const Node root = parse(
      "\xef\xbb\xbf"
      "a: 'it''s'\nb: \"say \\\"x\\\"\"\nc: it's \"fine\"\nd: ''\ne: \"\\\\\"\n\"f: g\": >-\n  \"x\nh: "
      "\xc3\xa4 # \"y\n",
      "f");
  EXPECT_EQ(root.find("a")->text, "it's");
  EXPECT_EQ(root.find("b")->text, "say \"x\"");
  EXPECT_EQ(root.find("c")->text, "it's \"fine\"");
  EXPECT_EQ(root.find("d")->text, "");
  EXPECT_EQ(root.find("e")->text, "\\");
  EXPECT_NE(root.find("f: g"), nullptr);
  EXPECT_NE(root.find("h"), nullptr);
}

TEST(YamlParse, RefusesTags) {
  EXPECT_THAT(parse_error("a: !!int \"4\"\n"), HasSubstr("f.yaml:1:4: tags are not read here"));
}

TEST(YamlParse, ReadsByteOrderMarksCarriageReturnsAndMarkers) {
  EXPECT_EQ(parse("\xef\xbb\xbf"
                  "a: 1\n",
                  "f")
                .find("a")
                ->text,
            "1");
  EXPECT_EQ(parse("a: 1\r\nb: 2\r\n", "f").find("b")->text, "2");
  EXPECT_EQ(parse("%YAML 1.2\n---\na: 1\n...\n", "f").find("a")->text, "1");
  EXPECT_EQ(parse("a: 'null'", "f").find("a")->kind, Kind::scalar);
  EXPECT_EQ(parse("a: \xc3\xa9\xe2\x80\x94", "f").find("a")->text, "\xc3\xa9\xe2\x80\x94");
}

TEST(YamlParse, RefusesTabs) {
  EXPECT_EQ(parse_error("a:\n\tb: 1\n"), "f.yaml:2:1: a tab; YAML is indented with spaces");
  EXPECT_EQ(parse_error("a: 1\nb:\t2\n"), "f.yaml:2:3: a tab; YAML is indented with spaces");
  EXPECT_EQ(parse_error("a: 1  #\tnote\n"), "f.yaml:1:8: a tab; YAML is indented with spaces");
}

TEST(YamlParse, RefusesDuplicateKeys) {
  EXPECT_EQ(parse_error("a: 1\nb: 2\na: 3\n"), "f.yaml:3:1: duplicate key 'a', first given on line 1");
  EXPECT_EQ(parse_error("x: 0\ny:\n  a: 1\n  'a': 2\n"),
            "f.yaml:4:3: duplicate key 'a', first given on line 3");
  EXPECT_EQ(parse_error("{a: 1, b: 2, a: 3}"), "f.yaml:1:14: duplicate key 'a', first given on line 1");
  EXPECT_EQ(parse("a: {a: {a: 1}}", "f").entries.size(), 1U);
}

TEST(YamlParse, FindsADuplicateAmongVeryManyKeys) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "k" + std::to_string(i) + ":\n";
  EXPECT_EQ(parse(text, "f").entries.size(), 100'000U);
  EXPECT_EQ(parse_error(text + "k7:\n"), "f.yaml:100001:1: duplicate key 'k7', first given on line 8");
}

TEST(YamlParse, RefusesASecondDocument) {
  EXPECT_EQ(parse_error("a: 1\n---\nb: 2\n"), "f.yaml:3:1: a second document; a file holds one");
  EXPECT_EQ(parse_error("a: 1\n...\nb: 2\n"), "f.yaml:3:1: a second document; a file holds one");
  EXPECT_EQ(parse_error("---\na: 1\n---\n"), "f.yaml:4:1: a second document; a file holds one");
}

TEST(YamlParse, RefusesAnchorsAndAliases) {
  const std::string refusal = "anchors and aliases are not read here; write the value out";
  EXPECT_EQ(parse_error("a: &x 1\n"), "f.yaml:1:4: " + refusal);
  EXPECT_EQ(parse_error("a: 1\nb: &x\n  c: 1\n"), "f.yaml:2:4: " + refusal);
  EXPECT_EQ(parse_error("a: [1, &x [2]]\n"), "f.yaml:1:8: " + refusal);
  EXPECT_EQ(parse_error("&x a: 1\n"), "f.yaml:1:1: " + refusal);
  EXPECT_EQ(parse_error("a: *x\n"), "f.yaml:1:4: not valid YAML: the referenced anchor is not defined");
}

TEST(YamlParse, RefusesAnAliasBombAtItsFirstAnchor) {
  std::string bomb = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb +=
        "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeated(last + ", ", 8) + last + "]\n";
  }
  EXPECT_THAT(parse_error(bomb), StartsWith("f.yaml:1:5: anchors and aliases are not read here"));
}

TEST(YamlParse, RefusesDocumentsWithoutContent) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "\xef\xbb\xbf"}) {
    EXPECT_EQ(parse_error(text), "f.yaml:1:1: the document is empty") << text;
  }
}

TEST(YamlParse, RefusesControlCharacters) {
  EXPECT_EQ(parse_error(std::string("a: 1\nb: x\0y\n", 12)),
            "f.yaml:2:5: a control character (0x00); this is no text file");
  EXPECT_EQ(parse_error("a: \x1b[31m\n"), "f.yaml:1:4: a control character (0x1b); this is no text file");
}

TEST(YamlParse, RefusesControlCharactersAndLineBreaksWrittenAsEscapes) {
  const std::string refusal = "text must be one line, without control characters";
  EXPECT_EQ(parse_error("a: \"x\\ny\"\n"), "f.yaml:1:4: " + refusal);
  EXPECT_EQ(parse_error("a: 1\nb: \"\\e[31m\"\n"), "f.yaml:2:4: " + refusal);
  EXPECT_EQ(parse_error("a: \"\\0\"\n"), "f.yaml:1:4: " + refusal);
  EXPECT_EQ(parse_error("a: \"\\t\"\n"), "f.yaml:1:4: " + refusal);
  EXPECT_EQ(parse_error("\"x\\ny\": 1\n"), "f.yaml:1:1: " + refusal);
  EXPECT_EQ(parse_error("a: |\n  x\n  y\n"), "f.yaml:1:4: " + refusal);
  EXPECT_EQ(parse_error("a: \x7f\n"), "f.yaml:1:4: " + refusal);
  EXPECT_EQ(parse_error("a: \xc2\x9b"
                        "31m\n"),
            "f.yaml:1:4: " + refusal);
  EXPECT_EQ(parse("a: \xc2\xa0x\n", "f").find("a")->text, "\xc2\xa0x");
  EXPECT_EQ(parse("a: >-\n  x\n  y\n", "f").find("a")->text, "x y");
}

TEST(YamlParse, RefusesBinaryFiles) {
  EXPECT_EQ(parse_error(std::string("\x7f"
                                    "ELF\x02\x01\x01\x00",
                                    8)),
            "f.yaml:1:5: a control character (0x02); this is no text file");
  EXPECT_EQ(parse_error(std::string("GGUF\x03\0\0\0", 8)),
            "f.yaml:1:5: a control character (0x03); this is no text file");
  EXPECT_EQ(parse_error(std::string("\x1f\x8b\x08\0", 4)),
            "f.yaml:1:1: a control character (0x1f); this is no text file");
  EXPECT_EQ(parse_error(std::string("\xff\xfe"
                                    "a\0:\0 \0"
                                    "1\0",
                                    10)),
            "f.yaml:1:4: a control character (0x00); this is no text file");
}

TEST(YamlParse, ReadsOrRefusesRandomBytesButNeverCrashes) {
  std::uint64_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      // Half of it YAML's own characters, to get past the first one.
      const auto pick = static_cast<unsigned>(state >> 40);
      constexpr std::string_view kSpecial = "{}[],:- \n'\"#&*!|>%@`?a1";
      text +=
          pick % 2 == 0 ? kSpecial[(pick / 2) % kSpecial.size()] : static_cast<char>(32 + (pick / 2) % 224);
    }
    try {
      parse(text, "f.yaml");
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), StartsWith("f.yaml:")) << text;
    }
  }
}

TEST(YamlParse, RefusesDeepNesting) {
  EXPECT_EQ(parse_error(repeated("[", 64) + repeated("]", 64)), "no InputError was thrown");
  EXPECT_EQ(parse_error(repeated("[", 65) + repeated("]", 65)), "f.yaml:1:65: nested deeper than 64 levels");
  EXPECT_THAT(parse_error(repeated("[", 10'000)),
              MatchesRegex("f.yaml:1:[0-9]+: nested deeper than 64 levels"));
  EXPECT_THAT(parse_error("a: " + repeated("[", 10'000) + repeated("]", 10'000)),
              HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(parse_error(repeated("{a: ", 10'000)), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(parse_error(repeated("- ", 10'000) + "1"),
              HasSubstr("f.yaml:1:129: nested deeper than 64 levels"));
  EXPECT_THAT(parse_error(repeated("? ", 10'000)), HasSubstr("nested deeper than 64 levels"));
}

TEST(YamlParse, RefusesWhatIsNoYaml) {
  EXPECT_EQ(parse_error("a: [1, 2\n"), "f.yaml:2:1: not valid YAML: end of sequence flow not found");
  EXPECT_EQ(parse_error("a: 1\n  b: 2\n"), "f.yaml:2:4: not valid YAML: illegal map value");
  EXPECT_EQ(parse_error("@: 1\n"), "f.yaml:1:1: not valid YAML: unknown token");
  EXPECT_THAT(parse_error("%YAML 9\n---\na: 1\n"),
              StartsWith("f.yaml:1:1: not valid YAML: bad YAML version"));
}

TEST(YamlParse, RefusesKeysThatAreNoWords) {
  EXPECT_EQ(parse_error("? [a]\n: 1\n"), "f.yaml:1:3: a key must be a word");
  EXPECT_EQ(parse_error("a: 1\n: 2\n"), "f.yaml:2:1: a key must be a word");
  EXPECT_EQ(parse_error("~: 2\n"), "f.yaml:1:1: a key must be a word");
}

// Values

std::string integer_error(const std::string& value) {
  return error_of([&] {
    const Node root = parse("a: 1\nn: " + value + "\n", "f.yaml");
    Mapping(root, "a thing").integer("n", {1, 100});
  });
}

TEST(YamlInteger, ReadsPlainDecimals) {
  const Node root = parse("a: 1\nb: 100\nc: -3\n", "f");
  Mapping map(root, "m");
  EXPECT_EQ(map.integer("a", {1, 100}), 1);
  EXPECT_EQ(map.integer("b", {1, 100}), 100);
  EXPECT_EQ(map.integer("c", {-3, 3}), -3);
  EXPECT_EQ(map.integer_or("d", {1, 100}, 7), 7);
}

TEST(YamlInteger, RefusesOtherWaysToWriteNumbers) {
  for (const char* value :
       {"010", "0x10", "0o10", "1e3", "+1", "1_000", "1.0", "ten", "true", ".inf", "1 2", "--1"}) {
    EXPECT_EQ(integer_error(value),
              std::string("f.yaml:2:4: n must be a whole number from 1 to 100 in plain decimal, not '") +
                  value + "'");
  }
}

TEST(YamlInteger, RefusesQuotesListsAndMappings) {
  EXPECT_EQ(integer_error("\"4\""), "f.yaml:2:4: n must be a whole number from 1 to 100, without quotes");
  EXPECT_EQ(integer_error("'4'"), "f.yaml:2:4: n must be a whole number from 1 to 100, without quotes");
  EXPECT_EQ(integer_error("[4]"), "f.yaml:2:4: n must be a whole number from 1 to 100");
  EXPECT_EQ(integer_error("{a: 4}"), "f.yaml:2:4: n must be a whole number from 1 to 100");
}

TEST(YamlInteger, RefusesWhatIsOutOfRange) {
  for (const char* value : {"0", "-1", "101", "1000000000000", "100000000000000000000"}) {
    EXPECT_EQ(integer_error(value),
              std::string("f.yaml:2:4: n must be a whole number from 1 to 100, not ") + value);
  }
}

TEST(YamlInteger, RefusesAKeyWithoutAValueOrAMissingOne) {
  EXPECT_THAT(integer_error(""), StartsWith("f.yaml:2:1: n has no value"));
  EXPECT_EQ(integer_error("~"), "f.yaml:2:1: n has no value");
  EXPECT_EQ(error_of([] {
              const Node root = parse("\n  a: {b: 1}\n", "f.yaml");
              Mapping map(*root.find("a"), "a thing");
              map.integer("n", {1, 2});
            }),
            "f.yaml:2:6: a thing lacks the key 'n'");
}

std::string positive_error(const std::string& value) {
  return error_of([&] {
    const Node root = parse("n: " + value + "\n", "f.yaml");
    Mapping(root, "m").positive("n");
  });
}

TEST(YamlPositive, ReadsPlainDecimalsAndRefusesTheRest) {
  const Node root = parse("n: 66.9", "f");
  EXPECT_DOUBLE_EQ(Mapping(root, "m").positive("n"), 66.9);
  for (const char* value :
       {"0", "0.0", "-1", "1e3", ".5", "1.", "'1'", ".nan", ".inf", "[1]", "one", "1,5"}) {
    EXPECT_EQ(positive_error(value), "f.yaml:1:4: n must be a number above zero, in plain decimal") << value;
  }
  EXPECT_THAT(positive_error(std::string(400, '9')), HasSubstr("n must be a number above zero"));
}

TEST(YamlBool, IsTrueOrFalse) {
  const Node root = parse("t: true\nf: false", "f");
  Mapping map(root, "m");
  EXPECT_TRUE(map.flag_or("t", false));
  EXPECT_FALSE(map.flag_or("f", true));
  EXPECT_TRUE(map.flag_or("absent", true));
  for (const char* value : {"yes", "no", "on", "True", "TRUE", "1", "0", "'true'", "[true]"}) {
    EXPECT_EQ(error_of([&] {
                const Node bad = parse(std::string("f: ") + value, "f.yaml");
                Mapping(bad, "m").flag_or("f", false);
              }),
              "f.yaml:1:4: f must be true or false")
        << value;
  }
}

TEST(YamlText, IsAScalarWithContent) {
  const Node root = parse("a: x\nb: 'null'\nl: [x, \"4090\"]\n", "f");
  Mapping map(root, "m");
  EXPECT_EQ(map.text("a"), "x");
  EXPECT_EQ(map.text("b"), "null");
  EXPECT_EQ(map.text_or("c", "fallback"), "fallback");
  EXPECT_THAT(map.text_list_or_empty("l"), ElementsAre("x", "4090"));
  EXPECT_THAT(map.text_list_or_empty("absent"), IsEmpty());

  const auto text_error = [](const std::string& value) {
    return error_of([&] {
      const Node bad = parse("t: " + value, "f.yaml");
      Mapping(bad, "m").text("t");
    });
  };
  EXPECT_EQ(text_error("''"), "f.yaml:1:4: t must be text");
  EXPECT_EQ(text_error("[x]"), "f.yaml:1:4: t must be text");
  EXPECT_EQ(text_error("{x: y}"), "f.yaml:1:4: t must be text");
  EXPECT_EQ(text_error("null"), "f.yaml:1:1: t has no value");
  const auto list_error = [](const std::string& value) {
    return error_of([&] {
      const Node bad = parse("t: " + value, "f.yaml");
      Mapping(bad, "m").text_list_or_empty("t");
    });
  };
  EXPECT_EQ(list_error("x"), "f.yaml:1:4: t must be a list");
  EXPECT_EQ(list_error("[x, [y]]"), "f.yaml:1:8: t must be text");
  EXPECT_EQ(list_error("[x, ~]"), "f.yaml:1:8: t must be text");
}

TEST(YamlMapping, RefusesUnknownKeysAndNamesTheNearest) {
  EXPECT_EQ(error_of([] {
              const Node root = parse("heads: 8\nhaed_dim: 64\n", "f.yaml");
              Mapping map(root, "attention");
              map.optional("heads");
              map.optional("kv_heads");
              map.optional("head_dim");
              map.finish();
            }),
            "f.yaml:2:1: unknown key in attention 'haed_dim'; did you mean head_dim?");
}

TEST(YamlMapping, KnowsTheKeysAskedForWhetherGivenOrNot) {
  const Node root = parse("a: 1\n", "f");
  Mapping map(root, "m");
  EXPECT_FALSE(map.knows("a"));
  map.optional("a");
  map.optional("b");
  EXPECT_TRUE(map.knows("a"));
  EXPECT_TRUE(map.knows("b"));
  map.finish();
}

TEST(YamlMapping, RefusesOtherKindsOfNode) {
  for (const char* text : {"x", "[a, b]", "--- ~"}) {
    EXPECT_THAT(error_of([&] {
                  const Node root = parse(text, "f.yaml");
                  Mapping map(root, "a model");
                }),
                MatchesRegex("f.yaml:1:[0-9]: a model must be a mapping of keys to values"))
        << text;
  }
}

}  // namespace
}  // namespace memwall::yaml
