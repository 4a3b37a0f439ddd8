// The tables behind class_defaults() (family.h), one for decoders with experts, one for the others.
#pragma once

#include <span>
#include <string_view>

namespace memwall {

struct ClassDefaults {
  std::string_view type;
  const char* json = "{}";
};

std::span<const ClassDefaults> moe_class_defaults();

}  // namespace memwall
