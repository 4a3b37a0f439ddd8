#include "checkpoint/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "checkpoint/safetensors_json.h"
#include "format/checked.h"
#include "input/error.h"
#include "input/json.h"
#include "input/regular_file.h"

namespace memwall {
namespace {

constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kMostHeaderBytes = 100'000'000;  // the format's limit

std::int64_t header_length(const RegularFile& file) {
  std::array<char, kLengthBytes> bytes{};
  if (file.size() < kLengthBytes || file.read_at(0, bytes.data(), bytes.size()) < bytes.size()) {
    throw InputError(
        fmt::format("{}: has {} bytes; a safetensors file begins with 8 that state its header's length",
                    file.path(), file.size()));
  }
  if (std::string_view(bytes.data(), bytes.size()) == "version ") {
    throw InputError(fmt::format(
        "{}: is not the file itself but Git LFS's pointer to it; fetch it with git lfs pull", file.path()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  const auto left = static_cast<std::uint64_t>(file.size() - kLengthBytes);
  if (length > left) {
    throw InputError(
        fmt::format("{}: its header should take {} bytes, the file has {} for it: an incomplete download, or "
                    "no safetensors file?",
                    file.path(), length, left));
  }
  if (length > kMostHeaderBytes) {
    throw InputError(fmt::format("{}: its header takes {} bytes; the format allows {}", file.path(), length,
                                 kMostHeaderBytes));
  }
  return static_cast<std::int64_t>(length);
}

// The format allows no hole and no overlap: the tensors' data follow one another and fill the file.
void check_layout(const std::string& path, const StoredTensor* tensors,
                  const std::vector<std::int64_t>& begins, std::int64_t data_bytes) {
  std::vector<std::uint32_t> order(begins.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(begins[a], tensors[a].bytes) < std::pair(begins[b], tensors[b].bytes);
  });
  std::int64_t end = 0;  // of the data so far; each is its begin and bytes as read, so that nothing overflows
  for (std::size_t i = 0; i < order.size(); ++i) {
    const StoredTensor& tensor = tensors[order[i]];
    const std::int64_t begin = begins[order[i]];
    if (begin != end) {
      const std::string before =
          i == 0 ? "the data section" : fmt::format("'{}'", excerpt(tensors[order[i - 1]].name));
      throw InputError(fmt::format("{}: tensor '{}' begins at byte {} of the data, {} {} {} at byte {}", path,
                                   excerpt(tensor.name), begin,
                                   begin < end ? "inside of the one before it:" : "behind a hole:", before,
                                   i == 0 ? "begins" : "ends", end));
    }
    end = begin + tensor.bytes;
  }
  if (end > data_bytes) {
    throw InputError(
        fmt::format("{}: the data section should be {} bytes, the file has {}: an incomplete download?", path,
                    end, data_bytes));
  }
  if (end < data_bytes) {
    throw InputError(fmt::format(
        "{}: the data section should be {} bytes, the file has {}: the last {} belong to no tensor", path,
        end, data_bytes, data_bytes - end));
  }
}

bool by_name(const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; }

// Of a sorted range: the first tensor whose name the next one has too.
template <typename Iterator>
Iterator find_twin(Iterator begin, Iterator end) {
  return std::adjacent_find(begin, end,
                            [](const StoredTensor& a, const StoredTensor& b) { return a.name == b.name; });
}

}  // namespace

void read_safetensors_header(const std::string& path, HeaderBudget& budget, Checkpoint& checkpoint) {
  const RegularFile file(path);
  const std::int64_t length = header_length(file);
  budget.json_bytes -= length;
  if (budget.json_bytes < 0) {
    throw InputError(fmt::format("{}: the index and the headers up to this file's take more than {} bytes",
                                 path, HeaderBudget{}.json_bytes));
  }
  const json::FailAt fail = [&](std::int64_t byte, std::string message) {
    constexpr std::string_view kFileEnds = "the file ends";
    if (message.starts_with(kFileEnds)) message.replace(0, kFileEnds.size(), "the header ends");
    throw InputError(fmt::format("{}: header, byte {}: {}", path, byte, message));
  };
  const std::size_t before = checkpoint.tensors.size();
  HeaderContents contents = read_header_json(file, kLengthBytes, length, budget, checkpoint.tensors, fail);
  check_layout(path, checkpoint.tensors.data() + before, contents.begins,
               file.size() - kLengthBytes - length);

  const auto first = checkpoint.tensors.begin() + static_cast<std::ptrdiff_t>(before);
  std::sort(first, checkpoint.tensors.end(), by_name);
  const auto twin = find_twin(first, checkpoint.tensors.end());
  if (twin != checkpoint.tensors.end()) {
    throw InputError(fmt::format("{}: tensor '{}' stands twice in the header", path, excerpt(twin->name)));
  }
  checkpoint.metadata.merge(contents.metadata);
  checkpoint.files.push_back(path);
}

void finish_checkpoint(Checkpoint& checkpoint) {
  std::vector<StoredTensor>& tensors = checkpoint.tensors;
  if (checkpoint.files.size() > 1) std::sort(tensors.begin(), tensors.end(), by_name);
  const auto twin = find_twin(tensors.begin(), tensors.end());
  if (twin != tensors.end()) {
    throw InputError(
        fmt::format("{}: tensor '{}' stands in two of its files", checkpoint.path, excerpt(twin->name)));
  }
  for (const StoredTensor& tensor : tensors) {
    checkpoint.data_bytes = checked_add(checkpoint.data_bytes, tensor.bytes);
  }
}

}  // namespace memwall
