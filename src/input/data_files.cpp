#include "input/data_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "input/error.h"
#include "input/suggest.h"
#include "input/yaml.h"

namespace memwall {
namespace fs = std::filesystem;
namespace {

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "models", ignored) && fs::is_directory(folder / "configs", ignored);
}

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [a, b] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return a == folder.end();
}

bool has_file_ending(const fs::path& path) {
  constexpr std::array kEndings = {".yaml", ".yml", ".json", ".safetensors", ".gguf"};
  return std::find(kEndings.begin(), kEndings.end(), path.extension().string()) != kEndings.end();
}

std::string path_of(const Shelf& shelf, const std::string& name) {
  return (fs::path(data_folder()) / shelf.folder / (name + ".yaml")).string();
}

}  // namespace

std::string data_folder() {
  if (const char* folder = std::getenv("MEMWALL_DATA"); folder != nullptr && *folder != '\0') {
    if (!holds_data(folder)) {
      throw InputError(fmt::format("MEMWALL_DATA: {} holds no models and configs folders", folder));
    }
    return folder;
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed = program.parent_path().parent_path() / MEMWALL_INSTALL_DATADIR / "memwall";
    if (holds_data(installed)) return installed.string();
    if (is_below(program, MEMWALL_BINARY_DIR) && holds_data(MEMWALL_SOURCE_DIR)) return MEMWALL_SOURCE_DIR;
  }
  throw InputError(
      "no models and configs folders beside this program; set MEMWALL_DATA to the folder that holds them");
}

std::vector<std::string> shelf_names(const Shelf& shelf) {
  const fs::path folder = fs::path(data_folder()) / shelf.folder;
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".yaml") names.push_back(it->path().stem().string());
  }
  if (error) throw InputError(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

std::string find_on_shelf(const Shelf& shelf, std::string_view word) {
  const std::string query = lower_case(word);
  std::vector<std::string> names = shelf_names(shelf);
  if (std::find(names.begin(), names.end(), query) != names.end()) return path_of(shelf, query);

  // Something with a slash or a model file's ending is meant as a file; anything else may still be one.
  const std::string path(word);
  const bool looks_like_path = word.find('/') != std::string_view::npos || has_file_ending(path);
  if (looks_like_path) return path;

  std::vector<std::string> words = names;
  for (const std::string& name : names) {
    const yaml::Node file = yaml::load(path_of(shelf, name));
    yaml::Mapping map(file, shelf.what);
    for (const std::string& alias : map.text_list_or_empty("aliases")) {
      if (lower_case(alias) == query) return path_of(shelf, name);
      words.push_back(alias);
    }
  }
  std::error_code ignored;
  if (fs::exists(path, ignored)) return path;
  throw InputError(fmt::format("unknown {} '{}'; did you mean {}? `memwall {}s` lists them", shelf.what, word,
                               join_or(nearest(word, words, 3)), shelf.what));
}

}  // namespace memwall
