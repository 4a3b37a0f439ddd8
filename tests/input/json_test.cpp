#include "input/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "input/regular_file.h"
#include "tests/checkpoint/safetensors_writer.h"
#include "tests/support.h"

namespace memwall::json {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(std::string_view text) {
  return error_of([&] { parse(text, "f"); });
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Json, ReadsAllKindsOfValues) {
  const Document document =
      parse(R"( {"a": null, "b": true, "c": -1.50, "d": "x\n\u00e9", "e": [1, []], "f": {}} )", "f");
  const Value& root = document.root;
  ASSERT_EQ(root.kind, Kind::object);
  EXPECT_THAT(root.keys, testing::ElementsAre("a", "b", "c", "d", "e", "f"));
  EXPECT_EQ(root.find("a")->kind, Kind::null);
  EXPECT_TRUE(root.find("b")->boolean);
  EXPECT_EQ(root.find("c")->text, "-1.50");
  EXPECT_EQ(root.find("d")->text, "x\n\xc3\xa9");
  EXPECT_EQ(root.find("e")->items.size(), 2U);
  EXPECT_EQ(root.find("f")->kind, Kind::object);
  EXPECT_EQ(root.find("g"), nullptr);
  EXPECT_EQ(root.find("a")->find("g"), nullptr);
}

TEST(Json, KeepsThePlacesOfValues) {
  const Document document = parse("\xef\xbb\xbf{\n \"a\" /* x\n */ : // y\n  [1,\n{ \"b\":\t\"c\"}]}", "f");
  EXPECT_EQ(document.root.line, 1U);
  EXPECT_EQ(document.root.column, 1U);
  const Value& list = *document.root.find("a");
  EXPECT_EQ(list.line, 4U);
  EXPECT_EQ(list.column, 3U);
  EXPECT_EQ(list.items[0].column, 4U);
  EXPECT_EQ(list.items[1].line, 5U);
  EXPECT_EQ(list.items[1].column, 1U);
  EXPECT_EQ(list.items[1].find("b")->column, 8U);
  EXPECT_EQ(error_of([&] { fail(document, list.items[1], "no"); }), "f:5:1: no");
}

TEST(Json, TakesWhatRealFilesHold) {
  EXPECT_EQ(parse("\xef\xbb\xbf{}", "f").root.kind, Kind::object);
  EXPECT_EQ(parse("{} \r\n\t // the end", "f").root.kind, Kind::object);
  EXPECT_EQ(parse("/* a */ [ // b\n1 /**/ , /* c **/ 2] /* d */\n", "f").root.items.size(), 2U);
  EXPECT_EQ(parse("[Infinity, -Infinity, NaN]", "f").root.items[1].text, "-Infinity");
  EXPECT_EQ(parse("\"a // b\"", "f").root.text, "a // b");
}

TEST(Json, NumbersStayAsWritten) {
  for (const char* text : {"0", "-0", "4096.0", "1e4", "1E+4", "2.80e-9", "18446744073709551616",
                           "0.1000000000000000055511151231257827021181583404541015625", "1e308"}) {
    EXPECT_EQ(parse(text, "f").root.text, text);
    EXPECT_EQ(parse(fmt::format("[{}]", text), "f").root.items[0].text, text);
  }
}

TEST(Json, RefusesWhatIsNotJson) {
  EXPECT_EQ(refusal(""), "f:1:1: the file holds nothing; a value should stand here");
  EXPECT_EQ(refusal(" // only this"), "f:1:14: the file holds nothing; a value should stand here");
  EXPECT_EQ(refusal("{\"a\": }"), "f:1:7: a value should stand here, not '}'");
  EXPECT_EQ(refusal("[1,\n]"), "f:2:1: a value should stand here, not ']'");
  EXPECT_EQ(refusal("[1,,2]"), "f:1:4: a value should stand here, not ','");
  EXPECT_EQ(refusal("{\"a\":1,}"), "f:1:8: a key in double quotes should stand here, not '}'");
  EXPECT_EQ(refusal("{a:1}"), "f:1:2: a key in double quotes should stand here, not 'a'");
  EXPECT_EQ(refusal("{\"a\" 1}"), "f:1:6: the ':' between a key and its value should stand here, not '1'");
  EXPECT_EQ(refusal("{\"a\":1 \"b\"}"), "f:1:8: a ',' or '}' should stand here, not '\"'");
  EXPECT_EQ(refusal("[1 2]"), "f:1:4: a ',' or ']' should stand here, not '2'");
  EXPECT_EQ(refusal("[True]"), "f:1:2: a value should stand here, not 'T'");
  EXPECT_EQ(refusal("[nul]"), "f:1:5: a value should stand here, not ']'");
  EXPECT_EQ(refusal("{} {}"), "f:1:4: nothing may follow the end of the document, but '{' stands here");
  EXPECT_EQ(refusal("\x01"), "f:1:1: a value should stand here, not the byte 0x01");
  EXPECT_EQ(refusal("[1] /x"), "f:1:6: '/' starts no comment: write // or /* */");
  EXPECT_EQ(refusal(std::string("{}\0{}", 5)), "f:1:3: a zero byte stands here");
  EXPECT_EQ(refusal(std::string("[\0]", 3)), "f:1:2: a value should stand here, not the byte 0x00");
}

TEST(Json, RefusesBadNumbers) {
  EXPECT_EQ(refusal("[01]"), "f:1:3: a ',' or ']' should stand here, not '1'");
  EXPECT_EQ(refusal("[1.]"), "f:1:4: a digit should stand here, not ']'");
  EXPECT_EQ(refusal("[1e+]"), "f:1:5: a digit should stand here, not ']'");
  EXPECT_EQ(refusal("[.5]"), "f:1:2: a value should stand here, not '.'");
  EXPECT_EQ(refusal("[+5]"), "f:1:2: a value should stand here, not '+'");
  EXPECT_EQ(refusal("[1e999]"), "f:1:2: this number is too large");
  EXPECT_EQ(refusal("[" + std::string(400, '9') + "]"), "f:1:2: this number is too large");
  // What RapidJSON 1.1.0 lets pass.
  EXPECT_EQ(refusal("[NaN.5]"), "f:1:2: 'NaN.5' is no number that JSON knows");
  EXPECT_EQ(refusal("[-NaN]"), "f:1:2: '-NaN' is no number that JSON knows");
  EXPECT_EQ(refusal("[Inf]"), "f:1:2: 'Inf' is no number that JSON knows");
  EXPECT_EQ(refusal("[NInf]"), "f:1:2: 'NInf' is no number that JSON knows");
  EXPECT_EQ(refusal("[Infinity1]"), "f:1:10: a ',' or ']' should stand here, not '1'");
}

TEST(Json, RefusesBadTexts) {
  EXPECT_EQ(refusal("[\"a\nb\"]"),
            "f:1:4: a line break or control character stands inside a text; is its closing quote missing?");
  EXPECT_THAT(refusal(R"(["\x41"])"), StartsWith("f:1:3: '\\' starts no escape that JSON knows"));
  EXPECT_EQ(refusal(R"(["\u00g0"])"), "f:1:3: \\u must have four hexadecimal digits");
  EXPECT_EQ(refusal(R"(["\ud800"])"), "f:1:3: this text holds half of a \\u surrogate pair");
  EXPECT_EQ(refusal(R"(["\ud800\u0041"])"), "f:1:3: this text holds half of a \\u surrogate pair");
  EXPECT_THAT(refusal(R"(["\udc00"])"), HasSubstr("this text holds half of a \\u surrogate pair"));
  EXPECT_THAT(refusal(R"({"\udc00":1})"), HasSubstr("this text holds half of a \\u surrogate pair"));
  EXPECT_EQ(refusal("[\"\xff\"]"), "f:1:3: this text is not UTF-8");
  EXPECT_EQ(refusal("[\"\xc0\x80\"]"), "f:1:3: this text is not UTF-8");      // an overlong zero
  EXPECT_EQ(refusal("[\"\xed\xa0\x80\"]"), "f:1:3: this text is not UTF-8");  // a surrogate
  EXPECT_EQ(refusal("[\"\xf5\x80\x80\x80\"]"), "f:1:3: this text is not UTF-8");
  EXPECT_EQ(refusal(std::string("\"a\0b\"", 5)), "f:1:3: a zero byte stands inside a text");
  EXPECT_EQ(parse(R"("\ud83d\ude00")", "f").root.text, "\xf0\x9f\x98\x80");
}

TEST(Json, SaysWhereATextWasCutShort) {
  EXPECT_EQ(refusal("{\"a\": [1,"), "f:1:10: the file ends where a value should stand");
  EXPECT_EQ(refusal("{\"a\": [1"), "f:1:9: the file ends where a ',' or ']' should stand");
  EXPECT_EQ(refusal("{\"a\""), "f:1:5: the file ends where the ':' between a key and its value should stand");
  EXPECT_EQ(refusal("{"), "f:1:2: the file ends where a key in double quotes should stand");
  EXPECT_EQ(refusal("[\"ab"), "f:1:5: the file ends inside a text");
  EXPECT_EQ(refusal("[\"ab\\"), "f:1:5: the file ends inside a text");
  EXPECT_EQ(refusal("[\"ab\\u00"), "f:1:5: the file ends inside a text");
  EXPECT_EQ(refusal("[\"\xe4\xb8"), "f:1:3: the file ends inside a text");
  EXPECT_EQ(refusal("[1, /* "), "f:1:8: the file ends inside a comment");
  EXPECT_EQ(refusal("[1."), "f:1:4: the file ends where a digit should stand");
}

TEST(Json, EveryCutOfAFileIsRefused) {
  const std::string text =
      "{\"a\": [1, -2.5e3, true, null, Infinity], /* b */ \"c\": {\"d\": \"e\\u00e9\\n\"}, \"f\": "
      "\"\xe4\xb8\xad\"}";
  parse(text, "f");
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_THAT(refusal(text.substr(0, size)), StartsWith("f:1:")) << size;
  }
}

TEST(Json, RefusesAKeyThatStandsTwice) {
  EXPECT_EQ(refusal("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}"),
            "f:3:7: the key 'a' stands twice in one object, first on line 1");
  EXPECT_EQ(refusal(R"([{"x": {"": 1, "\u0061": 2, "a": 3}}])"),
            "f:1:34: the key 'a' stands twice in one object, first on line 1");
  EXPECT_EQ(parse(R"([{"a": 1}, {"a": {"a": 2}}])", "f").root.items.size(), 2U);
}

TEST(Json, RefusesDeepNesting) {
  EXPECT_EQ(parse(nested(64), "f").root.kind, Kind::array);
  EXPECT_EQ(refusal(nested(65)), "f:1:65: lists and objects are nested more than 64 deep");
  EXPECT_EQ(refusal(std::string(8'000'000, '[')), "f:1:65: lists and objects are nested more than 64 deep");
  std::string objects;
  for (int i = 0; i < 10'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(refusal(objects), "f:1:321: lists and objects are nested more than 64 deep");
}

TEST(Json, RefusesTooManyValuesAndTooLongFiles) {
  std::string list = "[";
  for (int i = 0; i < 999'998; ++i) list += "1,";
  EXPECT_EQ(parse(list + "1]", "f").root.items.size(), 999'999U);
  EXPECT_EQ(refusal(list + "1,1]"), "f:1:2000000: more than 1000000 values and keys");
  EXPECT_EQ(refusal(std::string((8U << 20) + 1, ' ')),
            "f: is longer than 8388608 bytes; this is no such file");
}

TEST(Json, LoadRefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { load(folder.path()); }), folder.path() + ": is a folder; name a file");
  EXPECT_EQ(error_of([&] { load(folder / "none"); }),
            folder / "none: cannot be read: No such file or directory");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { load(folder / "pipe"); }), folder / "pipe: is a pipe or a device; name a file");
  EXPECT_EQ(error_of([&] { load("/dev/zero"); }), "/dev/zero: is a pipe or a device; name a file");
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_THAT(error_of([&] { load(folder / "loop"); }), HasSubstr("Too many levels of symbolic links"));
  write_text(folder / "long", "{}");
  std::filesystem::resize_file(folder / "long", 1ULL << 40);
  EXPECT_THAT(error_of([&] { load(folder / "long"); }), HasSubstr("is longer than 8388608 bytes"));
  write_text(folder / "good", "{\"a\": 1}\n");
  EXPECT_EQ(load(folder / "good").root.find("a")->text, "1");
}

// Writes events as text.
class Recorder : public Events {
 public:
  std::string text;
  std::int64_t count = 0;

  void scalar(Kind, std::string_view value, std::int64_t end) override { add(value, end); }
  void key(std::string_view name, std::int64_t end) override { add(fmt::format("{}:", name), end); }
  void open(Kind kind, std::int64_t end) override { add(kind == Kind::object ? "{" : "[", end); }
  void close(Kind kind, std::int64_t end) override { add(kind == Kind::object ? "}" : "]", end); }

 private:
  void add(std::string_view what, std::int64_t end) {
    if (++count < 20) text += fmt::format("{}@{} ", what, end);
  }
};

TEST(JsonStream, GivesEventsAndWhereTheyEnd) {
  const TemporaryFolder folder;
  write_text(folder / "f", "xx{\"a\": [1, true , \"b\"], \"c\": null}yy");
  const RegularFile file(folder / "f");
  Recorder events;
  stream(file, 2, file.size() - 4, events,
         [&](std::int64_t byte, const std::string& message) { fail_at_byte(file, byte, message); });
  EXPECT_EQ(events.text, "{@1 a:@4 [@7 1@8 true@14 b@20 ]@21 c:@26 null@32 }@33 ");
}

TEST(JsonStream, ReadsPastItsBufferAndSaysWhereAnErrorIs) {
  const TemporaryFolder folder;
  std::string text = "\xef\xbb\xbf[";
  for (int i = 0; i < 50'000; ++i) text += "\"some text\",\n";
  write_text(folder / "good", text + "1]");
  write_text(folder / "bad", text + " ]");
  const auto read = [&](const std::string& path) {
    const RegularFile file(path);
    Recorder events;
    stream(file, 0, file.size(), events,
           [&](std::int64_t byte, const std::string& message) { fail_at_byte(file, byte, message); });
    return events.count;
  };
  EXPECT_EQ(read(folder / "good"), 50'003);
  EXPECT_EQ(error_of([&] { read(folder / "bad"); }),
            folder / "bad:50001:2: a value should stand here, not ']'");
}

TEST(JsonStream, RefusesEndlessTexts) {
  const TemporaryFolder folder;
  write_text(folder / "f", "[\"" + std::string(20'000'000, 'x') + "\"]");
  const RegularFile file(folder / "f");
  Recorder events;
  EXPECT_THAT(error_of([&] {
                stream(file, 0, file.size(), events, [&](std::int64_t byte, const std::string& message) {
                  fail_at_byte(file, byte, message);
                });
              }),
              HasSubstr("this text or number is longer than 10 MiB"));
}

}  // namespace
}  // namespace memwall::json
