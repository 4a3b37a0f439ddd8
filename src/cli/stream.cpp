#include "cli/stream.h"

#include <fmt/format.h>

#include <stdexcept>

#include "input/error.h"
#include "input/printable.h"
#include "report/rows.h"
#include "report/table.h"

namespace memwall {
namespace {

std::string dumped(const Json& json) {
  return printable_json(json.dump(2, ' ', false, Json::error_handler_t::replace));
}

// A pipe is not worth a system call a line.
class Buffered {
 public:
  explicit Buffered(Output& output) : output_(output) {}
  void append(std::string_view text) {
    constexpr std::size_t kMost = std::size_t{1} << 17;
    text_ += text;
    if (text_.size() >= kMost) flush();
  }
  void finish() {
    flush();
    output_.finish();
  }

 private:
  void flush() {
    output_.append(text_);
    text_.clear();
  }

  Output& output_;
  std::string text_;
};

}  // namespace

void write_json(Output& output, const Json& document, const std::string& key, const JsonSequence& items) {
  const std::string whole = dumped(document);
  // A key at the top stands on a line of its own; no line of a string does, as their breaks are escaped.
  const std::string line = "\n  " + Json(key).dump() + ": [";
  const std::size_t found = whole.find(line + "]");
  if (found == std::string::npos) throw std::logic_error("no empty array to fill: " + key);
  const std::size_t inside = found + line.size();
  Buffered buffered(output);
  buffered.append(whole.substr(0, inside));
  bool any = false;
  items([&](const Json& item) {
    std::string text = any ? ",\n    " : "\n    ";
    any = true;
    for (const char c : dumped(item)) {
      text += c;
      if (c == '\n') text += "    ";
    }
    buffered.append(text);
  });
  if (any) buffered.append("\n  ");
  buffered.append(whole.substr(inside) + "\n");
  buffered.finish();
}

void write_rows(Output& output, OutputFormat format, const JsonSequence& rows) {
  const bool csv = format == OutputFormat::csv;
  RowWriter writer;
  rows([&](const Json& row) { writer.note(row); });
  Buffered buffered(output);
  buffered.append(csv ? writer.csv_head() : writer.markdown_head());
  rows([&](const Json& row) { buffered.append(csv ? writer.csv_line(row) : writer.markdown_line(row)); });
  buffered.finish();
}

void require_combinations(const std::vector<ListLength>& lists, std::uint64_t most,
                          const std::string& taker) {
  double product = 1;  // lengths that multiply past 2^53 are past `most`, whatever their last digits
  std::string factors;
  for (const ListLength& list : lists) {
    product *= static_cast<double>(list.length);
    if (list.length <= 1) continue;
    factors += fmt::format("{}{} {}", factors.empty() ? "" : " × ",
                           thousands(static_cast<double>(list.length)), list.name);
  }
  if (product <= static_cast<double>(most)) return;
  throw InputError(fmt::format("{} results ({}) are more than the {} that {} takes at once; ask for fewer",
                               thousands(product), factors, thousands(static_cast<double>(most)), taker));
}

}  // namespace memwall
