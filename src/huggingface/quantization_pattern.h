// Globs and regular expressions over module names, as quantization_config writes them, matched in time linear
// in the name: a file decides on both, and std::regex takes exponential time for some of them.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace memwall {

class ModulePattern {
 public:
  // States an automaton is in, ascending; what a name's next bytes do depends on nothing else.
  using States = std::vector<std::uint16_t>;

  // Steps an automaton may still take: whoever compiles many patterns shares one among them.
  struct Budget {
    std::int64_t steps = 0;
  };

  // '*', '?' and [sets], as fnmatch has them. What matches a module matches what is inside it, too.
  // Throws std::invalid_argument with the reason.
  static ModulePattern glob(std::string_view text);
  // Python's re.match: tied to the name's begin, not to its end. Knows literals, escapes, '.', [sets],
  // groups, '|', '^' and '$' and the quantifiers; look-around and back-references are refused.
  // Throws std::invalid_argument with the reason.
  static ModulePattern regex(std::string_view text);

  States start() const;
  // Throws std::length_error where the budget is spent.
  States advance(const States& states, std::string_view bytes, Budget& budget) const;
  // The name ends here: does it match?
  bool matches(const States& states) const;

 private:
  friend class PatternParser;

  enum class Kind : std::uint8_t { set, split, begin, end, match };
  struct Node {
    Kind kind = Kind::match;
    std::uint16_t next = 0;
    std::uint16_t other = 0;  // of a split
    std::uint16_t set = 0;
  };

  // What closing over nodes keeps from one to the next: those seen in this pass, those to look at.
  struct Closing {
    explicit Closing(std::size_t nodes) : seen(nodes) {}
    std::vector<std::uint32_t> seen;
    std::vector<std::uint16_t> open;
    std::uint32_t pass = 1;
  };

  // Adds `first` and what is reached from it without a byte.
  void close(std::uint16_t first, bool at_begin, Closing& closing, States& states) const;

  std::vector<Node> nodes_;
  std::vector<std::bitset<256>> sets_;
  std::uint16_t first_ = 0;
};

}  // namespace memwall
