// JSON as real checkpoints hold it. RapidJSON parses; this adds what files in the wild need (bare NaN and
// Infinity, comments, a byte-order mark), refuses what it would let pass (duplicate keys), and bounds what a
// hostile file can cost.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "input/numbers.h"
#include "input/printable.h"

namespace memwall {
class RegularFile;
}

namespace memwall::json {

enum class Kind : std::uint8_t { null, boolean, number, text, array, object };

// A value and where it stands. Numbers are kept as written, so that 4096, 4096.0 and 4.096e3 can be told
// apart and integers stay exact.
struct Value {
  std::string text;               // of a text; a number as written
  std::vector<Value> items;       // of an array; an object's values
  std::vector<std::string> keys;  // of an object, one for each item, none twice
  std::uint32_t line = 0;         // 1-based
  std::uint32_t column = 0;       // 1-based, in bytes
  Kind kind = Kind::null;
  bool boolean = false;

  // The value of an object's key; nullptr where there is none, or where this is no object.
  const Value* find(std::string_view key) const;
};

struct Document {
  std::string file;  // as messages name it
  Value root;
};

// Parses text of at most 8 MiB holding at most 1,000,000 values and keys, nested at most 64 deep. Throws
// InputError "FILE:LINE:COLUMN: ...". `file` stands for the file in messages.
Document parse(std::string_view text, const std::string& file);
// The same for a file. Throws InputError where it cannot be read or is no regular file, too.
Document load(const std::string& path);

// Throws InputError "FILE:LINE:COLUMN: message" at the value.
[[noreturn]] void fail(const std::string& file, const Value& at, const std::string& message);
[[noreturn]] void fail(const Document& document, const Value& at, const std::string& message);

// "null", "true or false", "a number", "a text", "a list" or "an object": the words for a value's kind.
std::string_view kind_name(Kind kind);
// What stands there, for a message: a number or truth value itself, "the text 'x'", else its kind.
std::string shown(const Value& value);

// Values of a certain kind. Each throws InputError at the value; `what` names it ("hidden_size").
// Whole numbers may be written as floats: 4096.0 and 2.8e9 are integers, 2.5 is not.
std::int64_t as_integer(const std::string& file, const Value& value, std::string_view what, Range range);
// May be infinite; NaN is refused.
double as_number(const std::string& file, const Value& value, std::string_view what);
bool as_bool(const std::string& file, const Value& value, std::string_view what);
// One line without control characters.
const std::string& as_text(const std::string& file, const Value& value, std::string_view what);

// A number's text as an integer, nothing where it is not whole or passes 64 bits.
std::optional<std::int64_t> to_integer(std::string_view number);

// True where a text holds control characters, which should reach neither a table nor a terminal.
bool holds_control(std::string_view text);

// What a streamed document is made of, in its order. `end` is the offset of the byte behind the key or value
// (behind its opening brace or bracket), counted from the document's begin. Text lives until the call
// returns.
class Events {
 public:
  virtual ~Events() = default;
  virtual void scalar(Kind kind, std::string_view text, std::int64_t end) = 0;  // "true" is a boolean's text
  virtual void key(std::string_view text, std::int64_t end) = 0;
  virtual void open(Kind kind, std::int64_t end) = 0;
  virtual void close(Kind kind, std::int64_t end) = 0;
};

// Where an event began, given its end. Escapes in a text are not counted: behind them it is a little late.
std::int64_t begin_of_key(std::string_view text, std::int64_t end);
std::int64_t begin_of_scalar(Kind kind, std::string_view text, std::int64_t end);

// Throws the InputError for a message about the byte at an offset from the document's begin.
using FailAt = std::function<void(std::int64_t byte, const std::string& message)>;

// Parses a text. Throws what `fail` throws, and whatever `events` throws. Duplicate keys are the caller's to
// find.
void parse_events(std::string_view text, Events& events, const FailAt& fail);

// Parses `size` bytes of an open file from `begin` on as one document, for files too large for a tree: it
// holds 64 KiB of the file and the longest text, which may have 10 MiB. Otherwise like parse_events.
void stream(const RegularFile& file, std::int64_t begin, std::int64_t size, Events& events,
            const FailAt& fail);

// For streamed files of several lines: throws InputError "FILE:LINE:COLUMN: message" for a byte of the file,
// which is read again to count the lines.
[[noreturn]] void fail_at_byte(const RegularFile& file, std::int64_t byte, const std::string& message);

}  // namespace memwall::json
