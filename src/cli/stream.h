// Results of a grid, written one at a time: a million of them take no more memory than one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "report/json.h"
#include "report/output.h"

namespace memwall {

// Calls its argument with each of a sequence, the same ones every time that it is run.
using JsonSequence = std::function<void(const std::function<void(const Json&)>&)>;

// Writes `document` as write_result does, its empty array `key` filled with the sequence: byte by byte what
// the whole document would be. Runs the sequence once.
void write_json(Output& output, const Json& document, const std::string& key, const JsonSequence& items);

// Rows as CSV or Markdown (`format`). Runs the sequence twice, first for its columns.
void write_rows(Output& output, OutputFormat format, const JsonSequence& rows);

// One of the lists whose combinations are a grid.
struct ListLength {
  std::string name;  // of several: "batches"
  std::size_t length = 1;
};
// Throws InputError where the combinations of the lists are more than `most`, before anything is made of
// them: "4,000,000 results (2,000 batches × 2,000 contexts) are more than the 10,000 that `taker` takes at
// once".
void require_combinations(const std::vector<ListLength>& lists, std::uint64_t most, const std::string& taker);

}  // namespace memwall
