// What the header of a GGUF file says: the format that llama.cpp and its kin read. The tensors' data are
// never read. Layout: docs/gguf.md of ggml.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "checkpoint/stored_tensor.h"
#include "input/numbers.h"

namespace memwall {

// An array of the metadata. The values of a long one (a vocabulary) are skipped: only its count is kept.
struct GgufArray {
  std::string type;                    // the elements': "uint32", "string", "array"
  std::uint64_t count = 0;             // elements in the file
  std::vector<std::int64_t> integers;  // bools as 0 and 1; a uint64 past 2^63 - 1 as that
  std::vector<double> numbers;         // float32 and float64
  std::vector<std::string> strings;

  // True where every element is in the one of the three vectors that its type belongs to.
  bool is_kept() const;
};

// A text longer than 1 MiB is an array of bytes here, and none of them is kept.
struct GgufValue {
  std::variant<bool, std::int64_t, std::uint64_t, double, std::string, GgufArray> value;
};

inline constexpr Range kNotNegative{0, std::numeric_limits<std::int64_t>::max()};

// One model: a file, or all the parts of a split one. The getters throw InputError where the value is of
// another type or out of range, and those without a fallback where the key is missing.
struct Gguf {
  std::string path;                // as given to read_gguf
  std::vector<std::string> files;  // of which it was read, in the order of the parts
  std::uint32_t version = 0;
  std::map<std::string, GgufValue> metadata;  // of a split model: the first part's
  std::vector<StoredTensor> tensors;          // in the files' order
  // The data sections, summed over the files: each from the end of the header, aligned, to the end of the
  // file. Each tensor's bytes, padded to the alignment, add up to this in a file without waste.
  std::int64_t data_bytes = 0;
  std::uint64_t alignment = 32;

  bool has(const std::string& key) const;
  const std::string& text(const std::string& key) const;
  std::string text_or(const std::string& key, const std::string& fallback) const;
  std::int64_t integer(const std::string& key, Range range = kNotNegative) const;
  std::int64_t integer_or(const std::string& key, std::int64_t fallback, Range range = kNotNegative) const;
  double number_or(const std::string& key, double fallback) const;  // finite; an integer will do
  bool flag_or(const std::string& key, bool fallback) const;
  // Some models give one value a layer where others give one for all: an array's, or the only one.
  std::vector<std::int64_t> integers(const std::string& key, Range range = kNotNegative) const;
};

// Reads the header of `path`, and of all the parts where it is one of a split model
// (NAME-00001-of-00003.gguf). A file that holds a vocabulary alone has no tensors; that is no error here.
// Throws InputError where a file is no GGUF file, damaged, cut short, or unlike any model in its size.
Gguf read_gguf(const std::string& path);

}  // namespace memwall
