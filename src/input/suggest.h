// "Did you mean": the known words nearest to one that is not known.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

// Up to `most` of `candidates`, nearest first: by edit distance with transpositions (optimal string
// alignment), where a candidate that holds the word, or is held by it, counts as near. Letters' case is
// ignored.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates,
                                 std::size_t most);

// Insertions, deletions, substitutions and swaps of neighbours from one to the other; letters' case is
// ignored.
std::size_t edits(std::string_view a, std::string_view b);

// True where a slip of the fingers may lie between them: a third of the longer one's letters at most.
bool is_near(std::string_view a, std::string_view b);

// The text with its ASCII letters in lower case: names are found whatever their case.
std::string lower_case(std::string_view text);

// "a, b or c".
std::string join_or(const std::vector<std::string>& words);

}  // namespace memwall
