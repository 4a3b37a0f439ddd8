// The element types of ggml, by the number that GGUF files give them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "format/format.h"

namespace memwall {

// `block` elements along a row take `bytes` bytes, scales included.
struct GgmlType {
  std::uint32_t id;
  std::string_view name;  // as gguf-py and the file names of published models write it: "Q4_K", "BF16"
  std::int64_t block;
  std::int64_t bytes;
  std::int64_t row_bytes = 0;  // before each row's blocks: its scale
  bool fork = false;           // of ik_llama.cpp, not of ggml
};

// nullptr where ggml defines no such type, or no longer does.
const GgmlType* find_ggml_type(std::uint32_t id);
const GgmlType* find_ggml_type(std::string_view name);

// The name of a type that ggml has dropped from files; empty for any other.
std::string_view removed_ggml_type(std::uint32_t id);

// A number that no table knows but that a fork of ggml may have given: below 1024.
bool may_be_ggml_type(std::uint32_t id);

// The weight format that lays out its bytes as the type does, or nothing: ggml's integers and helper types
// are no weight formats, and its NVFP4 has no f32 scale within the tensor. Rows repacked side by side
// ("Q4_K_R4") have the format of the type that they repack.
std::optional<Format> weight_format(const GgmlType& type);

}  // namespace memwall
