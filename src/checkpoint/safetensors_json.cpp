#include "checkpoint/safetensors_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "format/checked.h"

namespace memwall {
namespace {

constexpr std::size_t kMostDimensions = 16;

struct Dtype {
  std::string_view name;
  int bits;
  std::optional<FormatKind> format = std::nullopt;
};

// All of safetensors 0.8's, in the order of its source, tensor.rs.
constexpr std::array kDtypes = {
    Dtype{"BOOL", 8},
    Dtype{"F4", 4},
    Dtype{"F6_E2M3", 6},
    Dtype{"F6_E3M2", 6},
    Dtype{"U8", 8},
    Dtype{"I8", 8},
    Dtype{"F8_E5M2", 8},
    Dtype{"F8_E4M3", 8},
    Dtype{"F8_E8M0", 8},
    Dtype{"F8_E4M3FNUZ", 8},
    Dtype{"F8_E5M2FNUZ", 8},
    Dtype{"I16", 16},
    Dtype{"U16", 16},
    Dtype{"F16", 16, FormatKind::f16},
    Dtype{"BF16", 16, FormatKind::bf16},
    Dtype{"I32", 32},
    Dtype{"U32", 32},
    Dtype{"F32", 32, FormatKind::f32},
    Dtype{"C64", 64},
    Dtype{"F64", 64},
    Dtype{"I64", 64},
    Dtype{"U64", 64},
};

std::string dtype_names() {
  std::string names;
  for (const Dtype& dtype : kDtypes) names += fmt::format("{}{}", names.empty() ? "" : ", ", dtype.name);
  return names;
}

// Reads the header's events, one tensor after the other. Depth 1 is the header's object, 2 an entry, 3 an
// entry's list.
class HeaderReader : public json::Events {
 public:
  HeaderReader(HeaderBudget& budget, std::vector<StoredTensor>& tensors, const json::FailAt& fail)
      : budget_(budget), tensors_(tensors), fail_(fail) {}

  HeaderContents contents;

  void scalar(json::Kind kind, std::string_view text, std::int64_t end) override {
    const std::int64_t at = json::begin_of_scalar(kind, text, end);
    if (depth_ == 0) fail_(at, "the header must be an object");
    if (depth_ == 1) {
      if (part_ == Part::metadata && kind == json::Kind::null) return;
      fail_(at, fmt::format("{} must be an object", entry()));
    }
    switch (part_) {
      case Part::metadata:
        return add_metadata(kind, text, at);
      case Part::dtype:
        if (depth_ != 2 || kind != json::Kind::text) fail_shape(at);
        dtype_ = find_dtype(text, at);
        return;
      case Part::shape:
        if (shape_.size() == kMostDimensions) {
          fail_(at, fmt::format("{} has more than {} dimensions", entry(), kMostDimensions));
        }
        shape_.push_back(whole_number(kind, text, at));
        return;
      case Part::offsets:
        if (offset_count_ == 2) fail_shape(at);
        offsets_[offset_count_++] = whole_number(kind, text, at);
        return;
      case Part::other:
        return;
    }
  }

  void key(std::string_view text, std::int64_t end) override {
    const std::int64_t at = json::begin_of_key(text, end);
    if (depth_ == 1) return begin_entry(text, at);
    if (depth_ != 2) return;  // inside a field that is not ours
    if (part_ == Part::metadata) {
      key_ = text;
      return;
    }
    part_ = text == "dtype"          ? Part::dtype
            : text == "shape"        ? Part::shape
            : text == "data_offsets" ? Part::offsets
                                     : Part::other;
    if (part_ == Part::other) return;
    bool& seen = seen_[static_cast<std::size_t>(part_)];
    if (seen) fail_(at, fmt::format("{} has '{}' twice", entry(), text));
    seen = true;
  }

  void open(json::Kind kind, std::int64_t end) override {
    ++depth_;
    const bool list = kind == json::Kind::array;
    if (depth_ == 1 && list) fail_(end - 1, "the header must be an object");
    if (depth_ == 2 && list) fail_(end - 1, fmt::format("{} must be an object", entry()));
    if (depth_ < 3 || part_ == Part::other) return;
    const bool wants_list = part_ == Part::shape || part_ == Part::offsets;
    if (!wants_list || !list || depth_ > 3) fail_shape(end - 1);
  }

  void close(json::Kind, std::int64_t end) override {
    if (depth_ == 2 && part_ != Part::metadata) add_tensor(end - 1);
    if (depth_ == 3 && part_ == Part::offsets && offset_count_ != 2) fail_shape(end - 1);
    --depth_;
  }

 private:
  enum class Part { dtype, shape, offsets, other, metadata };

  std::string entry() const {
    if (part_ == Part::metadata) return "__metadata__";
    return fmt::format("tensor '{}'", excerpt(name_));
  }

  [[noreturn]] void fail(std::int64_t at, const std::string& message) const {
    fail_(at, message);
    throw std::logic_error("json::FailAt returned");
  }

  [[noreturn]] void fail_shape(std::int64_t at) const {
    switch (part_) {
      case Part::dtype:
        fail(at, entry() + " must have a dtype like \"BF16\"");
      case Part::shape:
        fail(at, entry() + " must have a shape like [4096, 4096]");
      case Part::offsets:
        fail(at, entry() + " must have data_offsets like [0, 8192], where its data begin and end");
      default:
        fail(at, entry() + " must hold texts alone");
    }
  }

  void begin_entry(std::string_view name, std::int64_t at) {
    if (name == "__metadata__") {
      part_ = Part::metadata;
      if (std::exchange(metadata_seen_, true)) fail(at, "__metadata__ stands twice in the header");
      return;
    }
    part_ = Part::other;
    name_ = name;
    if (json::holds_control(name)) fail(at, fmt::format("the name of {} holds control characters", entry()));
    if (--budget_.tensors < 0) {
      fail(at, fmt::format("more than {} tensors; no model has so many", HeaderBudget{}.tensors));
    }
    dtype_ = nullptr;
    shape_.clear();
    offset_count_ = 0;
    seen_ = {};
  }

  void add_metadata(json::Kind kind, std::string_view text, std::int64_t at) {
    if (kind != json::Kind::text) fail_shape(at);
    constexpr std::int64_t kEntryBytes = 160;  // a map's node, and the ends of two allocations
    budget_.metadata_bytes -= kEntryBytes + static_cast<std::int64_t>(key_.size() + text.size());
    if (budget_.metadata_bytes < 0) {
      fail(at, fmt::format("__metadata__ takes more than {} bytes", HeaderBudget{}.metadata_bytes));
    }
    if (!contents.metadata.emplace(key_, text).second) {
      fail(at, fmt::format("__metadata__ has '{}' twice", excerpt(key_)));
    }
  }

  const Dtype* find_dtype(std::string_view name, std::int64_t at) const {
    const auto found =
        std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& dtype) { return dtype.name == name; });
    if (found == kDtypes.end()) {
      fail(at, fmt::format("{} has the dtype '{}', which safetensors does not know; it knows {}", entry(),
                           excerpt(name), dtype_names()));
    }
    return &*found;
  }

  std::int64_t whole_number(json::Kind kind, std::string_view text, std::int64_t at) const {
    if (depth_ != 3 || kind != json::Kind::number) fail_shape(at);
    // Written as digits alone: 4096.0 is no dimension for the format.
    std::uint64_t value = 0;
    const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && last == text.data() + text.size();
    if (!whole || value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(at, fmt::format("{}: {} must hold whole numbers from 0 to 2^63 - 1, not {}", entry(),
                           part_ == Part::shape ? "shape" : "data_offsets", excerpt(text)));
    }
    return static_cast<std::int64_t>(value);
  }

  void add_tensor(std::int64_t at) {
    for (const Part part : {Part::dtype, Part::shape, Part::offsets}) {
      if (seen_[static_cast<std::size_t>(part)]) continue;
      part_ = part;
      fail_shape(at);
    }
    StoredTensor tensor;
    tensor.name = name_;
    tensor.shape.assign(shape_.begin(), shape_.end());
    tensor.type = dtype_->name;
    if (dtype_->format) tensor.format = Format{*dtype_->format};
    const auto [begin, end] = offsets_;
    if (begin > end) {
      fail(at, fmt::format("{}: its data_offsets end at {}, before they begin at {}", entry(), end, begin));
    }
    tensor.bytes = end - begin;
    const std::int64_t expected = shape_bytes(tensor, at);
    if (tensor.bytes != expected) {
      fail(at, fmt::format("{}: its shape in {} takes {} bytes, its data_offsets span {}", entry(),
                           tensor.type, expected, tensor.bytes));
    }
    contents.begins.push_back(begin);
    tensors_.push_back(std::move(tensor));
  }

  std::int64_t shape_bytes(const StoredTensor& tensor, std::int64_t at) const {
    std::int64_t bits = 0;
    try {
      bits = checked_mul(tensor.elements(), dtype_->bits);
    } catch (const std::overflow_error&) {
      fail(at, fmt::format("{}: the product of its shape passes 2^63 - 1 bits", entry()));
    }
    if (bits % 8 != 0) fail(at, fmt::format("{}: its shape in {} ends inside a byte", entry(), tensor.type));
    return bits / 8;
  }

  HeaderBudget& budget_;
  std::vector<StoredTensor>& tensors_;
  const json::FailAt& fail_;
  int depth_ = 0;
  Part part_ = Part::other;
  bool metadata_seen_ = false;
  std::string key_;
  // The tensor being read.
  std::string name_;
  const Dtype* dtype_ = nullptr;
  std::vector<std::int64_t> shape_;
  std::array<std::int64_t, 2> offsets_{};
  std::size_t offset_count_ = 0;
  std::array<bool, 3> seen_{};
};

}  // namespace

HeaderContents read_header_json(const RegularFile& file, std::int64_t begin, std::int64_t length,
                                HeaderBudget& budget, std::vector<StoredTensor>& tensors,
                                const json::FailAt& fail) {
  HeaderReader reader(budget, tensors, fail);
  json::stream(file, begin, length, reader, fail);
  return std::move(reader.contents);
}

}  // namespace memwall
