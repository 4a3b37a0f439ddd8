// *.safetensors.index.json: which shard of a large model holds which tensor.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_header.h"
#include "checkpoint/safetensors_sides.h"
#include "input/error.h"
#include "input/json.h"
#include "input/regular_file.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostIndexBytes = std::int64_t{64} << 20;
constexpr std::size_t kMostShards = 10'000;
constexpr std::size_t kMostNamed = 3;  // of the missing ones, in a message

struct Listed {
  std::string tensor;
  std::uint32_t shard = 0;
  bool found = false;
};

struct Index {
  std::vector<Listed> tensors;
  std::map<std::string, std::uint32_t, std::less<>> shards;
  std::optional<std::int64_t> total_size;
  bool has_weight_map = false;
};

// Reads the index's events. Depth 1 is the index's object, 2 its metadata or weight_map.
class IndexReader : public json::Events {
 public:
  IndexReader(HeaderBudget& budget, const json::FailAt& fail) : budget_(budget), fail_(fail) {}

  Index index;

  void scalar(json::Kind kind, std::string_view text, std::int64_t end) override {
    const std::int64_t at = json::begin_of_scalar(kind, text, end);
    if (depth_ == 0) fail_(at, "an index must be an object");
    if (depth_ == 1 && part_ == Part::weight_map) fail_map(at);
    if (depth_ != 2) return;
    if (part_ == Part::weight_map) {
      if (kind != json::Kind::text) fail_map(at);
      index.tensors.push_back({std::move(key_), find_shard(text, at)});
    } else if (part_ == Part::metadata && key_ == "total_size" && kind != json::Kind::null) {
      if (kind == json::Kind::number) index.total_size = json::to_integer(text);
      if (!index.total_size || *index.total_size < 0) {
        fail_(at, "metadata.total_size must be a whole number of bytes");
      }
    }
  }

  void key(std::string_view text, std::int64_t end) override {
    const std::int64_t at = json::begin_of_key(text, end);
    if (depth_ == 1) {
      part_ = text == "weight_map" ? Part::weight_map : text == "metadata" ? Part::metadata : Part::other;
      const bool twice = (part_ == Part::weight_map && std::exchange(index.has_weight_map, true)) ||
                         (part_ == Part::metadata && std::exchange(has_metadata_, true));
      if (twice) fail_(at, fmt::format("'{}' stands twice in this index", text));
    } else if (depth_ == 2 && part_ != Part::other) {
      key_ = text;
      if (part_ == Part::weight_map && --budget_.tensors < 0) {
        fail_(at, fmt::format("more than {} tensors; no model has so many", HeaderBudget{}.tensors));
      }
      if (part_ == Part::metadata && text == "total_size" && std::exchange(has_total_, true)) {
        fail_(at, "'total_size' stands twice in metadata");
      }
    }
  }

  void open(json::Kind kind, std::int64_t end) override {
    ++depth_;
    if (depth_ == 1 && kind != json::Kind::object) fail_(end - 1, "an index must be an object");
    if (part_ != Part::weight_map) return;
    if (depth_ > 2 || (depth_ == 2 && kind != json::Kind::object)) fail_map(end - 1);
  }

  void close(json::Kind, std::int64_t) override { --depth_; }

 private:
  enum class Part { metadata, weight_map, other };

  void fail_map(std::int64_t at) const {
    fail_(
        at,
        "weight_map must give a file's name for each tensor's: {\"lm_head.weight\": \"model.safetensors\"}");
  }

  std::uint32_t find_shard(std::string_view name, std::int64_t at) {
    const auto known = index.shards.find(name);
    if (known != index.shards.end()) return known->second;
    // A path would let a downloaded index make memwall open any file.
    if (name.find_first_of("/\\") != std::string_view::npos || name.starts_with('.') ||
        json::holds_control(name)) {
      fail_(at,
            fmt::format("'{}' is no shard's name; it must name a file in the index's folder", excerpt(name)));
    }
    if (!name.ends_with(".safetensors")) {
      fail_(at,
            fmt::format("'{}' is no safetensors file; memwall reads the shapes of no other kind of shard: "
                        "give the model's config.json",
                        excerpt(name)));
    }
    if (index.shards.size() == kMostShards) fail_(at, fmt::format("more than {} shards", kMostShards));
    return index.shards.emplace(name, static_cast<std::uint32_t>(index.shards.size())).first->second;
  }

  HeaderBudget& budget_;
  const json::FailAt& fail_;
  int depth_ = 0;
  Part part_ = Part::other;
  bool has_metadata_ = false;
  bool has_total_ = false;
  std::string key_;
};

Index read_index(const std::string& path, HeaderBudget& budget) {
  const RegularFile file(path);
  if (file.size() > kMostIndexBytes) {
    throw InputError(fmt::format("{}: is longer than {} bytes; this is no index", path, kMostIndexBytes));
  }
  budget.json_bytes -= file.size();
  const json::FailAt fail = [&](std::int64_t byte, const std::string& message) {
    json::fail_at_byte(file, byte, message);
  };
  HeaderBudget listed;  // counted apart from the tensors of the shards
  IndexReader reader(listed, fail);
  json::stream(file, 0, file.size(), reader, fail);
  Index index = std::move(reader.index);
  if (index.tensors.empty()) {
    throw InputError(fmt::format("{}: has no weight_map with tensors; this is no index", path));
  }
  std::sort(index.tensors.begin(), index.tensors.end(),
            [](const Listed& a, const Listed& b) { return a.tensor < b.tensor; });
  const auto twin = std::adjacent_find(index.tensors.begin(), index.tensors.end(),
                                       [](const Listed& a, const Listed& b) { return a.tensor == b.tensor; });
  if (twin != index.tensors.end()) {
    throw InputError(fmt::format("{}: tensor '{}' stands twice in weight_map", path, excerpt(twin->tensor)));
  }
  return index;
}

void require_shards(const std::string& path, const fs::path& folder, const Index& index) {
  std::size_t missing = 0;
  std::string names;
  for (const auto& [name, number] : index.shards) {
    std::error_code error;
    if (fs::exists(folder / name, error) || (error && error != std::errc::no_such_file_or_directory))
      continue;
    if (++missing > kMostNamed) continue;
    names += fmt::format("{}'{}'", missing == 1 ? "" : ", ", excerpt(name));
  }
  if (missing == 0) return;
  if (missing == index.shards.size()) {
    throw InputError(fmt::format(
        "{}: an index carries no shapes; put the {} shards beside it, or give the model's config.json", path,
        missing));
  }
  throw InputError(fmt::format("{}: {} of {} shards are missing beside it: {}{}", path, missing,
                               index.shards.size(), names, missing > kMostNamed ? ", ..." : ""));
}

// Drops the tensors from `first` on that the index does not place in `shard`, and marks the others as found.
void keep_listed(Checkpoint& checkpoint, std::size_t first, Index& index, std::uint32_t shard) {
  const auto unlisted = [&](const StoredTensor& tensor) {
    const auto found = std::lower_bound(index.tensors.begin(), index.tensors.end(), tensor.name,
                                        [](const Listed& a, const std::string& b) { return a.tensor < b; });
    if (found != index.tensors.end() && found->tensor == tensor.name && found->shard == shard) {
      found->found = true;
      return false;
    }
    ++checkpoint.unlisted_tensors;
    checkpoint.unlisted_bytes = checked_add(checkpoint.unlisted_bytes, tensor.bytes);
    return true;
  };
  std::vector<StoredTensor>& tensors = checkpoint.tensors;
  const auto begin = tensors.begin() + static_cast<std::ptrdiff_t>(first);
  tensors.erase(std::remove_if(begin, tensors.end(), unlisted), tensors.end());
}

// Files that the index does not list, and whose names say that they are no part of the model.
std::vector<std::string> sides_beside(const fs::path& folder, const Index& index) {
  std::vector<std::string> sides;
  std::error_code error;
  const fs::path here = folder.empty() ? fs::path(".") : folder;
  for (fs::directory_iterator entry(here, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.starts_with('.') || !name.ends_with(".safetensors") || index.shards.contains(name)) continue;
    if (side_of_file(name).empty()) continue;
    if (sides.size() == kMostShards)
      throw InputError(fmt::format("{}: holds more than {} files", here.string(), kMostShards));
    sides.push_back(std::move(name));
  }
  if (error) throw InputError(fmt::format("{}: cannot be read: {}", here.string(), error.message()));
  std::sort(sides.begin(), sides.end());
  return sides;
}

}  // namespace

Checkpoint read_safetensors_index(const std::string& path) {
  HeaderBudget budget;
  Index index = read_index(path, budget);
  const fs::path folder = fs::path(path).parent_path();
  require_shards(path, folder, index);

  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.index_total_size = index.total_size;
  for (const auto& [name, number] : index.shards) {
    const std::size_t first = checkpoint.tensors.size();
    read_safetensors_header((folder / name).string(), budget, checkpoint);
    keep_listed(checkpoint, first, index, number);
  }
  for (const Listed& listed : index.tensors) {
    if (listed.found) continue;
    const auto shard = std::find_if(index.shards.begin(), index.shards.end(),
                                    [&](const auto& entry) { return entry.second == listed.shard; });
    throw InputError(fmt::format("{}: weight_map places tensor '{}' in '{}', which does not hold it", path,
                                 excerpt(listed.tensor), shard->first));
  }
  read_side_files(folder.string(), sides_beside(folder, index), budget, checkpoint);
  finish_checkpoint(checkpoint);
  return checkpoint;
}

}  // namespace memwall
