// RapidJSON 1.1.0 behind json::Events. The other files of json.h know nothing of it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "input/json.h"
#include "input/regular_file.h"

// A broken promise inside RapidJSON must neither end the process nor pass unseen.
#define RAPIDJSON_ASSERT(condition) \
  ((condition) ? void() : throw std::logic_error("RapidJSON: " #condition " does not hold"))
// RapidJSON's stack adds to a null pointer before its first use, which clang's sanitizer reports.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/error/error.h>
#include <rapidjson/reader.h>
#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace memwall::json {
namespace {

constexpr int kMostDepth = 64;
// RapidJSON gathers a text in memory that grows by half; of 16 MiB, 10 MiB are sure to be of use.
constexpr std::size_t kMostTextMemory = std::size_t{16} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

struct TextTooLong {};

// RapidJSON's allocator concept, with a limit.
class LimitedAllocator {
 public:
  static constexpr bool kNeedFree = true;

  void* Malloc(std::size_t size) { return Realloc(nullptr, 0, size); }
  void* Realloc(void* old, std::size_t, std::size_t size) {
    if (size > kMostTextMemory) throw TextTooLong();
    if (size == 0) {
      Free(old);
      return nullptr;
    }
    void* memory = std::realloc(old, size);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  static void Free(void* memory) { std::free(memory); }
};

// RapidJSON's stream concept: a text in memory, or a part of a file through a buffer. RapidJSON takes a zero
// byte for the end, so whoever parses must see whether all was read.
class Input {
 public:
  using Ch = char;

  explicit Input(std::string_view text) : start_(text.data()), now_(start_), end_(start_ + text.size()) {}
  Input(const RegularFile& file, std::int64_t begin, std::int64_t size)
      : file_(&file), begin_(begin), left_(size), buffer_(kBufferBytes, '\0') {
    start_ = now_ = end_ = buffer_.data();
  }

  Ch Peek() { return now_ != end_ || refill() ? *now_ : '\0'; }
  Ch Take() { return now_ != end_ || refill() ? *now_++ : '\0'; }
  std::size_t Tell() const { return base_ + static_cast<std::size_t>(now_ - start_); }

  bool at_end() { return now_ == end_ && !refill(); }

  // Only parsing in place would write.
  Ch* PutBegin() { throw std::logic_error("json: parsing in place"); }
  void Put(Ch) {}
  void Flush() {}
  std::size_t PutEnd(Ch*) { return 0; }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

  bool refill() {
    if (left_ <= 0) return false;
    base_ += static_cast<std::size_t>(end_ - start_);
    const std::size_t wanted =
        static_cast<std::size_t>(std::min(left_, static_cast<std::int64_t>(kBufferBytes)));
    const std::size_t got = file_->read_at(begin_ + static_cast<std::int64_t>(base_), buffer_.data(), wanted);
    now_ = start_;
    end_ = start_ + got;
    left_ = got < wanted ? 0 : left_ - static_cast<std::int64_t>(got);  // the file may have shrunk
    return got > 0;
  }

  const RegularFile* file_ = nullptr;
  std::int64_t begin_ = 0;
  std::int64_t left_ = 0;  // not yet in the buffer
  std::string buffer_;
  std::size_t base_ = 0;  // of `start_`, from the document's begin
  const char* start_ = nullptr;
  const char* now_ = nullptr;
  const char* end_ = nullptr;
};

bool is_number(std::string_view text) {
  // RapidJSON takes "Inf", "-NaN", "NInf" and "NaN.5" for numbers, too.
  const char first = text[text[0] == '-' ? 1 : 0];
  if (first >= '0' && first <= '9') return true;
  return text == "NaN" || text == "Infinity" || text == "-Infinity";
}

// RapidJSON refuses surrogates in UTF-8, but turns a lone "\udc00" into one.
bool holds_surrogate(std::string_view text) {
  for (std::size_t at = text.find('\xed'); at != std::string_view::npos; at = text.find('\xed', at + 1)) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xa0) return true;
  }
  return false;
}

// RapidJSON's handler concept. Errors leave as exceptions, so that every call can return true.
class Handler {
 public:
  Handler(Input& input, Events& events, const FailAt& fail) : input_(input), events_(events), fail_(fail) {}

  bool Null() { return scalar(Kind::null, "null"); }
  bool Bool(bool value) { return scalar(Kind::boolean, value ? "true" : "false"); }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) {
    const std::string_view number(text, length);
    if (!is_number(number)) {
      fail_(end() - length, fmt::format("'{}' is no number that JSON knows", excerpt(number)));
    }
    return scalar(Kind::number, number);
  }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    return scalar(Kind::text, checked_text({text, length}));
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    events_.key(checked_text({text, length}), end());
    return true;
  }
  bool StartObject() { return open(Kind::object); }
  bool StartArray() { return open(Kind::array); }
  bool EndObject(rapidjson::SizeType) { return close(Kind::object); }
  bool EndArray(rapidjson::SizeType) { return close(Kind::array); }

  // Numbers arrive as text alone; RapidJSON's templates want these to exist.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }

 private:
  std::int64_t end() const { return static_cast<std::int64_t>(input_.Tell()); }

  bool scalar(Kind kind, std::string_view text) {
    events_.scalar(kind, text, end());
    return true;
  }
  // RapidJSON takes brackets after these calls.
  bool open(Kind kind) {
    if (++depth_ > kMostDepth) {
      fail_(end(), fmt::format("lists and objects are nested more than {} deep", kMostDepth));
    }
    events_.open(kind, end() + 1);
    return true;
  }
  bool close(Kind kind) {
    --depth_;
    events_.close(kind, end() + 1);
    return true;
  }
  std::string_view checked_text(std::string_view text) const {
    if (holds_surrogate(text)) fail_(end() - 1, "this text holds half of a \\u surrogate pair");
    return text;
  }

  Input& input_;
  Events& events_;
  const FailAt& fail_;
  int depth_ = 0;
};

std::string shown(char found) {
  if (found >= ' ' && found <= '~') return fmt::format("'{}'", found);
  return fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(found));
}

std::string explain(rapidjson::ParseErrorCode code, bool at_end, char found) {
  const auto should_stand = [&](std::string_view what) {
    if (at_end) return fmt::format("the file ends where {} should stand", what);
    return fmt::format("{} should stand here, not {}", what, shown(found));
  };
  const auto text_error = [&](std::string_view message) {
    return std::string(at_end ? "the file ends inside a text" : message);
  };
  switch (code) {
    case rapidjson::kParseErrorDocumentEmpty:
      if (at_end) return "the file holds nothing; a value should stand here";
      return should_stand("a value");
    case rapidjson::kParseErrorDocumentRootNotSingular:
      return fmt::format("nothing may follow the end of the document, but {} stands here", shown(found));
    case rapidjson::kParseErrorValueInvalid:
      return should_stand("a value");
    case rapidjson::kParseErrorObjectMissName:
      return should_stand("a key in double quotes");
    case rapidjson::kParseErrorObjectMissColon:
      return should_stand("the ':' between a key and its value");
    case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket:
      return should_stand("a ',' or '}'");
    case rapidjson::kParseErrorArrayMissCommaOrSquareBracket:
      return should_stand("a ',' or ']'");
    case rapidjson::kParseErrorStringUnicodeEscapeInvalidHex:
      return text_error("\\u must have four hexadecimal digits");
    case rapidjson::kParseErrorStringUnicodeSurrogateInvalid:
      return text_error("this text holds half of a \\u surrogate pair");
    case rapidjson::kParseErrorStringEscapeInvalid:
      if (!at_end && static_cast<unsigned char>(found) < 0x20) {
        return "a line break or control character stands inside a text; is its closing quote missing?";
      }
      return text_error(
          "'\\' starts no escape that JSON knows: \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u with four digits");
    case rapidjson::kParseErrorStringMissQuotationMark:
      return text_error("a zero byte stands inside a text");
    case rapidjson::kParseErrorStringInvalidEncoding:
      return text_error("this text is not UTF-8");
    case rapidjson::kParseErrorNumberTooBig:
      return "this number is too large";
    case rapidjson::kParseErrorNumberMissFraction:
    case rapidjson::kParseErrorNumberMissExponent:
      return should_stand("a digit");
    case rapidjson::kParseErrorUnspecificSyntaxError:
      return at_end ? "the file ends inside a comment" : "'/' starts no comment: write // or /* */";
    default:
      return "this is not JSON";
  }
}

void parse_input(Input& input, Events& events, const FailAt& fail) {
  for (const char c : kByteOrderMark) {
    if (input.Peek() != c) break;
    input.Take();
  }
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                              rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag |
                              rapidjson::kParseCommentsFlag;
  rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>, LimitedAllocator> reader;
  Handler handler(input, events, fail);
  rapidjson::ParseResult result;
  try {
    result = reader.Parse<kFlags>(input, handler);
  } catch (const TextTooLong&) {
    fail(static_cast<std::int64_t>(input.Tell()), "this text or number is longer than 10 MiB");
  }
  if (result.IsError()) {
    const bool at_end = input.at_end();
    fail(static_cast<std::int64_t>(result.Offset()), explain(result.Code(), at_end, input.Peek()));
  }
  if (!input.at_end()) fail(static_cast<std::int64_t>(input.Tell()), "a zero byte stands here");
}

}  // namespace

std::int64_t begin_of_key(std::string_view text, std::int64_t end) {
  return end - static_cast<std::int64_t>(text.size()) - 2;  // its quotes
}

std::int64_t begin_of_scalar(Kind kind, std::string_view text, std::int64_t end) {
  return kind == Kind::text ? begin_of_key(text, end) : end - static_cast<std::int64_t>(text.size());
}

void parse_events(std::string_view text, Events& events, const FailAt& fail) {
  Input input(text);
  parse_input(input, events, fail);
}

void stream(const RegularFile& file, std::int64_t begin, std::int64_t size, Events& events,
            const FailAt& fail) {
  Input input(file, begin, size);
  parse_input(input, events, fail);
}

}  // namespace memwall::json
