// Rows of figures as CSV and Markdown, columns named by the dotted JSON keys.
#pragma once

#include <string>
#include <vector>

#include "report/json.h"

namespace memwall {

// Nested objects flattened to dotted keys; an array of layer numbers becomes "0-31", any other array its
// values joined by ';' (arrays of objects are left out: they are rows of their own).
Json flatten(const Json& object);

// The rows' columns are the union of their keys, in order of first appearance; a missing value is empty.
// CSV per RFC 4180, lines ending in \n.
std::string to_csv(const std::vector<Json>& rows);
std::string to_markdown(const std::vector<Json>& rows);

// "0-3,8" of ascending whole numbers.
std::string number_ranges(const std::vector<long long>& numbers);

}  // namespace memwall
