#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "checkpoint/gguf_part.h"

namespace memwall {
namespace {

// enum gguf_type in ggml/include/gguf.h of llama.cpp.
enum class Type : std::uint32_t {
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
  float64,
};

struct TypeSize {
  std::string_view name;
  std::uint64_t least_bytes;  // an empty string is its length alone, an empty array its type and count
};

constexpr std::array kTypes = {
    TypeSize{"uint8", 1},   TypeSize{"int8", 1},   TypeSize{"uint16", 2},  TypeSize{"int16", 2},
    TypeSize{"uint32", 4},  TypeSize{"int32", 4},  TypeSize{"float32", 4}, TypeSize{"bool", 1},
    TypeSize{"string", 8},  TypeSize{"array", 12}, TypeSize{"uint64", 8},  TypeSize{"int64", 8},
    TypeSize{"float64", 8},
};

constexpr std::uint64_t kMostNumbers = 65'536;  // of an array that is kept; per-layer values are far fewer
constexpr std::uint64_t kMostStrings = 64;
constexpr std::uint64_t kMostText = 1 << 20;
constexpr int kMostDepth = 4;

// Reads one key's value; the key is for the messages.
class ValueReader {
 public:
  ValueReader(GgufBytes& bytes, const std::string& key) : bytes_(bytes), key_(key) {}

  GgufValue value() {
    switch (const Type kind = type()) {
      case Type::boolean:
        return {boolean()};
      case Type::uint64:
        return {bytes_.number<std::uint64_t>()};
      case Type::float32:
      case Type::float64:
        return {floating(kind)};
      case Type::string:
        return string();
      case Type::array:
        return {array()};
      default:
        return {integer(kind)};
    }
  }

 private:
  Type type() {
    const std::int64_t at = bytes_.position();
    const auto number = bytes_.number<std::uint32_t>();
    if (number >= kTypes.size()) {
      bytes_.fail(at, fmt::format("'{}' has a value of type {}, but GGUF defines 0 to {}", excerpt(key_),
                                  number, kTypes.size() - 1));
    }
    return Type{number};
  }

  bool boolean() {
    const std::int64_t at = bytes_.position();
    const auto byte = bytes_.number<std::uint8_t>();
    if (byte > 1)
      bytes_.fail(at, fmt::format("'{}' is a bool of {}, but one is 0 or 1", excerpt(key_), byte));
    return byte == 1;
  }

  double floating(Type kind) {
    return kind == Type::float32 ? static_cast<double>(bytes_.number<float>()) : bytes_.number<double>();
  }

  std::int64_t integer(Type kind) {
    switch (kind) {
      case Type::uint8:
        return bytes_.number<std::uint8_t>();
      case Type::int8:
        return bytes_.number<std::int8_t>();
      case Type::uint16:
        return bytes_.number<std::uint16_t>();
      case Type::int16:
        return bytes_.number<std::int16_t>();
      case Type::uint32:
        return bytes_.number<std::uint32_t>();
      case Type::int32:
        return bytes_.number<std::int32_t>();
      case Type::uint64:
        return static_cast<std::int64_t>(std::min<std::uint64_t>(bytes_.number<std::uint64_t>(),
                                                                 std::numeric_limits<std::int64_t>::max()));
      case Type::boolean:
        return boolean() ? 1 : 0;
      default:
        return bytes_.number<std::int64_t>();
    }
  }

  GgufValue string() {
    const auto length = bytes_.number<std::uint64_t>();
    if (length <= kMostText) return {bytes_.text(length)};
    bytes_.skip(length);
    GgufArray skipped;
    skipped.type = "uint8";
    skipped.count = length;
    return {skipped};
  }

  // The elements' type and their number, which is checked before anything is reserved for them.
  std::pair<Type, std::uint64_t> array_begin(int depth) {
    const std::int64_t at = bytes_.position();
    if (depth > kMostDepth) {
      bytes_.fail(at, fmt::format("'{}' nests arrays deeper than {}", excerpt(key_), kMostDepth));
    }
    const Type kind = type();
    const auto count = bytes_.number<std::uint64_t>();
    const TypeSize& size = kTypes[static_cast<std::size_t>(kind)];
    if (count > static_cast<std::uint64_t>(bytes_.left()) / size.least_bytes) {
      bytes_.fail(
          at, fmt::format("'{}' has {} elements of type {}, but the file ends after {} bytes more: a damaged "
                          "file or an incomplete download",
                          excerpt(key_), count, size.name, bytes_.left()));
    }
    return {kind, count};
  }

  GgufArray array() {
    GgufArray array;
    const auto [kind, count] = array_begin(1);
    array.type = kTypes[static_cast<std::size_t>(kind)].name;
    array.count = count;
    if (kind == Type::string ? count > kMostStrings : (kind == Type::array || count > kMostNumbers)) {
      skip_elements(kind, count, 1);
    } else if (kind == Type::string) {
      bytes_.keep(count * sizeof(std::string));
      for (std::uint64_t i = 0; i < count; ++i) {
        array.strings.push_back(bytes_.text(bytes_.number<std::uint64_t>()));
      }
    } else {
      bytes_.keep(count * sizeof(std::int64_t));
      if (kind == Type::float32 || kind == Type::float64) {
        array.numbers.resize(static_cast<std::size_t>(count));
        for (double& number : array.numbers) number = floating(kind);
      } else {
        array.integers.resize(static_cast<std::size_t>(count));
        for (std::int64_t& number : array.integers) number = integer(kind);
      }
    }
    return array;
  }

  void skip_elements(Type kind, std::uint64_t count, int depth) {
    if (kind == Type::string) {
      for (std::uint64_t i = 0; i < count; ++i) bytes_.skip(bytes_.number<std::uint64_t>());
    } else if (kind == Type::array) {
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto [inner, inner_count] = array_begin(depth + 1);
        skip_elements(inner, inner_count, depth + 1);
      }
    } else {
      bytes_.skip(count * kTypes[static_cast<std::size_t>(kind)].least_bytes);
    }
  }

  GgufBytes& bytes_;
  const std::string& key_;
};

}  // namespace

GgufValue read_gguf_value(GgufBytes& bytes, const std::string& key) {
  return ValueReader(bytes, key).value();
}

}  // namespace memwall
