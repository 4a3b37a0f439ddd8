// Writes safetensors files for tests. Their tensors are zeros that take no room on disk, so that a test may
// write a model of any size.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/temporary_folder.h"

namespace memwall {

// The header's length, the header, and `data_bytes` zeros.
inline void write_safetensors(const std::string& path, std::string_view header, std::int64_t data_bytes) {
  std::string length;
  for (int i = 0; i < 8; ++i)
    length += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i) & 0xff);
  write_text(path, length + std::string(header));
  std::filesystem::resize_file(path, 8 + header.size() + static_cast<std::uintmax_t>(data_bytes));
}

class SafetensorsWriter {
 public:
  SafetensorsWriter& metadata(const std::string& key, const std::string& value) {
    metadata_[key] = value;
    return *this;
  }

  // The tensors' data follow one another. A name must need no escapes.
  SafetensorsWriter& add(const std::string& name, const std::string& dtype,
                         const std::vector<std::int64_t>& shape) {
    static const std::map<std::string, std::int64_t> kBits = {
        {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16}, {"U16", 16}, {"F16", 16}, {"BF16", 16},
        {"I32", 32}, {"U32", 32},    {"F32", 32},    {"C64", 64}, {"F64", 64}, {"I64", 64}, {"U64", 64}};
    const auto bits = kBits.find(dtype);
    std::int64_t size = bits == kBits.end() ? 8 : bits->second;
    for (const std::int64_t extent : shape) size *= extent;
    const std::int64_t begin = data_bytes_;
    data_bytes_ += size / 8;
    entries_.push_back(fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name,
                                   dtype, fmt::join(shape, ","), begin, data_bytes_));
    return *this;
  }

  std::string header() const {
    std::vector<std::string> entries = entries_;
    if (!metadata_.empty()) {
      std::vector<std::string> texts;
      for (const auto& [key, value] : metadata_) texts.push_back(fmt::format(R"("{}":"{}")", key, value));
      entries.insert(entries.begin(), fmt::format(R"("__metadata__":{{{}}})", fmt::join(texts, ",")));
    }
    return fmt::format("{{{}}}", fmt::join(entries, ","));
  }

  std::int64_t data_bytes() const { return data_bytes_; }

  void write(const std::string& path) const { write_safetensors(path, header(), data_bytes_); }

 private:
  std::map<std::string, std::string> metadata_;
  std::vector<std::string> entries_;
  std::int64_t data_bytes_ = 0;
};

}  // namespace memwall
