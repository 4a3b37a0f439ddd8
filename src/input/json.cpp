#include "input/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "input/error.h"
#include "input/regular_file.h"

namespace memwall::json {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{8} << 20;
// Values and keys together. The worst is one flat list. Its vector of 96-byte values holds up to 2^20 of
// them, 96 MiB; while it grows to that, the half it outgrows is 48 MiB, and where much of it is spare the
// copy without that is 84 MiB. The file's text is another 8 MiB. Texts past 15 bytes live outside their
// value, but of those the file has room for 441,000 alone. 188 MiB in all.
constexpr std::int64_t kMostValues = 1'000'000;
static_assert(sizeof(Value) <= 96 && sizeof(std::string) <= 32);

struct Place {
  std::uint32_t line = 1;
  std::uint32_t column = 1;

  void pass(char c) {
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
    }
  }
};

bool starts_with_mark(std::string_view text) { return text.substr(0, 3) == "\xef\xbb\xbf"; }

std::string at_place(const std::string& file, Place place, const std::string& message) {
  return fmt::format("{}:{}:{}: {}", file, place.line, place.column, message);
}

class TreeBuilder : public Events {
 public:
  TreeBuilder(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (starts_with_mark(text)) seen_ = 3;
  }

  Value take() { return std::move(root_); }

  void scalar(Kind kind, std::string_view text, std::int64_t end) override {
    Value& value = add(kind, end);
    if (kind == Kind::boolean) value.boolean = text == "true";
    if (kind == Kind::number || kind == Kind::text) value.text = text;
  }
  void key(std::string_view text, std::int64_t end) override {
    count(find_start(end));
    open_.back()->keys.emplace_back(text);
  }
  void open(Kind kind, std::int64_t end) override { open_.push_back(&add(kind, end)); }
  void close(Kind, std::int64_t end) override {
    find_start(end);
    Value& value = *open_.back();
    open_.pop_back();
    refuse_duplicates(value);
    drop_spare_room(value.items);
    drop_spare_room(value.keys);
  }

 private:
  // A value's address holds while it is open: its parent gains no other item.
  Value& add(Kind kind, std::int64_t end) {
    const Place start = find_start(end);
    count(start);
    Value* value = &root_;
    if (!open_.empty()) value = &open_.back()->items.emplace_back();
    value->kind = kind;
    value->line = start.line;
    value->column = start.column;
    return *value;
  }

  void count(Place at) {
    if (++values_ > kMostValues) {
      throw InputError(at_place(file_, at, fmt::format("more than {} values and keys", kMostValues)));
    }
  }

  // Half of a vector may be spare, and lists can be many.
  template <typename Item>
  static void drop_spare_room(std::vector<Item>& items) {
    if (items.capacity() - items.size() > items.capacity() / 8) items.shrink_to_fit();
  }

  // RapidJSON tells where a key or value ends. It begins behind the blanks, comments and separators that
  // follow the one before.
  Place find_start(std::int64_t end_offset) {
    const auto end = static_cast<std::size_t>(end_offset);
    while (seen_ < end) {
      const char c = text_[seen_];
      if (c == '/') {
        skip_comment(end);
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ':') {
        pass(seen_ + 1);
      } else {
        break;
      }
    }
    const Place start = place_;
    pass(end);
    return start;
  }

  void skip_comment(std::size_t end) {
    const bool line_comment = text_.substr(seen_, 2) == "//";
    const std::string_view closing = line_comment ? "\n" : "*/";
    const std::size_t at = text_.find(closing, seen_ + 2);
    pass(std::min(end, at == std::string_view::npos ? end : at + closing.size()));
  }

  void pass(std::size_t end) {
    for (; seen_ < end; ++seen_) place_.pass(text_[seen_]);
  }

  void refuse_duplicates(const Value& object) const {
    std::vector<std::uint32_t> order(object.keys.size());
    std::iota(order.begin(), order.end(), 0U);
    // Where keys are equal, the order of the file decides, so that the later one is blamed.
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const int order_of_keys = object.keys[a].compare(object.keys[b]);
      return order_of_keys != 0 ? order_of_keys < 0 : a < b;
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (object.keys[order[i - 1]] != object.keys[order[i]]) continue;
      fail(file_, object.items[order[i]],
           fmt::format("the key '{}' stands twice in one object, first on line {}",
                       excerpt(object.keys[order[i]]), object.items[order[i - 1]].line));
    }
  }

  std::string_view text_;
  const std::string& file_;
  Value root_;
  std::vector<Value*> open_;
  std::int64_t values_ = 0;
  std::size_t seen_ = 0;  // how much of the text `place_` is behind
  Place place_;
};

}  // namespace

const Value* Value::find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

Document parse(std::string_view text, const std::string& file) {
  if (static_cast<std::int64_t>(text.size()) > kMostBytes) {
    throw InputError(fmt::format("{}: is longer than {} bytes; this is no such file", file, kMostBytes));
  }
  TreeBuilder builder(text, file);
  parse_events(text, builder, [&](std::int64_t byte, const std::string& message) {
    Place place;
    for (std::size_t i = starts_with_mark(text) ? 3 : 0; i < static_cast<std::size_t>(byte); ++i) {
      place.pass(text[i]);
    }
    throw InputError(at_place(file, place, message));
  });
  return {file, builder.take()};
}

Document load(const std::string& path) {
  const RegularFile file(path);
  if (file.size() > kMostBytes) {
    throw InputError(fmt::format("{}: is longer than {} bytes; this is no such file", path, kMostBytes));
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  text.resize(file.read_at(0, text.data(), text.size()));
  return parse(text, path);
}

void fail(const std::string& file, const Value& at, const std::string& message) {
  throw InputError(at_place(file, {at.line, at.column}, message));
}

void fail(const Document& document, const Value& at, const std::string& message) {
  fail(document.file, at, message);
}

void fail_at_byte(const RegularFile& file, std::int64_t byte, const std::string& message) {
  Place place;
  std::array<char, 64 << 10> buffer;
  for (std::int64_t offset = 0; offset < byte;) {
    const auto wanted = std::min<std::int64_t>(byte - offset, static_cast<std::int64_t>(buffer.size()));
    const std::size_t got = file.read_at(offset, buffer.data(), static_cast<std::size_t>(wanted));
    if (got == 0) break;
    const std::string_view text(buffer.data(), got);
    for (std::size_t i = offset == 0 && starts_with_mark(text) ? 3 : 0; i < got; ++i) place.pass(text[i]);
    offset += static_cast<std::int64_t>(got);
  }
  throw InputError(at_place(file.path(), place, message));
}

}  // namespace memwall::json
