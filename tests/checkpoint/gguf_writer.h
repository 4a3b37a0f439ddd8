// Writes GGUF files for tests: a header in full, and data that are a hole in the file, so that a model of any
// size costs nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/ggml_types.h"

namespace memwall {

// The numbers that GGUF gives the types of values.
enum class GgufType : std::uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  string,
  array,
  uint64,
  int64,
  float64
};

class GgufWriter {
 public:
  // What a sound file never changes; the tests of refusals do.
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // of the data; the key general.alignment is the caller's to add
  std::optional<std::uint64_t> tensor_count;
  std::optional<std::uint64_t> key_count;

  template <typename T>
  static std::string packed(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof(T)};
  }
  static std::string packed_text(std::string_view text) {
    return packed<std::uint64_t>(text.size()) + std::string(text);
  }

  // A key whose value is `bytes`, whatever they are.
  GgufWriter& raw(std::string_view key, std::uint32_t type, std::string_view bytes) {
    keys_.append(packed_text(key)).append(packed(type)).append(bytes);
    ++keys_written_;
    return *this;
  }
  template <typename T>
  GgufWriter& scalar(std::string_view key, GgufType type, T value) {
    return raw(key, static_cast<std::uint32_t>(type), packed(value));
  }
  template <typename T>
  GgufWriter& array(std::string_view key, GgufType type, const std::vector<T>& values) {
    std::string bytes = array_begin(type, values.size());
    for (const T& value : values) bytes += packed(value);
    return raw(key, static_cast<std::uint32_t>(GgufType::array), bytes);
  }
  static std::string array_begin(GgufType type, std::uint64_t count) {
    return packed(static_cast<std::uint32_t>(type)) + packed(count);
  }

  GgufWriter& text(std::string_view key, std::string_view value) {
    return raw(key, static_cast<std::uint32_t>(GgufType::string), packed_text(value));
  }
  GgufWriter& texts(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes = array_begin(GgufType::string, values.size());
    for (const std::string& value : values) bytes += packed_text(value);
    return raw(key, static_cast<std::uint32_t>(GgufType::array), bytes);
  }
  GgufWriter& integer(std::string_view key, std::uint32_t value) {
    return scalar(key, GgufType::uint32, value);
  }
  GgufWriter& integers(std::string_view key, const std::vector<std::int32_t>& values) {
    return array(key, GgufType::int32, values);
  }
  GgufWriter& number(std::string_view key, float value) { return scalar(key, GgufType::float32, value); }
  GgufWriter& flag(std::string_view key, bool value) {
    return scalar<std::uint8_t>(key, GgufType::boolean, value ? 1 : 0);
  }

  // `ne` as GGUF writes it, the fastest dimension first: {in, out}. `type` as ggml names it: "Q4_K".
  GgufWriter& tensor(std::string_view name, std::string_view type, const std::vector<std::uint64_t>& ne) {
    const GgmlType& known = *find_ggml_type(type);
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : ne) elements *= extent;
    const auto begin = data_bytes_;
    tensor_at(name, known.id, ne, begin);
    data_bytes_ +=
        padded(elements / static_cast<std::uint64_t>(known.block) * static_cast<std::uint64_t>(known.bytes) +
               elements / ne.front() * static_cast<std::uint64_t>(known.row_bytes));
    return *this;
  }
  // A type that no table knows, whose data take `bytes`.
  GgufWriter& tensor_of(std::string_view name, std::uint32_t type, const std::vector<std::uint64_t>& ne,
                        std::uint64_t bytes) {
    tensor_at(name, type, ne, data_bytes_);
    data_bytes_ += padded(bytes);
    return *this;
  }
  // The same with any type and offset, and no room for its data.
  GgufWriter& tensor_at(std::string_view name, std::uint32_t type, const std::vector<std::uint64_t>& ne,
                        std::uint64_t offset) {
    tensors_.append(packed_text(name)).append(packed(static_cast<std::uint32_t>(ne.size())));
    for (const std::uint64_t extent : ne) tensors_.append(packed(extent));
    tensors_.append(packed(type)).append(packed(offset));
    ++tensors_written_;
    return *this;
  }

  // Without the padding behind it.
  std::string header() const {
    return magic + packed(version) + packed(tensor_count.value_or(tensors_written_)) +
           packed(key_count.value_or(keys_written_)) + keys_ + tensors_;
  }
  std::uint64_t data_begin() const { return padded(header().size()); }
  std::uint64_t data_bytes() const { return data_bytes_; }

  void write(const std::filesystem::path& path) const {
    std::ofstream(path, std::ios::binary) << header();
    std::filesystem::resize_file(path, data_begin() + data_bytes_);
  }

 private:
  std::uint64_t padded(std::uint64_t bytes) const { return (bytes + alignment - 1) / alignment * alignment; }

  std::string keys_;
  std::string tensors_;
  std::uint64_t keys_written_ = 0;
  std::uint64_t tensors_written_ = 0;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace memwall
