#include <algorithm>
#include <optional>
#include <stdexcept>

#include "huggingface/quantization_pattern.h"

namespace memwall {
namespace {

constexpr std::size_t kLongest = 1000;     // bytes of a pattern
constexpr std::size_t kNodes = 8000;       // of an automaton, once {m,n} is written out
constexpr std::size_t kDeepest = 50;       // groups inside groups
constexpr std::int64_t kRepetitions = 64;  // of {m,n}

using Set = std::bitset<256>;

[[noreturn]] void refuse(const char* why) { throw std::invalid_argument(why); }

Set of_byte(char c) { return Set().set(static_cast<unsigned char>(c)); }

Set of_range(char first, char last) {
  Set set;
  for (int c = static_cast<unsigned char>(first); c <= static_cast<unsigned char>(last); ++c) {
    set.set(static_cast<std::size_t>(c));
  }
  return set;
}

// What a backslash and this letter stand for.
Set escaped(char c) {
  const Set digits = of_range('0', '9');
  const Set words = digits | of_range('a', 'z') | of_range('A', 'Z') | of_byte('_');
  const Set blanks = of_byte(' ') | of_range('\t', '\r');
  switch (c) {
    case 'd':
      return digits;
    case 'D':
      return ~digits;
    case 'w':
      return words;
    case 'W':
      return ~words;
    case 's':
      return blanks;
    case 'S':
      return ~blanks;
    default:
      break;
  }
  if (words.test(static_cast<unsigned char>(c))) refuse("an escape other than \\d, \\w and \\s");
  return of_byte(c);
}

}  // namespace

// Thompson's construction, from the pattern's end to its begin: every part is compiled knowing what follows.
class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {
    if (text.size() > kLongest) refuse("more than 1000 bytes");
  }

  ModulePattern glob() {
    struct Part {
      Set set;
      bool any = false;
    };
    std::vector<Part> parts;
    while (!at_end()) {
      const char c = take();
      if (c == '*') {
        parts.push_back({Set(), true});
      } else if (c == '[') {
        parts.push_back({set('!')});
      } else {
        parts.push_back({c == '?' ? ~Set() : of_byte(c)});
      }
    }
    // The module itself, or a '.' and what is inside it.
    const std::uint16_t match = node({.kind = Kind::match});
    const std::uint16_t inside = step(of_byte('.'), any(match));
    std::uint16_t next =
        node({.kind = Kind::split, .next = node({.kind = Kind::end, .next = match}), .other = inside});
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      next = part->any ? any(next) : step(part->set, next);
    }
    return finish(next);
  }

  ModulePattern regex() {
    const Tree tree = alternatives(0);
    if (!at_end()) refuse("a ')' too many");
    return finish(compile(tree, any(node({.kind = Kind::match}))));
  }

 private:
  using Kind = ModulePattern::Kind;
  using Node = ModulePattern::Node;

  struct Tree {
    enum class Is : std::uint8_t { set, sequence, alternatives, repeat, begin, end } is = Is::sequence;
    Set set{};
    std::vector<Tree> parts{};
    std::int64_t least = 0;
    std::int64_t most = 0;  // of a repetition; -1: no limit
  };

  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  char take() {
    if (at_end()) refuse("it ends too early");
    return text_[at_++];
  }
  bool take_if(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  // Behind '['.
  Set set(char negation) {
    const bool negated = peek() == negation;
    if (negated) ++at_;
    Set all;
    for (bool first = true; first || peek() != ']'; first = false) {
      const char c = take();
      if (c == '\\') {
        all |= escaped(take());
      } else if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        all |= of_range(c, take());
      } else {
        all |= of_byte(c);
      }
    }
    ++at_;
    return negated ? ~all : all;
  }

  Tree alternatives(std::size_t depth) {
    if (depth > kDeepest) refuse("groups nested too deep");
    Tree all{.is = Tree::Is::alternatives};
    do {
      Tree sequence;
      while (!at_end() && peek() != '|' && peek() != ')') sequence.parts.push_back(repeated(depth));
      all.parts.push_back(std::move(sequence));
    } while (take_if("|"));
    return all;
  }

  Tree atom(std::size_t depth) {
    const char c = take();
    switch (c) {
      case '(': {
        if (!take_if("?:") && peek() == '?') refuse("a group '(?' other than '(?:'");
        Tree group = alternatives(depth + 1);
        if (!take_if(")")) refuse("a '(' without its ')'");
        return group;
      }
      case '[':
        return {.is = Tree::Is::set, .set = set('^')};
      case '\\':
        return {.is = Tree::Is::set, .set = escaped(take())};
      case '.':
        return {.is = Tree::Is::set, .set = ~of_byte('\n')};
      case '^':
        return {.is = Tree::Is::begin};
      case '$':
        return {.is = Tree::Is::end};
      case '*':
      case '+':
      case '?':
        refuse("a quantifier with nothing before it");
      default:
        return {.is = Tree::Is::set, .set = of_byte(c)};
    }
  }

  Tree repeated(std::size_t depth) {
    Tree tree = atom(depth);
    for (int quantifiers = 0;; ++quantifiers) {
      std::int64_t least = 0;
      std::int64_t most = -1;
      if (take_if("+")) {
        least = 1;
      } else if (take_if("?")) {
        most = 1;
      } else if (take_if("{")) {
        least = number();
        most = take_if(",") ? (peek() == '}' ? -1 : number()) : least;
        if (!take_if("}") || (most >= 0 && most < least)) refuse("a '{' without '{m,n}'");
      } else if (!take_if("*")) {
        return tree;
      }
      if (quantifiers > 0) refuse("two quantifiers in a row");
      if (tree.is == Tree::Is::begin || tree.is == Tree::Is::end) refuse("a quantifier behind '^' or '$'");
      take_if("?");  // lazy: the same names match
      Tree inner = std::move(tree);
      tree = {.is = Tree::Is::repeat, .least = least, .most = most};
      tree.parts.push_back(std::move(inner));
    }
  }

  std::int64_t number() {
    std::int64_t value = 0;
    if (peek() < '0' || peek() > '9') refuse("a '{' without '{m,n}'");
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (take() - '0');
      if (value > kRepetitions) refuse("more than 64 repetitions");
    }
    return value;
  }

  std::uint16_t compile(const Tree& tree, std::uint16_t next) {
    if (++compiled_ > 4 * kNodes) refuse("too large once its repetitions are written out");
    switch (tree.is) {
      case Tree::Is::set:
        return step(tree.set, next);
      case Tree::Is::sequence:
        for (auto part = tree.parts.rbegin(); part != tree.parts.rend(); ++part) next = compile(*part, next);
        return next;
      case Tree::Is::alternatives: {
        std::optional<std::uint16_t> all;
        for (auto part = tree.parts.rbegin(); part != tree.parts.rend(); ++part) {
          const std::uint16_t one = compile(*part, next);
          all = all ? node({.kind = Kind::split, .next = one, .other = *all}) : one;
        }
        return all.value_or(next);
      }
      case Tree::Is::repeat: {
        const Tree& part = tree.parts.front();
        if (tree.most < 0) {
          const std::uint16_t loop = node({.kind = Kind::split, .other = next});
          const std::uint16_t body = compile(part, loop);
          result_.nodes_[loop].next = body;
          next = loop;
        }
        for (std::int64_t i = tree.least; i < tree.most; ++i) {
          next = node({.kind = Kind::split, .next = compile(part, next), .other = next});
        }
        for (std::int64_t i = 0; i < tree.least; ++i) next = compile(part, next);
        return next;
      }
      case Tree::Is::begin:
        return node({.kind = Kind::begin, .next = next});
      case Tree::Is::end:
        return node({.kind = Kind::end, .next = next});
    }
    return next;
  }

  std::uint16_t node(Node added) {
    if (result_.nodes_.size() >= kNodes) refuse("too large once its repetitions are written out");
    result_.nodes_.push_back(added);
    return static_cast<std::uint16_t>(result_.nodes_.size() - 1);
  }

  std::uint16_t step(const Set& bytes, std::uint16_t next) {
    auto at = std::find(result_.sets_.begin(), result_.sets_.end(), bytes);
    if (at == result_.sets_.end()) at = result_.sets_.insert(at, bytes);
    return node(
        {.kind = Kind::set, .next = next, .set = static_cast<std::uint16_t>(at - result_.sets_.begin())});
  }

  std::uint16_t any(std::uint16_t next) {
    const std::uint16_t loop = node({.kind = Kind::split, .other = next});
    const std::uint16_t body = step(~Set(), loop);
    result_.nodes_[loop].next = body;
    return loop;
  }

  ModulePattern finish(std::uint16_t first) {
    result_.first_ = first;
    return std::move(result_);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t compiled_ = 0;
  ModulePattern result_;
};

ModulePattern ModulePattern::glob(std::string_view text) { return PatternParser(text).glob(); }
ModulePattern ModulePattern::regex(std::string_view text) { return PatternParser(text).regex(); }

}  // namespace memwall
