// Where a null in a config.json stands for a key that is left out, and where no code can run with it.
#pragma once

#include <string_view>

namespace memwall {

// Whether a configuration of that model_type may hold null for the key: where nothing is known of it, it may.
bool takes_null(std::string_view model_type, std::string_view key);

}  // namespace memwall
