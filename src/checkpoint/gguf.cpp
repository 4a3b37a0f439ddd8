#include "checkpoint/gguf.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "checkpoint/gguf_part.h"
#include "input/error.h"

namespace memwall {
namespace {

constexpr std::int64_t kMostParts = 1024;

std::string_view kind_of(const GgufValue& value) {
  constexpr std::string_view kNames[] = {"a bool",   "an integer", "an integer",
                                         "a number", "a text",     "an array"};
  return kNames[value.value.index()];
}

class Getter {
 public:
  Getter(const Gguf& file, const std::string& key) : file_(file), key_(key) {}

  const GgufValue* find() const {
    const auto found = file_.metadata.find(key_);
    return found == file_.metadata.end() ? nullptr : &found->second;
  }
  const GgufValue& get() const {
    const GgufValue* value = find();
    if (value == nullptr)
      throw InputError(fmt::format("{}: the metadata key '{}' is missing", file_.path, key_));
    return *value;
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(fmt::format("{}: '{}' {}", file_.path, key_, message));
  }
  [[noreturn]] void wrong_kind(const GgufValue& value, std::string_view expected) const {
    fail(fmt::format("is {}; it must be {}", kind_of(value), expected));
  }

  std::int64_t in_range(std::int64_t integer, Range range) const {
    if (integer < range.low || integer > range.high) {
      fail(fmt::format("is {}; it must be {} to {}", integer, range.low, range.high));
    }
    return integer;
  }
  std::int64_t integer(const GgufValue& value, Range range) const {
    if (const auto* integer = std::get_if<std::int64_t>(&value.value)) return in_range(*integer, range);
    if (const auto* integer = std::get_if<std::uint64_t>(&value.value)) {
      if (!std::in_range<std::int64_t>(*integer)) {
        fail(fmt::format("is {}; it must be {} to {}", *integer, range.low, range.high));
      }
      return in_range(static_cast<std::int64_t>(*integer), range);
    }
    wrong_kind(value, "an integer");
  }

 private:
  const Gguf& file_;
  const std::string& key_;
};

// Where a file stands among the parts of a split model; one part for any other.
struct Split {
  std::int64_t number = 0;
  std::int64_t count = 1;
  std::optional<std::int64_t> tensors;  // of all parts together
};

Split split_of(const std::string& path, const GgufPart& part) {
  Gguf file;  // for its getters
  file.path = path;
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) {
    if (const auto found = part.metadata.find(key); found != part.metadata.end())
      file.metadata.insert(*found);
  }
  Split split;
  split.count = file.integer_or("split.count", 1, {0, kMostParts});
  if (split.count <= 1) return Split{};
  split.number = file.integer("split.no", {0, split.count - 1});
  if (file.has("split.tensors.count")) split.tensors = file.integer("split.tensors.count");
  return split;
}

// As gguf-split and gguf-py name them.
std::string part_suffix(std::int64_t number, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

void append(Gguf& model, const std::string& path, GgufPart&& part) {
  model.files.push_back(path);
  model.data_bytes += part.data_bytes;
  model.tensors.insert(model.tensors.end(), std::make_move_iterator(part.tensors.begin()),
                       std::make_move_iterator(part.tensors.end()));
  if (model.files.size() > 1) return;
  model.version = part.version;
  model.alignment = part.alignment;
  model.metadata = std::move(part.metadata);
}

// Reads all parts, of which `given` is one.
void read_parts(Gguf& model, GgufPart&& given, const Split& split, GgufBudget& budget) {
  const std::string suffix = part_suffix(split.number, split.count);
  const std::string& path = model.path;
  if (path.size() < suffix.size() || path.substr(path.size() - suffix.size()) != suffix) {
    throw InputError(fmt::format("{}: is part {} of {}; name it NAME{} so that the other parts can be found",
                                 path, split.number + 1, split.count, suffix));
  }
  const std::string stem = path.substr(0, path.size() - suffix.size());
  for (std::int64_t number = 0; number < split.count; ++number) {
    if (number == split.number) {
      append(model, path, std::move(given));
      continue;
    }
    const std::string part_path = stem + part_suffix(number, split.count);
    std::error_code error;
    if (std::filesystem::status(part_path, error).type() == std::filesystem::file_type::not_found) {
      throw InputError(
          fmt::format("{}: part {} of {} is missing: {}", path, number + 1, split.count, part_path));
    }
    GgufPart part = read_gguf_part(part_path, budget);
    const Split other = split_of(part_path, part);
    if (other.number != number || other.count != split.count || other.tensors != split.tensors) {
      throw InputError(
          fmt::format("{}: does not belong with {}: their split.count, split.no or split.tensors.count "
                      "do not fit together",
                      part_path, path));
    }
    append(model, part_path, std::move(part));
  }
  if (split.tensors && static_cast<std::uint64_t>(*split.tensors) != model.tensors.size()) {
    throw InputError(fmt::format("{}: the {} parts hold {} tensors, but split.tensors.count says {}", path,
                                 split.count, model.tensors.size(), *split.tensors));
  }
  std::set<std::string_view> names;
  for (const StoredTensor& tensor : model.tensors) {
    if (!names.insert(tensor.name).second) {
      throw InputError(fmt::format("{}: two parts hold the tensor '{}'", path, excerpt(tensor.name)));
    }
  }
}

}  // namespace

bool GgufArray::is_kept() const {
  return static_cast<std::uint64_t>(integers.size() + numbers.size() + strings.size()) == count;
}

bool Gguf::has(const std::string& key) const { return metadata.count(key) != 0; }

const std::string& Gguf::text(const std::string& key) const {
  const Getter getter(*this, key);
  const GgufValue& value = getter.get();
  const auto* text = std::get_if<std::string>(&value.value);
  if (text == nullptr) getter.wrong_kind(value, "a text");
  return *text;
}

std::string Gguf::text_or(const std::string& key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

std::int64_t Gguf::integer(const std::string& key, Range range) const {
  const Getter getter(*this, key);
  return getter.integer(getter.get(), range);
}

std::int64_t Gguf::integer_or(const std::string& key, std::int64_t fallback, Range range) const {
  return has(key) ? integer(key, range) : fallback;
}

double Gguf::number_or(const std::string& key, double fallback) const {
  const Getter getter(*this, key);
  const GgufValue* value = getter.find();
  if (value == nullptr) return fallback;
  if (const auto* number = std::get_if<double>(&value->value)) {
    if (!std::isfinite(*number)) getter.fail(fmt::format("is {}; it must be finite", *number));
    return *number;
  }
  if (const auto* integer = std::get_if<std::uint64_t>(&value->value)) return static_cast<double>(*integer);
  if (const auto* integer = std::get_if<std::int64_t>(&value->value)) return static_cast<double>(*integer);
  getter.wrong_kind(*value, "a number");
}

bool Gguf::flag_or(const std::string& key, bool fallback) const {
  const Getter getter(*this, key);
  const GgufValue* value = getter.find();
  if (value == nullptr) return fallback;
  const auto* flag = std::get_if<bool>(&value->value);
  if (flag == nullptr) getter.wrong_kind(*value, "a bool");
  return *flag;
}

std::vector<std::int64_t> Gguf::integers(const std::string& key, Range range) const {
  const Getter getter(*this, key);
  const GgufValue& value = getter.get();
  const auto* array = std::get_if<GgufArray>(&value.value);
  if (array == nullptr) return {getter.integer(value, range)};
  if (array->count == 0 || array->integers.size() != array->count) {
    getter.fail(
        fmt::format("is an array of {} elements of type {}; it must be one of integers, 1 to 65536 of them",
                    array->count, array->type));
  }
  for (const std::int64_t integer : array->integers) getter.in_range(integer, range);
  return array->integers;
}

Gguf read_gguf(const std::string& path) {
  GgufBudget budget;
  Gguf model;
  model.path = path;
  GgufPart part = read_gguf_part(path, budget);
  const Split split = split_of(path, part);
  if (split.count == 1) {
    append(model, path, std::move(part));
  } else {
    read_parts(model, std::move(part), split, budget);
  }
  return model;
}

}  // namespace memwall
