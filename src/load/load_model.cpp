#include "load/load_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "huggingface/quantization.h"
#include "huggingface/read_config.h"
#include "input/data_files.h"
#include "input/error.h"
#include "load/gguf_model.h"
#include "load/safetensors_model.h"
#include "model/yaml_model.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

const Shelf kZoo{
    .what = "model",
    .folder = "models",
    .ignored = {"meta", "nvidia", "google", "microsoft", "mistralai", "openai", "tiiuae", "huggingfacetb"},
    .endings = true};

constexpr std::string_view kIndex = ".safetensors.index.json";
constexpr std::string_view kSafetensors = ".safetensors";
constexpr std::string_view kGguf = ".gguf";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The files of a folder by what they are.
struct Folder {
  std::string path;
  std::vector<std::string> ggufs;  // one of each split set
  bool config = false;
  bool safetensors = false;
  bool index = false;
};

// Of a split model the first part stands for all.
bool is_later_part(const std::string& name) {
  const std::size_t of = name.rfind("-of-");
  return of != std::string::npos && of >= 6 && name.compare(of - 6, 6, "-00001") != 0 &&
         name[of - 6] == '-' &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(of) - 5,
                     name.begin() + static_cast<std::ptrdiff_t>(of),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

Folder look_into(const std::string& path) {
  Folder folder{.path = path, .ggufs = {}};
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    folder.config |= name == "config.json";
    folder.index |= name.ends_with(kIndex);
    folder.safetensors |= name.ends_with(kSafetensors);
    if (name.ends_with(kGguf) && !is_later_part(name)) folder.ggufs.push_back(it->path().string());
  }
  if (error) throw InputError(fmt::format("{}: cannot be read: {}", path, error.message()));
  std::sort(folder.ggufs.begin(), folder.ggufs.end());
  return folder;
}

std::string config_beside(const std::string& file) {
  const fs::path config = fs::path(file).parent_path() / "config.json";
  return is_there(config) ? config.string() : "";
}

// A config.json by itself, with what lies beside it of its quantisation.
Model config_alone(const std::string& config) {
  Model model = load_config(config);
  const fs::path folder = fs::path(config).parent_path();
  for (const char* name : {"hf_quant_config.json", "quantize_config.json"}) {
    const fs::path file = folder / name;
    if (is_there(file) && is_plain_float(model.weights)) apply_quantization_file(file.string(), model);
  }
  return model;
}

bool any_shard_beside(const std::string& index) {
  std::error_code error;
  const fs::path folder = fs::absolute(index, error).parent_path();
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().ends_with(kSafetensors)) return true;
  }
  return false;
}

Checkpoint read_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return read_safetensors_folder(path);
  return path.ends_with(kIndex) ? read_safetensors_index(path) : read_safetensors_file(path);
}

[[noreturn]] void fail_bare(const std::string& path) {
  throw InputError(
      fmt::format("{}: no config.json beside it, so heads, windows and top-k are not known; put the "
                  "model's config.json there (memwall inspect lists the tensors)",
                  path));
}

// Headers win over what an index or a configuration say of them; where they differ the download may be mixed.
Model bound_model(const std::string& config, const Checkpoint& checkpoint) {
  Model model = bind_checkpoint(load_config(config), checkpoint);
  const std::int64_t indexed = checkpoint.data_bytes - checkpoint.side_bytes;
  if (checkpoint.index_total_size && *checkpoint.index_total_size != indexed) {
    model.warnings.push_back(fmt::format("{}: the index states a total_size of {}, its tensors take {} bytes",
                                         checkpoint.path, *checkpoint.index_total_size, indexed));
  }
  return model;
}

Model checkpoint_model(const std::string& path, const std::string& config) {
  if (config.empty()) fail_bare(path);
  // An index without a single shard is a download that has only begun: the configuration says enough.
  if (path.ends_with(kIndex) && !any_shard_beside(path)) {
    Model model = config_alone(config);
    model.warnings.push_back(
        fmt::format("{}: none of its shards is there: read from config.json alone", path));
    return model;
  }
  return bound_model(config, read_checkpoint(path));
}

Model folder_model(const std::string& path) {
  const Folder folder = look_into(path);
  const bool has_safetensors = folder.safetensors || folder.index;
  if (!folder.ggufs.empty() && (has_safetensors || folder.config || folder.ggufs.size() > 1)) {
    std::vector<std::string> names = folder.ggufs;
    if (has_safetensors || folder.config) names.push_back("a Hugging Face checkpoint");
    if (names.size() > 3) names.resize(3);
    throw InputError(fmt::format("{}: holds more than one model ({}); name the one you mean", path,
                                 fmt::join(names, ", ")));
  }
  if (!folder.ggufs.empty()) return load_gguf(folder.ggufs.front());
  const std::string config = folder.config ? (fs::path(path) / "config.json").string() : "";
  if (folder.safetensors) {
    if (config.empty()) fail_bare(path);
    return bound_model(config, read_safetensors_folder(path));
  }
  if (config.empty()) {
    throw InputError(fmt::format("{}: holds no model: no config.json, no .safetensors, no .gguf", path));
  }
  Model model = config_alone(config);
  if (folder.index)
    model.warnings.push_back(
        fmt::format("{}: holds an index and none of its shards: read from config.json alone", path));
  return model;
}

Model json_model(const std::string& path) {
  if (path.ends_with(kIndex)) return checkpoint_model(path, config_beside(path));
  if (path.ends_with(".bin.index.json")) {
    throw InputError(
        fmt::format("{}: an index carries no shapes, and PyTorch's .bin files are not read; name the "
                    "model's config.json",
                    path));
  }
  return config_alone(path);
}

}  // namespace

Model find_model(std::string_view word, std::vector<std::string>* notes) {
  const std::string path = find_on_shelf(kZoo, word, notes);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return folder_model(path);
  if (path.ends_with(".json")) return json_model(path);
  if (path.ends_with(kGguf)) return load_gguf(path);
  if (path.ends_with(kSafetensors)) return checkpoint_model(path, config_beside(path));
  return load_model_yaml(path);
}

std::optional<Checkpoint> find_bare_checkpoint(std::string_view word) {
  const std::string path(word);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (find_on_shelf(kZoo, word) != path) return std::nullopt;  // a name of the zoo comes first
    const Folder folder = look_into(path);
    if (folder.config || !folder.ggufs.empty() || !(folder.safetensors || folder.index)) return std::nullopt;
    return read_safetensors_folder(path);
  }
  const bool safetensors = path.ends_with(kSafetensors) || path.ends_with(kIndex);
  if (!safetensors || !config_beside(path).empty()) return std::nullopt;
  return read_checkpoint(path);
}

std::vector<Model> zoo() {
  std::vector<Model> models;
  for (const std::string& name : shelf_names(kZoo)) models.push_back(load_model_yaml(shelf_path(kZoo, name)));
  return models;
}

}  // namespace memwall
