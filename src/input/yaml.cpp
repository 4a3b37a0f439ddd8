#include "input/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <unordered_map>

#include "input/error.h"
#include "input/read_file.h"
#include "input/suggest.h"

namespace memwall::yaml {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::size_t kMostDepth = 64;

// Escapes ("\n", "\e") and block scalars can put into a text what must reach neither a table nor a terminal.
bool holds_control(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f) return true;
    // U+0080 to U+009F, the C1 controls, in UTF-8
    if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return true;
  }
  return false;
}

// Builds Nodes from yaml-cpp's events. Its own node graph would hide duplicate keys and expand aliases.
class TreeBuilder : public YAML::EventHandler {
 public:
  // `text`: what the events' marks point into, without a byte-order mark.
  TreeBuilder(std::shared_ptr<const std::string> file, std::string_view text)
      : file_(std::move(file)), text_(text) {}

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string&) override { refuse_anchor(mark); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(make(Kind::null, mark, anchor)); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(Kind::scalar, mark, anchor);
    node.text = value;
    node.quoted = tag == "!";
    if (!tag.empty() && tag != "!" && tag != "?") fail(node, "tags are not read here; write the value alone");
    if (node.quoted) check_quotes(node, static_cast<std::size_t>(mark.pos));
    if (holds_control(value)) fail(node, "text must be one line, without control characters");
    const bool null_word = !node.quoted && (value.empty() || value == "~" || value == "null");
    if (null_word) node.kind = Kind::null;
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(Kind::sequence, mark, anchor));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(Kind::mapping, mark, anchor));
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    std::optional<Node> key{};  // of a mapping, once read and waiting for its value
    std::unordered_map<std::string, int> key_lines{};
  };

  Node make(Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) const {
    Node node;
    node.kind = kind;
    node.file = file_;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    if (anchor != 0) refuse_anchor(mark);
    return node;
  }

  // yaml-cpp takes a quote without an end for one that ends with the file, and a quote may pass over lines:
  // either swallows the keys behind a quotation mark that somebody forgot.
  void check_quotes(const Node& node, std::size_t at) const {
    const char quote = at < text_.size() ? text_[at] : '\0';
    if (quote != '"' && quote != '\'') return;  // a block scalar, which ends where its indentation does
    for (std::size_t i = at + 1; i < text_.size() && text_[i] != '\n' && text_[i] != '\r'; ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        if (quote == '"' || i + 1 == text_.size() || text_[i + 1] != quote) return;
        ++i;  // two of them stand for one
      }
    }
    fail(node, fmt::format("a quote without an end; a text in quotes ends with {} on its own line", quote));
  }

  [[noreturn]] void refuse_anchor(const YAML::Mark& mark) const {
    fail(make(Kind::null, mark, 0), "anchors and aliases are not read here; write the value out");
  }

  void open(Node node) {
    if (stack_.size() >= kMostDepth) fail(node, fmt::format("nested deeper than {} levels", kMostDepth));
    stack_.push_back({.node = std::move(node)});
  }

  void close() {
    Node node = std::move(stack_.back().node);
    stack_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      if (node.kind != Kind::scalar) fail(node, "a key must be a word");
      const auto [earlier, is_new] = parent.key_lines.try_emplace(node.text, node.line);
      if (!is_new)
        fail(node, fmt::format("duplicate key '{}', first given on line {}", node.text, earlier->second));
      parent.key = std::move(node);
    } else {
      if (node.kind == Kind::null) {  // a value left out has no place of its own
        node.line = parent.key->line;
        node.column = parent.key->column;
      }
      parent.node.entries.emplace_back(std::move(*parent.key), std::move(node));
      parent.key.reset();
    }
  }

  std::shared_ptr<const std::string> file_;
  std::string_view text_;
  std::vector<Open> stack_;
  Node root_;
};

Node at_position(const std::shared_ptr<const std::string>& file, int line, int column) {
  Node node;
  node.file = file;
  node.line = line;
  node.column = column;
  return node;
}

void refuse_tabs_and_controls(const std::string& text, const std::shared_ptr<const std::string>& file) {
  int line = 1;
  int column = 1;
  for (const char c : text) {
    if (c == '\t') fail(at_position(file, line, column), "a tab; YAML is indented with spaces");
    const bool control = static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r';
    if (control) {
      fail(
          at_position(file, line, column),
          fmt::format("a control character (0x{:02x}); this is no text file", static_cast<unsigned char>(c)));
    }
    if (c == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name.text == key) return &value;
  }
  return nullptr;
}

void fail(const Node& at, const std::string& message) {
  throw InputError(
      fmt::format("{}:{}:{}: {}", at.file ? *at.file : std::string("?"), at.line, at.column, message));
}

Node load(const std::string& path) { return parse(read_text_file(path, kMostBytes), path); }

Node parse(const std::string& text, const std::string& name) {
  const auto file = std::make_shared<const std::string>(name);
  refuse_tabs_and_controls(text, file);
  std::istringstream stream(text);
  std::string_view marked = text;  // yaml-cpp counts from behind a byte-order mark
  if (marked.starts_with("\xef\xbb\xbf")) marked.remove_prefix(3);
  try {
    YAML::Parser parser(stream);
    TreeBuilder first(file, marked);
    if (!parser.HandleNextDocument(first)) fail(at_position(file, 1, 1), "the document is empty");
    Node root = first.take();
    TreeBuilder second(file, marked);
    if (parser.HandleNextDocument(second)) {
      fail(second.take(), "a second document; a file holds one");
    }
    return root;
  } catch (const YAML::Exception& error) {
    fail(at_position(file, error.mark.line + 1, error.mark.column + 1), "not valid YAML: " + error.msg);
  }
}

std::string as_text(const Node& node, std::string_view what) {
  if (node.kind != Kind::scalar || node.text.empty()) fail(node, fmt::format("{} must be text", what));
  return node.text;
}

std::int64_t as_integer(const Node& node, std::string_view what, Range range) {
  const std::string wanted =
      fmt::format("{} must be a whole number from {} to {}", what, range.low, range.high);
  if (node.kind != Kind::scalar) fail(node, wanted);
  if (node.quoted) fail(node, wanted + ", without quotes");
  if (!is_plain_integer(node.text))
    fail(node, fmt::format("{} in plain decimal, not '{}'", wanted, node.text));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
  if (error != std::errc{} || value < range.low || value > range.high) {
    fail(node, fmt::format("{}, not {}", wanted, node.text));
  }
  return value;
}

double as_positive(const Node& node, std::string_view what) {
  double value = 0;
  if (node.kind == Kind::scalar && !node.quoted && is_plain_decimal(node.text)) {
    std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
  }
  if (!(value > 0)) fail(node, fmt::format("{} must be a number above zero, in plain decimal", what));
  return value;
}

bool as_bool(const Node& node, std::string_view what) {
  if (node.kind == Kind::scalar && !node.quoted) {
    if (node.text == "true") return true;
    if (node.text == "false") return false;
  }
  fail(node, fmt::format("{} must be true or false", what));
}

void fail_unknown(const Node& at, std::string_view what, std::string_view word,
                  const std::vector<std::string>& candidates) {
  fail(at,
       fmt::format("unknown {} '{}'; did you mean {}?", what, word, join_or(nearest(word, candidates, 1))));
}

Mapping::Mapping(const Node& node, std::string what) : node_(node), what_(std::move(what)) {
  if (node.kind != Kind::mapping) fail(node, fmt::format("{} must be a mapping of keys to values", what_));
}

bool Mapping::knows(std::string_view key) const {
  return std::find(known_.begin(), known_.end(), key) != known_.end();
}

const Node* Mapping::optional(std::string_view key) {
  if (!knows(key)) known_.emplace_back(key);
  const Node* value = node_.find(key);
  if (value != nullptr && value->kind == Kind::null) fail(*value, fmt::format("{} has no value", key));
  return value;
}

const Node& Mapping::require(std::string_view key) {
  const Node* value = optional(key);
  if (value == nullptr) fail(node_, fmt::format("{} lacks the key '{}'", what_, key));
  return *value;
}

std::string Mapping::text(std::string_view key) { return as_text(require(key), key); }

std::string Mapping::text_or(std::string_view key, std::string fallback) {
  const Node* value = optional(key);
  return value == nullptr ? fallback : as_text(*value, key);
}

std::int64_t Mapping::integer(std::string_view key, Range range) {
  return as_integer(require(key), key, range);
}

std::int64_t Mapping::integer_or(std::string_view key, Range range, std::int64_t fallback) {
  const Node* value = optional(key);
  return value == nullptr ? fallback : as_integer(*value, key, range);
}

double Mapping::positive(std::string_view key) { return as_positive(require(key), key); }

bool Mapping::flag_or(std::string_view key, bool fallback) {
  const Node* value = optional(key);
  return value == nullptr ? fallback : as_bool(*value, key);
}

std::vector<std::string> Mapping::text_list_or_empty(std::string_view key) {
  std::vector<std::string> result;
  const Node* value = optional(key);
  if (value == nullptr) return result;
  if (value->kind != Kind::sequence) fail(*value, fmt::format("{} must be a list", key));
  for (const Node& item : value->items) result.push_back(as_text(item, key));
  return result;
}

void Mapping::finish() const {
  for (const auto& [key, value] : node_.entries) {
    if (!knows(key.text)) fail_unknown(key, fmt::format("key in {}", what_), key.text, known_);
  }
}

}  // namespace memwall::yaml
