#include "cuda/load.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "cuda/seam_hash.h"

namespace memwall::cuda {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFile = "libmemwall_cuda.so";

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

// The module that the environment names; null where it names none.
const char* named_module() {
  const char* named = std::getenv("MEMWALL_CUDA_MODULE");
  return named != nullptr && *named != '\0' ? named : nullptr;
}

// The dynamic linker's words for its last failure, on one line.
std::string linker_error() {
  const char* error = ::dlerror();
  std::string text = error != nullptr ? error : "unknown error";
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

template <class Function>
Function* symbol(void* module, const char* name, const std::string& path) {
  void* address = ::dlsym(module, name);
  if (address == nullptr) throw RunError(fmt::format("{} is no CUDA backend of memwall: no {}", path, name));
  return reinterpret_cast<Function*>(address);
}

}  // namespace

std::string module_path(const std::string& program) {
  if (const char* named = named_module()) {
    // Absolute, or the dynamic linker would search its own path for a plain name.
    return fs::absolute(named).string();
  }
  std::error_code ignored;
  const fs::path prefix = fs::path(program).parent_path().parent_path();
  const fs::path installed = prefix / MEMWALL_INSTALL_LIBDIR / "memwall" / kFile;
  if (fs::exists(installed, ignored)) return installed.string();
  const fs::path built = fs::path(MEMWALL_BINARY_DIR) / kFile;
  if (is_below(program, MEMWALL_BINARY_DIR) && fs::exists(built, ignored)) return built.string();
  return "";
}

std::unique_ptr<Runtime> load_module(const std::string& path) {
  // Never closed: CUDA's libraries leave exit handlers and thread-local data behind, and an error that the
  // module threw has its code there.
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw RunError("the CUDA backend cannot be loaded: " + linker_error());
  const std::uint64_t version = symbol<ModuleVersionFunction>(module, "memwall_cuda_module_version", path)();
  if (version != kSeamHash) {
    throw RunError(
        fmt::format("{} is of another build of memwall (its interface is {:016x}, this program's {:016x}); "
                    "build and install both together",
                    path, version, kSeamHash));
  }
  return std::unique_ptr<Runtime>(symbol<ModuleRuntimeFunction>(module, "memwall_cuda_runtime", path)());
}

void require_driver(const char* library) {
  // Not closed: the module opens it next.
  if (::dlopen(library, RTLD_LAZY | RTLD_LOCAL) == nullptr) throw RunError("no CUDA driver was found");
}

namespace {

std::string own_module_path() {
  std::error_code ignored;
  return module_path(fs::read_symlink("/proc/self/exe", ignored).string());
}

}  // namespace

bool has_module() { return !own_module_path().empty(); }

std::unique_ptr<Runtime> load_runtime() {
  const std::string path = own_module_path();
  if (path.empty()) throw NoModule("this build has no CUDA backend");
  if (named_module() == nullptr) require_driver();
  return load_module(path);
}

bool nvidia_here(const std::string& root) {
  std::error_code failed;
  if (fs::exists(root + "/proc/driver/nvidia/version", failed)) return true;
  if (fs::exists(root + "/dev/dxg", failed)) return true;  // Windows' GPU, in its Linux
  // /dev/nvidia0 and on; a container may have a later one alone.
  for (fs::directory_iterator at(root + "/dev", failed); !failed && at != fs::directory_iterator();
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name.rfind("nvidia", 0) == 0 && name.size() > 6 && name[6] >= '0' && name[6] <= '9') return true;
  }
  return false;
}

}  // namespace memwall::cuda
