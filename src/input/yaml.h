// YAML documents, read strictly: one document, no anchors or aliases, no duplicate keys, no tabs, numbers
// in plain decimal only. yaml-cpp parses; this refuses what it would let pass.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "input/numbers.h"

namespace memwall::yaml {

enum class Kind { null, scalar, sequence, mapping };

// A node and where it stands. Mapping entries keep their order; keys are plain text.
struct Node {
  Kind kind = Kind::null;
  std::string text;     // of a scalar
  bool quoted = false;  // "4" and 4 are not the same thing
  std::vector<Node> items;
  std::vector<std::pair<Node, Node>> entries;
  std::shared_ptr<const std::string> file;
  int line = 0;  // 1-based
  int column = 0;

  const Node* find(std::string_view key) const;
};

// Throws InputError "FILE:LINE:COLUMN: message" at the node.
[[noreturn]] void fail(const Node& at, const std::string& message);

// Reads and parses a file of at most 1 MiB. Throws InputError.
Node load(const std::string& path);
// The same for text in memory; `name` stands for the file in messages.
Node parse(const std::string& text, const std::string& name);

// Values of a scalar node. Each throws InputError at the node; `what` names the value.
std::string as_text(const Node& node, std::string_view what);
std::int64_t as_integer(const Node& node, std::string_view what, Range range);
double as_positive(const Node& node, std::string_view what);
bool as_bool(const Node& node, std::string_view what);

// A mapping read key by key. Every key asked for is known from then on; finish() refuses the others and
// names the nearest known one.
class Mapping {
 public:
  // Throws InputError where `node` is no mapping; `what` names it in messages ("attention").
  Mapping(const Node& node, std::string what);

  const Node* optional(std::string_view key);
  const Node& require(std::string_view key);  // throws InputError where it is missing

  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string fallback);
  std::int64_t integer(std::string_view key, Range range);
  std::int64_t integer_or(std::string_view key, Range range, std::int64_t fallback);
  double positive(std::string_view key);
  bool flag_or(std::string_view key, bool fallback);
  std::vector<std::string> text_list_or_empty(std::string_view key);

  const Node& node() const { return node_; }
  const std::string& what() const { return what_; }
  bool knows(std::string_view key) const;
  void finish() const;

 private:
  const Node& node_;
  std::string what_;
  std::vector<std::string> known_;
};

// Throws InputError at `at`: `word` is none of `candidates`, the nearest of which is named.
[[noreturn]] void fail_unknown(const Node& at, std::string_view what, std::string_view word,
                               const std::vector<std::string>& candidates);

}  // namespace memwall::yaml
