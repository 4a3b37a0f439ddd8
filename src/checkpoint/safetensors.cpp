#include "checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "checkpoint/safetensors_header.h"
#include "checkpoint/safetensors_sides.h"
#include "input/error.h"
#include "input/json.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";
constexpr std::size_t kMostFiles = 10'000;

// "model-00002-of-00005.safetensors" taken apart.
struct Part {
  std::string_view name;  // "model"
  std::size_t number = 0;
  std::string_view count;  // "00005", as written: "-of-5" is another set
};

std::optional<std::size_t> to_size(std::string_view digits) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<Part> find_part(std::string_view file) {
  file.remove_suffix(kSuffix.size());
  const std::size_t of = file.rfind("-of-");
  if (of == std::string_view::npos || of == 0) return std::nullopt;
  const std::size_t dash = file.rfind('-', of - 1);
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<std::size_t> number = to_size(file.substr(dash + 1, of - dash - 1));
  const std::string_view count = file.substr(of + 4);
  const std::optional<std::size_t> total = to_size(count);
  if (!number || !total || *number < 1 || *number > *total || *total > kMostFiles) return std::nullopt;
  return Part{file.substr(0, dash), *number, count};
}

struct Listing {
  std::vector<std::string> indexes;
  std::vector<std::string> files;
  std::string pickle;  // one of PyTorch's, where there is any
};

Listing list_folder(const std::string& path) {
  Listing listing;
  std::error_code error;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;  // "._model.safetensors" is macOS's note about a file
    if (name.ends_with(kIndexSuffix)) {
      listing.indexes.push_back(std::move(name));
    } else if (name.ends_with(kSuffix)) {
      listing.files.push_back(std::move(name));
    } else if (name.starts_with("pytorch_model") && name.ends_with(".bin")) {
      listing.pickle = std::move(name);
    }
    if (listing.indexes.size() + listing.files.size() > kMostFiles) {
      throw InputError(
          fmt::format("{}: holds more than {} safetensors files; no model has so many", path, kMostFiles));
    }
  }
  if (error) throw InputError(fmt::format("{}: cannot be read: {}", path, error.message()));
  std::sort(listing.indexes.begin(), listing.indexes.end());
  std::sort(listing.files.begin(), listing.files.end());
  return listing;
}

std::string first_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNames = 3;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostNames; ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", excerpt(names[i]));
  }
  return names.size() > kMostNames ? text + ", ..." : text;
}

[[noreturn]] void fail_choice(const std::string& folder, const std::vector<std::string>& names) {
  throw InputError(fmt::format("{}: a folder with {} models, or parts of several: {}; name one file", folder,
                               names.size(), first_names(names)));
}

// A file's name without its digits: that of all shards of a set that has no "-of-".
std::string without_digits(std::string_view file) {
  std::string kept;
  for (const char c : file) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) kept += c;
  }
  return kept;
}

bool are_numbered_alike(const std::vector<std::string>& files) {
  return std::none_of(files.begin(), files.end(), [&](const std::string& file) {
    return find_part(file) || file.size() == without_digits(file).size() ||
           without_digits(file) != without_digits(files.front());
  });
}

// Throws where the files are not all the parts of one set.
void require_set(const std::string& folder, const std::vector<std::string>& files) {
  if (are_numbered_alike(files)) return;
  const std::optional<Part> first = find_part(files.front());
  if (!first) fail_choice(folder, files);
  const std::size_t count = *to_size(first->count);
  std::vector<bool> present(count, false);
  for (const std::string& file : files) {
    const std::optional<Part> part = find_part(file);
    if (!part || part->name != first->name || part->count != first->count || present[part->number - 1]) {
      fail_choice(folder, files);
    }
    present[part->number - 1] = true;
  }
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < count; ++i) {
    if (present[i]) continue;
    missing.push_back(fmt::format("{}-{:0{}}-of-{}{}", first->name, i + 1,
                                  first->count.starts_with('0') ? first->count.size() : 1, first->count,
                                  kSuffix));
  }
  if (!missing.empty()) {
    throw InputError(fmt::format("{}: {} of {} parts are missing: {}", folder, missing.size(), count,
                                 first_names(missing)));
  }
}

}  // namespace

Checkpoint read_safetensors_file(const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.path = path;
  HeaderBudget budget;
  read_safetensors_header(path, budget, checkpoint);
  finish_checkpoint(checkpoint);
  return checkpoint;
}

Checkpoint read_safetensors_folder(const std::string& path) {
  const Listing listing = list_folder(path);
  const auto inside = [&](const std::string& name) { return (fs::path(path) / name).string(); };
  if (listing.indexes.size() > 1) fail_choice(path, listing.indexes);
  Checkpoint checkpoint;
  if (listing.indexes.size() == 1) {
    checkpoint = read_safetensors_index(inside(listing.indexes.front()));
    checkpoint.path = path;
    return checkpoint;
  }
  if (listing.files.empty()) {
    if (!listing.pickle.empty()) {
      throw InputError(
          fmt::format("{}: holds '{}' but no safetensors file; PyTorch's pickles are not read: convert them, "
                      "or give config.json",
                      path, excerpt(listing.pickle)));
    }
    throw InputError(fmt::format("{}: holds no safetensors file", path));
  }
  std::vector<std::string> own;
  std::vector<std::string> sides;
  for (const std::string& name : listing.files) (side_of_file(name).empty() ? own : sides).push_back(name);
  if (own.empty()) std::swap(own, sides);
  // A single part of a set is not a model either.
  if (own.size() > 1 || find_part(own.front())) require_set(path, own);
  checkpoint.path = path;
  HeaderBudget budget;
  for (const std::string& name : own) read_safetensors_header(inside(name), budget, checkpoint);
  read_side_files(path, sides, budget, checkpoint);
  finish_checkpoint(checkpoint);
  return checkpoint;
}

}  // namespace memwall
