// Keys of a config.json on which no count and no byte depends, each with the reason; and what a key must be
// called and hold to state a size. Together they tell of a key that nobody read whether figures may be wrong
// without it.
#pragma once

#include <string_view>

#include "input/json.h"

namespace memwall {

// Why no count of that model_type depends on a key; "" where nothing is known of it.
std::string_view inert_reason(std::string_view model_type, std::string_view key);
inline bool is_inert(std::string_view model_type, std::string_view key) {
  return !inert_reason(model_type, key).empty();
}

// Whether a key names sizes, counts, ranks, gates or the like, and its value is one: a number above 0, true,
// or a list or object that holds something.
bool states_a_size(std::string_view key, const json::Value& value);

}  // namespace memwall
