#include "load/zoo.h"

#include <fmt/format.h>

#include <filesystem>

#include "huggingface/read_config.h"
#include "input/data_files.h"
#include "input/error.h"
#include "model/yaml_model.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

const Shelf kZoo{.what = "model", .folder = "models"};

}  // namespace

Model find_model(std::string_view word) {
  const std::string path = find_on_shelf(kZoo, word);
  const std::string extension = fs::path(path).extension().string();
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return load_config((fs::path(path) / "config.json").string());
  if (extension == ".json") return load_config(path);
  if (extension == ".gguf" || extension == ".safetensors") {
    throw InputError(fmt::format(
        "{}: {} files are not read yet; describe the model in YAML (docs/model-format.md)", path, extension));
  }
  return load_model_yaml(path);
}

std::vector<Model> zoo() {
  std::vector<Model> models;
  for (const std::string& name : shelf_names(kZoo))
    models.push_back(load_model_yaml(find_on_shelf(kZoo, name)));
  return models;
}

}  // namespace memwall
