#include "huggingface/quantization_pattern.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace memwall {

void ModulePattern::close(std::uint16_t first, bool at_begin, Closing& closing, States& states) const {
  closing.open.assign(1, first);
  while (!closing.open.empty()) {
    const std::uint16_t index = closing.open.back();
    closing.open.pop_back();
    if (closing.seen[index] == closing.pass) continue;
    closing.seen[index] = closing.pass;
    const Node& node = nodes_[index];
    switch (node.kind) {
      case Kind::split:
        closing.open.push_back(node.next);
        closing.open.push_back(node.other);
        break;
      case Kind::begin:
        if (at_begin) closing.open.push_back(node.next);
        break;
      case Kind::set:
      case Kind::end:
      case Kind::match:
        states.push_back(index);
        break;
    }
  }
}

ModulePattern::States ModulePattern::start() const {
  States states;
  Closing closing(nodes_.size());
  close(first_, true, closing, states);
  std::sort(states.begin(), states.end());
  return states;
}

ModulePattern::States ModulePattern::advance(const States& states, std::string_view bytes,
                                             Budget& budget) const {
  States now = states;
  States next;
  Closing closing(nodes_.size());
  for (const char c : bytes) {
    if (now.empty()) break;
    // Closing over the next states costs at most a pass over the automaton.
    budget.steps -= static_cast<std::int64_t>(nodes_.size());
    if (budget.steps < 0) throw std::length_error("too many steps");
    ++closing.pass;
    next.clear();
    for (const std::uint16_t index : now) {
      const Node& node = nodes_[index];
      const bool takes = node.kind == Kind::set && sets_[node.set].test(static_cast<unsigned char>(c));
      if (takes) close(node.next, false, closing, next);
    }
    std::swap(now, next);
  }
  std::sort(now.begin(), now.end());
  return now;
}

bool ModulePattern::matches(const States& states) const {
  // At the end '$' holds, and so does what follows it.
  States reached = states;
  Closing closing(nodes_.size());
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const Node& node = nodes_[reached[i]];
    if (node.kind == Kind::match) return true;
    if (node.kind == Kind::end) close(node.next, false, closing, reached);
  }
  return false;
}

}  // namespace memwall
