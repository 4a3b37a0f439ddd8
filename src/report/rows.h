// Rows of figures as CSV and Markdown, columns named by the dotted JSON keys.
#pragma once

#include <string>
#include <vector>

#include "report/json.h"

namespace memwall {

// Nested objects flattened to dotted keys; an array of layer numbers becomes "0-31", any other array its
// values joined by ';' (arrays of objects are left out: they are rows of their own).
Json flatten(const Json& object);

// Rows that are written one at a time, though their columns are the union of all rows' keys, in order of
// first appearance: every row is shown to note() first, and made again to be written. A missing value is
// empty.
class RowWriter {
 public:
  void note(const Json& row);
  // CSV per RFC 4180, lines ending in \n.
  std::string csv_head() const;
  std::string csv_line(const Json& row) const;
  std::string markdown_head() const;
  std::string markdown_line(const Json& row) const;

 private:
  struct Column {
    std::string name;
    bool numeric = true;
  };
  std::vector<Column> columns_;
};

// All rows at once.
std::string to_csv(const std::vector<Json>& rows);
std::string to_markdown(const std::vector<Json>& rows);

// "0-3,8" of ascending whole numbers.
std::string number_ranges(const std::vector<long long>& numbers);

}  // namespace memwall
