#include "checkpoint/gguf_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "checkpoint/ggml_types.h"
#include "format/checked.h"
#include "input/error.h"
#include "input/regular_file.h"

namespace memwall {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMostAlignment = 1 << 20;
constexpr std::uint64_t kMostKeys = 65'536;
constexpr std::uint64_t kMostKeyBytes = 65'535;  // docs/gguf.md
constexpr std::uint64_t kMostNameBytes = 256;    // ggml allows 63, and some that build on it more
constexpr std::uint32_t kMostDimensions = 4;
// The least that an entry takes: its lengths, types and one byte each of a name and a value, or a dimension.
constexpr std::uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

std::int64_t round_up(std::int64_t value, std::uint64_t alignment) {
  const auto step = static_cast<std::int64_t>(alignment);
  return checked_mul(div_up(value, step), step);
}

// Where a tensor's data lie, from the begin of the data section.
struct Extent {
  std::int64_t begin;
  std::int64_t end;
  std::size_t tensor;
  bool open;  // of a type whose size is a fork's or not known: it ends where the next one begins, at most
};

class PartReader {
 public:
  PartReader(const RegularFile& file, GgufBudget& budget)
      : file_(file), budget_(budget), bytes_(file, budget) {}

  GgufPart read() {
    const auto [tensor_count, key_count] = begin();
    for (std::uint64_t i = 0; i < key_count; ++i) read_key();
    read_alignment();
    part_.tensors.reserve(static_cast<std::size_t>(tensor_count));
    extents_.reserve(static_cast<std::size_t>(tensor_count));
    for (std::uint64_t i = 0; i < tensor_count; ++i) read_tensor();
    check_names();
    check_data();
    return std::move(part_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(fmt::format("{}: {}", file_.path(), message));
  }

  // The magic, the version, and the number of tensors and of keys.
  std::pair<std::uint64_t, std::uint64_t> begin() {
    check_magic();
    bytes_.skip(4);
    part_.version = bytes_.number<std::uint32_t>();
    if ((part_.version & 0xFFFF) == 0 && part_.version != 0) {
      fail("is a big-endian GGUF file, for machines such as s390x; only little-endian ones are read");
    }
    if (part_.version == 1) {
      fail("is GGUF version 1, which llama.cpp no longer reads; convert the model to version 3");
    }
    if (part_.version != 2 && part_.version != 3) {
      fail(fmt::format("is GGUF version {}; versions 2 and 3 are read", part_.version));
    }
    const auto tensor_count = bytes_.number<std::uint64_t>();
    const auto key_count = bytes_.number<std::uint64_t>();
    check_count(8, tensor_count, "tensors", kLeastTensorBytes, static_cast<std::uint64_t>(budget_.tensors));
    check_count(16, key_count, "metadata keys", kLeastKeyBytes, kMostKeys);
    budget_.tensors -= static_cast<std::int64_t>(tensor_count);
    return {tensor_count, key_count};
  }

  void check_magic() const {
    if (file_.size() == 0) fail("is empty");
    char start[20] = {};
    const std::size_t count = file_.read_at(0, start, sizeof(start));
    const std::string_view text(start, count);
    if (text.substr(0, 19) == "version https://git") {
      fail("is a Git LFS pointer in the model's place; fetch the file itself with git lfs pull");
    }
    if (text.substr(0, 4) != "GGUF") {
      fail(fmt::format("is no GGUF file: it starts with '{}', not with 'GGUF'", excerpt(text.substr(0, 4))));
    }
  }

  void check_count(std::int64_t at, std::uint64_t count, std::string_view what, std::uint64_t least_bytes,
                   std::uint64_t most) const {
    if (count > static_cast<std::uint64_t>(bytes_.left()) / least_bytes) {
      bytes_.fail(
          at, fmt::format("{} {} do not fit in a file of {} bytes: a damaged file or an incomplete download",
                          count, what, file_.size()));
    }
    if (count > most)
      bytes_.fail(at, fmt::format("{} {} are more than any model's; {} are read", count, what, most));
  }

  // A key or a tensor's name. Control characters would reach the terminal with the first message or table.
  std::string name(std::string_view what, std::uint64_t most_bytes) {
    const std::int64_t at = bytes_.position();
    const auto length = bytes_.number<std::uint64_t>();
    if (length == 0) bytes_.fail(at, fmt::format("a {} is empty", what));
    if (length > most_bytes) {
      bytes_.fail(at, fmt::format("a {} has {} bytes; it may have {}", what, length, most_bytes));
    }
    std::string name = bytes_.text(length);
    if (std::any_of(name.begin(), name.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7F'; })) {
      bytes_.fail(at, fmt::format("the {} '{}' holds control characters", what, excerpt(name)));
    }
    return name;
  }

  void read_key() {
    const std::int64_t at = bytes_.position();
    const std::string key = name("metadata key", kMostKeyBytes);
    if (!part_.metadata.emplace(key, read_gguf_value(bytes_, key)).second) {
      bytes_.fail(at, fmt::format("the metadata key '{}' appears twice", excerpt(key)));
    }
  }

  void read_alignment() {
    part_.alignment = kDefaultAlignment;
    const auto found = part_.metadata.find("general.alignment");
    if (found == part_.metadata.end()) return;
    const std::int64_t* value = std::get_if<std::int64_t>(&found->second.value);
    if (value == nullptr || *value < 1 || static_cast<std::uint64_t>(*value) > kMostAlignment ||
        !std::has_single_bit(static_cast<std::uint64_t>(*value))) {
      fail(fmt::format("general.alignment must be a power of two, 1 to {}{}", kMostAlignment,
                       value == nullptr ? ", as a uint32" : fmt::format("; it is {}", *value)));
    }
    part_.alignment = static_cast<std::uint64_t>(*value);
  }

  void read_tensor() {
    const std::int64_t at = bytes_.position();
    StoredTensor tensor;
    tensor.name = name("tensor name", kMostNameBytes);
    const auto fail_here = [&](const std::string& message) {
      bytes_.fail(at, fmt::format("tensor '{}' {}", excerpt(tensor.name), message));
    };
    const auto dimensions = bytes_.number<std::uint32_t>();
    if (dimensions < 1 || dimensions > kMostDimensions) {
      fail_here(fmt::format("has {} dimensions; it may have 1 to {}", dimensions, kMostDimensions));
    }
    tensor.shape.resize(dimensions);
    // The file puts the fastest dimension first.
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent) {
      *extent = bytes_.number<std::int64_t>();
      if (*extent < 1) fail_here(fmt::format("has a dimension of {}", static_cast<std::uint64_t>(*extent)));
    }
    const auto id = bytes_.number<std::uint32_t>();
    const GgmlType* type = find_ggml_type(id);
    const std::int64_t row = tensor.shape.back();
    if (type != nullptr) {
      tensor.type = type->name;
      tensor.format = weight_format(*type);
      if (row % type->block != 0 && !type->fork) {
        fail_here(fmt::format("has rows of {} elements, but {} comes in blocks of {}", row, type->name,
                              type->block));
      }
    } else {
      const std::string_view removed = removed_ggml_type(id);
      if (!removed.empty()) {
        fail_here(
            fmt::format("has the type {}, which was removed from ggml; quantise the model again", removed));
      }
      if (!may_be_ggml_type(id)) fail_here(fmt::format("has type {}: a damaged file?", id));
      tensor.type = fmt::format("type {}", id);
    }
    const auto offset = bytes_.number<std::uint64_t>();
    if (offset % part_.alignment != 0) {
      fail_here(fmt::format("has its data at offset {}, which is no multiple of the alignment of {}", offset,
                            part_.alignment));
    }
    try {
      const std::int64_t elements = tensor.elements();
      if (type != nullptr && row % type->block == 0) {
        tensor.bytes = checked_add(checked_mul(elements / type->block, type->bytes),
                                   checked_mul(elements / row, type->row_bytes));
      }
      if (!std::in_range<std::int64_t>(offset)) throw std::overflow_error("its offset");
      const auto data_begin = static_cast<std::int64_t>(offset);
      extents_.push_back({data_begin, checked_add(data_begin, tensor.bytes), part_.tensors.size(),
                          type == nullptr || type->fork});
    } catch (const std::overflow_error&) {
      fail_here("has a size or an offset that passes 63 bits");
    }
    part_.tensors.push_back(std::move(tensor));
  }

  void check_names() const {
    std::unordered_set<std::string_view> names;
    names.reserve(part_.tensors.size());
    for (const StoredTensor& tensor : part_.tensors) {
      if (!names.insert(tensor.name).second) {
        fail(fmt::format("two tensors are named '{}'", excerpt(tensor.name)));
      }
    }
  }

  void check_data() {
    std::sort(extents_.begin(), extents_.end(), [](const Extent& a, const Extent& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    const std::int64_t data_begin = round_up(bytes_.position(), part_.alignment);
    part_.data_bytes = std::max<std::int64_t>(file_.size() - data_begin, 0);
    close_extents();
    for (std::size_t i = 1; i < extents_.size(); ++i) {
      if (extents_[i].begin < extents_[i - 1].end) {
        fail(fmt::format("the data of tensors '{}' and '{}' overlap", excerpt(name_of(extents_[i - 1])),
                         excerpt(name_of(extents_[i]))));
      }
    }
    // Without overlap, the last to begin is the last to end.
    if (!extents_.empty() && extents_.back().end > part_.data_bytes) {
      const std::uint64_t needed =
          static_cast<std::uint64_t>(data_begin) + static_cast<std::uint64_t>(extents_.back().end);
      fail(fmt::format(
          "{} bytes are missing: the file has {}, but tensor '{}' ends at byte {}; an incomplete download?",
          needed - static_cast<std::uint64_t>(file_.size()), file_.size(), excerpt(name_of(extents_.back())),
          needed));
    }
  }

  // What a type that no table knows takes follows from where the next tensor begins, up to the alignment.
  void close_extents() {
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      Extent& extent = extents_[i];
      if (!extent.open) continue;
      const std::int64_t most =
          i + 1 < extents_.size() ? extents_[i + 1].begin : std::max(part_.data_bytes, extent.begin);
      // The size that a fork publishes, where its own file agrees.
      if (extent.end > extent.begin && extent.end <= most) continue;
      extent.end = most;
      part_.tensors[extent.tensor].bytes = extent.end - extent.begin;
      if (extent.end == extent.begin) {
        fail(fmt::format(
            "tensor '{}' has the {}, which ggml does not define, and no data: the file of a fork, "
            "cut short?",
            excerpt(name_of(extent)), part_.tensors[extent.tensor].type));
      }
    }
  }

  const std::string& name_of(const Extent& extent) const { return part_.tensors[extent.tensor].name; }

  const RegularFile& file_;
  GgufBudget& budget_;
  GgufBytes bytes_;
  GgufPart part_;
  std::vector<Extent> extents_;
};

}  // namespace

GgufPart read_gguf_part(const std::string& path, GgufBudget& budget) {
  const RegularFile file(path);
  return PartReader(file, budget).read();
}

}  // namespace memwall
