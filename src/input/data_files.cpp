#include "input/data_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "input/error.h"
#include "input/names.h"
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

constexpr std::array<std::string_view, 4> kHubs = {"https://huggingface.co/", "http://huggingface.co/",
                                                   "huggingface.co/", "hf.co/"};

// "hf.co/owner/Name:Q4_K_M" without its host.
std::string_view without_hub(std::string_view word) {
  for (const std::string_view hub : kHubs) {
    if (word.size() > hub.size() && lower_case(word.substr(0, hub.size())) == hub)
      return word.substr(hub.size());
  }
  return word;
}

// "owner/Name": one slash between two words, none of which is a folder's "." or "..".
bool is_owned(std::string_view word) {
  const std::size_t slash = word.find('/');
  return slash != std::string_view::npos && slash > 0 && slash + 1 < word.size() &&
         word.find('/', slash + 1) == std::string_view::npos && word.front() != '.' && word.front() != '~';
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// What looks like a file's path, not like a name: it exists, or could be nothing else.
bool is_path(std::string_view word) {
  const std::string path(word);
  if (path == "." || path == "..") return true;
  const bool slash = word.find('/') != std::string_view::npos;
  if (has_file_ending(path)) return true;
  return slash && (exists(path) || (!is_owned(word) && without_hub(word) == word));
}

// One file of a shelf and every way to write its name.
struct Entry {
  std::string name;
  std::string title;
  NameParts parts;
  std::vector<NameParts> others;  // its aliases and its title
};

// What a word was found to mean.
struct Hit {
  const Entry* entry = nullptr;
  std::vector<std::string> others = {};  // names that begin with the word, too
  bool inexact = false;                  // the word says less than the name, or more
  std::string left_aside = {};           // what says how weights are stored

  explicit operator bool() const { return entry != nullptr; }
};

// Looks for one word among a shelf's names.
class Search {
 public:
  Search(const Shelf& shelf, std::string_view word) : shelf_(shelf), word_(word) {
    for (const std::string& name : shelf_names(shelf)) {
      entries_.push_back({name, "", parts_of(name), {}});
      words_.push_back(name);
    }
  }

  // A name as it stands, or only spelt otherwise: no file need be read.
  Hit by_name(std::string_view text) const {
    const std::string query = lower_case(text);
    for (const Entry& entry : entries_) {
      if (entry.name == query) return {&entry};
    }
    const NameParts parts = parts_of(text);
    return only(entries_with([&](const Entry& entry) { return parts.equals(entry.parts); }));
  }

  void read_aliases() {
    for (Entry& entry : entries_) {
      const yaml::Node file = yaml::load(shelf_path(shelf_, entry.name));
      yaml::Mapping map(file, shelf_.what);
      entry.title = map.text_or("title", "");
      entry.others.push_back(parts_of(entry.title));
      for (const std::string& alias : map.text_list_or_empty("aliases")) {
        entry.others.push_back(parts_of(alias));
        words_.push_back(alias);
      }
    }
  }

  // An alias or a title. Where other names begin with it, it says less than a name.
  Hit by_alias(std::string_view text) const {
    const NameParts parts = parts_of(text);
    if (parts.parts.empty()) return {};
    Hit hit = only(entries_with([&](const Entry& entry) {
      return is_called(entry, [&](const NameParts& p) { return parts.equals(p); });
    }));
    if (!hit) return hit;
    for (const Entry* entry : entries_with([&](const Entry& e) { return parts.begins(e.parts); })) {
      if (entry != hit.entry) hit.others.push_back(entry->name);
    }
    hit.inexact = !hit.others.empty();
    return hit;
  }

  // The same letters and digits, wherever words end: "llama-3-1-8b".
  Hit by_letters(std::string_view text) const {
    const std::string letters = parts_of(text).compact();
    if (letters.empty()) return {};
    const auto found = entries_with([&](const Entry& entry) {
      return is_called(entry, [&](const NameParts& parts) { return parts.compact() == letters; });
    });
    if (found.size() != 1) return {};
    return {found.front(), {}, true};
  }

  // Without the words behind a name that leave its shapes as they are.
  Hit by_shorter(std::string_view text) const {
    Shortened left{.name = std::string(text)};
    bool format = false;
    while ((left = without_last_ending(left.name)).changed) {
      format = format || left.format;
      Hit hit = by_name(left.name);
      if (!hit) hit = by_alias(left.name);
      if (!hit) continue;
      hit.inexact = true;
      if (format) hit.left_aside = text.substr(left.name.size());
      return hit;
    }
    return left.name.size() < text.size() ? by_beginning(left.name) : Hit{};
  }

  // The one name that begins so. Throws InputError with the choices where there are several.
  Hit by_beginning(std::string_view text) const {
    const NameParts parts = parts_of(text);
    auto found = entries_with([&](const Entry& entry) { return parts.begins(entry.parts); });
    if (found.empty()) {
      found = entries_with([&](const Entry& entry) {
        return is_called(entry, [&](const NameParts& p) { return parts.begins(p); });
      });
    }
    Hit hit = only(found);
    hit.inexact = true;
    return hit;
  }

  // Without the memory's kind, then without its size.
  Hit by_kind(std::string_view text) const {
    const std::string without_type = without_memory(text, false);
    for (const std::string& left : {without_type, without_memory(text, true)}) {
      Hit hit = by_name(left);
      if (!hit) hit = by_alias(left);
      if (!hit) hit = by_letters(left);
      if (!hit) continue;
      hit.inexact = true;
      return hit;
    }
    return {};
  }

  [[noreturn]] void fail() const {
    const bool path = word_.find('/') != std::string::npos;
    const std::vector<std::string> near = nearest(word_, near_in_meaning(), 3);
    const bool meant = has_family() || (!near.empty() && is_near(word_, near.front()));
    throw InputError(fmt::format("unknown {} '{}'{}; {}`memwall {}s` lists them{}", shelf_.what, word_,
                                 path ? ", and no file of that name" : "",
                                 meant ? fmt::format("did you mean {}? ", join_or(near)) : "", shelf_.what,
                                 shelf_.otherwise));
  }

  // What a reader should know of a hit; empty for a name that is only spelt otherwise.
  std::string note_of(const Hit& hit) const {
    if (!hit.inexact) return "";
    std::string text = fmt::format("{} '{}' is taken as {}", shelf_.what, word_, hit.entry->name);
    if (!hit.entry->title.empty()) text += fmt::format(" ({})", hit.entry->title);
    if (!hit.others.empty()) text += fmt::format("; another is {}", fmt::join(hit.others, ", "));
    if (!hit.left_aside.empty())
      text += fmt::format("; '{}' is left aside, and --weights sets a format", hit.left_aside);
    return text;
  }

 private:
  NameParts parts_of(std::string_view text) const { return name_parts(text, shelf_.ignored); }

  template <typename Test>
  std::vector<const Entry*> entries_with(Test test) const {
    std::vector<const Entry*> found;
    for (const Entry& entry : entries_) {
      if (test(entry)) found.push_back(&entry);
    }
    return found;
  }

  template <typename Test>
  static bool is_called(const Entry& entry, Test test) {
    return test(entry.parts) || std::any_of(entry.others.begin(), entry.others.end(), test);
  }

  // The one found, or nothing. Throws InputError with the choices where there are several.
  Hit only(const std::vector<const Entry*>& found) const {
    if (found.size() == 1) return {found.front()};
    if (found.empty()) return {};
    constexpr std::size_t kMost = 8;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(found.size(), kMost); ++i) names.push_back(found[i]->name);
    const std::string choices = found.size() <= kMost
                                    ? join_or(names)
                                    : fmt::format("{} or one of {} more (`memwall {}s` lists them)",
                                                  fmt::join(names, ", "), found.size() - kMost, shelf_.what);
    throw InputError(fmt::format("{} '{}' may be {}: name the one you mean", shelf_.what, word_, choices));
  }

  bool has_family() const { return near_in_meaning().size() < words_.size(); }

  // The names of the same family where there is one: "qwen9-1b" is nearer to any Qwen than to "yi-6b".
  std::vector<std::string> near_in_meaning() const {
    const NameParts parts = parts_of(word_);
    std::vector<std::string> family;
    for (const std::string& name : words_) {
      const NameParts other = parts_of(name);
      if (!parts.parts.empty() && !other.parts.empty() &&
          parts.parts.front().text == other.parts.front().text)
        family.push_back(name);
    }
    return family.empty() ? words_ : family;
  }

  const Shelf& shelf_;
  std::string word_;
  std::vector<Entry> entries_;
  std::vector<std::string> words_;  // names, then aliases, to suggest
};

bool has_data_folder() {
  try {
    data_folder();
    return true;
  } catch (const InputError&) {
    return false;
  }
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

std::string shelf_path(const Shelf& shelf, const std::string& name) {
  return (fs::path(data_folder()) / shelf.folder / (name + ".yaml")).string();
}

std::string find_on_shelf(const Shelf& shelf, std::string_view word, std::vector<std::string>* notes) {
  std::string path(word);
  if (is_path(word)) return path;
  if (!has_data_folder() && exists(path)) return path;
  // The owner of a model says nothing of its shapes.
  std::string_view text = without_hub(word);
  if (const std::size_t slash = text.rfind('/'); slash != std::string_view::npos)
    text.remove_prefix(slash + 1);

  Search search(shelf, word);
  Hit hit = search.by_name(text);
  if (hit) return shelf_path(shelf, hit.entry->name);
  search.read_aliases();
  hit = search.by_alias(text);
  if (!hit && exists(path)) return path;
  if (!hit) hit = search.by_letters(text);
  if (!hit && shelf.memory) hit = search.by_kind(text);
  if (!hit && shelf.endings) hit = search.by_shorter(text);
  if (!hit) hit = search.by_beginning(text);
  if (!hit) search.fail();
  const std::string note = search.note_of(hit);
  if (notes != nullptr && !note.empty()) notes->push_back(note);
  return shelf_path(shelf, hit.entry->name);
}

}  // namespace memwall
