#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fuzz/memory_file.h"
#include "fuzz/targets.h"
#include "input/error.h"
#include "input/json.h"
#include "input/regular_file.h"

namespace memwall {
namespace {

template <typename Call>
void swallow_refusal(Call call) {
  try {
    call();
  } catch (const InputError&) {
  }
}

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

void visit(const std::string& file, const json::Value& value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  swallow_refusal([&] { json::as_integer(file, value, "a", {-kMost - 1, kMost}); });
  swallow_refusal([&] { json::as_number(file, value, "a"); });
  swallow_refusal([&] { json::as_bool(file, value, "a"); });
  swallow_refusal(
      [&] { require(!json::holds_control(json::as_text(file, value, "a")), "a control character"); });
  require(!json::holds_control(excerpt(value.text)), "printable() let a control character pass");
  require(value.line > 0 && value.column > 0, "a value without a place");
  for (const std::string& key : value.keys) require(value.find(key) != nullptr, "a key is not found");
  for (const json::Value& item : value.items) visit(file, item);
}

class NoEvents : public json::Events {
 public:
  void scalar(json::Kind, std::string_view, std::int64_t) override {}
  void key(std::string_view, std::int64_t) override {}
  void open(json::Kind, std::int64_t) override {}
  void close(json::Kind, std::int64_t) override {}
};

}  // namespace

// A text is read or refused with an InputError, as a tree as in a stream.
int fuzz_json(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  bool is_tree = false;
  swallow_refusal([&] {
    const json::Document document = json::parse(text, "fuzz");
    is_tree = true;
    visit(document.file, document.root);
  });
  const MemoryFile bytes(data, size);
  const RegularFile file(bytes.path());
  bool is_stream = false;
  swallow_refusal([&] {
    NoEvents events;
    json::stream(file, 0, file.size(), events, [&](std::int64_t byte, const std::string& message) {
      json::fail_at_byte(file, byte, message);
    });
    is_stream = true;
  });
  require(is_stream || !is_tree, "a stream was refused, its tree was not");
  return 0;
}

}  // namespace memwall
