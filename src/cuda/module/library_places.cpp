#include "cuda/module/library_places.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>

namespace memwall::cuda {
namespace fs = std::filesystem;
namespace {

// The entries of a folder whose names begin so, the last one first: of versions mostly the newest.
std::vector<fs::path> entries(const fs::path& folder, const std::string& beginning = "") {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed); !failed && at != fs::directory_iterator();
       at.increment(failed)) {
    if (at->path().filename().string().rfind(beginning, 0) == 0) found.push_back(at->path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The folder that holds bin/python3, for each python3 on PATH: a virtual environment's, and that of the
// Python it links to.
void add_pythons(const char* path, std::vector<std::string>& prefixes) {
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path python = fs::path(folder) / "python3";
    if (folder.empty() || !is_there(python)) continue;
    prefixes.push_back(python.parent_path().parent_path().string());
    std::error_code failed;
    const fs::path target = fs::canonical(python, failed);
    if (!failed) prefixes.push_back(target.parent_path().parent_path().string());
  }
}

// NVIDIA's Python packages: nvidia-cublas-cu12 and nvidia-cublas.
void add_packages(const fs::path& packages, std::vector<fs::path>& folders) {
  for (const fs::path& cuda : entries(packages / "nvidia", "cu")) folders.push_back(cuda / "lib");
}

void add_prefix(const fs::path& prefix, std::vector<fs::path>& folders) {
  for (const char* lib : {"lib", "lib64"}) {
    for (const fs::path& python : entries(prefix / lib, "python3")) {
      for (const char* packages : {"site-packages", "dist-packages"})
        add_packages(python / packages, folders);
    }
  }
}

// A Python or Conda installation, and the environments it keeps.
void add_installation(const std::string& folder, std::vector<std::string>& prefixes) {
  prefixes.push_back(folder);
  for (const char* kept : {"envs", "versions"}) {  // Conda's, pyenv's
    for (const fs::path& environment : entries(fs::path(folder) / kept)) prefixes.push_back(environment);
  }
}

std::vector<fs::path> folders_of(const LibraryRoots& roots) {
  if (!roots.named.empty()) return {roots.named};
  std::vector<fs::path> folders;
  const auto add_toolkit = [&](const fs::path& toolkit) {
    folders.push_back(toolkit / "lib64");
    for (const fs::path& target : entries(toolkit / "targets")) folders.push_back(target / "lib");
    folders.push_back(toolkit / "lib");
  };
  for (const std::string& toolkit : roots.toolkits) add_toolkit(toolkit);
  for (const std::string& packages : roots.packages) add_packages(packages, folders);
  for (const std::string& prefix : roots.prefixes) {
    add_prefix(prefix, folders);
    add_toolkit(prefix);  // Conda's packages lie as a toolkit does
    for (const fs::path& engine : entries(fs::path(prefix) / "lib/ollama")) folders.push_back(engine);
  }
  return folders;
}

}  // namespace

LibraryRoots library_roots(const std::function<const char*(const char*)>& environment,
                           const std::string& root) {
  LibraryRoots roots;
  const auto value = [&](const char* name) {
    const char* found = environment(name);
    return std::string(found == nullptr ? "" : found);
  };
  const auto add = [&](std::vector<std::string>& list, const std::string& folder) {
    if (!folder.empty()) list.push_back(folder);
  };
  roots.named = value("MEMWALL_CUBLAS");
  add(roots.toolkits, value("CUDA_HOME"));
  add(roots.toolkits, value("CUDA_PATH"));
  roots.toolkits.push_back(root + "/usr/local/cuda");
  for (const fs::path& toolkit : entries(root + "/usr/local", "cuda-")) roots.toolkits.push_back(toolkit);
  std::istringstream packages(value("PYTHONPATH"));
  for (std::string folder; std::getline(packages, folder, ':');) add(roots.packages, folder);
  add(roots.prefixes, value("VIRTUAL_ENV"));
  add(roots.prefixes, value("CONDA_PREFIX"));
  add_pythons(value("PATH").c_str(), roots.prefixes);
  if (const std::string home = value("HOME"); !home.empty()) {
    roots.prefixes.push_back(home + "/.local");
    for (const char* folder :
         {".venv", "venv", "miniconda3", "anaconda3", "miniforge3", "mambaforge", ".pyenv"})
      add_installation(home + '/' + folder, roots.prefixes);
  }
  for (const fs::path& folder : entries(root + "/opt")) {
    add_installation(folder.string(), roots.prefixes);
    roots.prefixes.push_back((folder / ".venv").string());
  }
  for (const char* folder : {"/.venv", "/venv", "/workspace/.venv", "/workspace/venv"})  // containers'
    roots.prefixes.push_back(root + folder);
  roots.prefixes.push_back(root + "/usr/local");
  roots.prefixes.push_back(root + "/usr");
  return roots;
}

LibraryPlaces library_places(const LibraryRoots& roots, int major) {
  const std::string ending = ".so." + std::to_string(major);
  LibraryPlaces found;
  found.named = roots.named;
  if (roots.named.empty()) found.places.push_back({"libcublasLt" + ending, "libcublas" + ending});
  std::set<fs::path> seen;
  for (const fs::path& folder : folders_of(roots)) {
    std::error_code failed;
    const fs::path real = fs::canonical(folder, failed);
    if (failed || !seen.insert(real).second) continue;
    const LibraryPlace place{(folder / ("libcublasLt" + ending)).string(),
                             (folder / ("libcublas" + ending)).string()};
    if (is_there(place.cublasLt) && is_there(place.cublas)) {
      found.places.push_back(place);
      continue;
    }
    for (const fs::path& file : entries(folder, "libcublas.so.")) {
      if (file.filename() != "libcublas" + ending) found.others.push_back(file.string());
    }
  }
  return found;
}

std::string no_library_words(const std::string& last, const LibraryPlaces& found, int major) {
  std::string words = "libcublas.so." + std::to_string(major) + " was not found";
  if (!found.named.empty()) words += " in " + found.named;
  if (!found.others.empty()) {
    words += ", for which memwall was built, but " + found.others.front();
  } else if (!last.empty()) {
    words += " (" + last + ')';
  }
  const bool named = !found.named.empty();
  return words + (named ? ", which MEMWALL_CUBLAS names" : "; MEMWALL_CUBLAS can name its folder");
}

}  // namespace memwall::cuda
