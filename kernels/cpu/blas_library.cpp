#include "kernels/cpu/blas_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>

namespace memwall::cpu {
namespace {

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

// OpenBLAS reads its number of threads once, while it is loaded, and starts as many at once; where the system
// refuses them (a limit on processes or memory) it waits for them for ever at exit. With one there are none.
class OneOpenBlasThread {
 public:
  OneOpenBlasThread() {
    if (const char* old = std::getenv(kVariable)) old_ = old;
    ::setenv(kVariable, "1", 1);
  }
  ~OneOpenBlasThread() {
    if (old_) {
      ::setenv(kVariable, old_->c_str(), 1);
    } else {
      ::unsetenv(kVariable);
    }
  }
  OneOpenBlasThread(const OneOpenBlasThread&) = delete;
  OneOpenBlasThread& operator=(const OneOpenBlasThread&) = delete;

 private:
  static constexpr const char* kVariable = "OPENBLAS_NUM_THREADS";
  std::optional<std::string> old_;
};

std::vector<std::string> usual_names() {
  if (const char* named = std::getenv("MEMWALL_BLAS"); named != nullptr && *named != '\0') return {named};
  // Sonames, so that the packages to run suffice; libblas.so.3 may be any implementation, and has the C
  // interface on Debian.
  return {"libopenblas.so.0", "libcblas.so.3", "libblas.so.3", "libopenblas.so", "libcblas.so"};
}

}  // namespace

BlasLibrary load_blas(const std::vector<std::string>& names) {
  const OneOpenBlasThread one_thread;
  BlasLibrary found;
  std::string first_error;
  for (const std::string& name : names) {
    // Never closed: its functions are used until the process ends.
    void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* error = ::dlerror();
      if (first_error.empty()) first_error = error != nullptr ? error : name + " cannot be loaded";
      continue;
    }
    found.sgemm = symbol<SgemmFunction>(library, "cblas_sgemm");
    found.sgemv = symbol<SgemvFunction>(library, "cblas_sgemv");
    if (found.sgemm == nullptr || found.sgemv == nullptr) {
      found = {};
      if (first_error.empty()) first_error = name + " has no cblas_sgemm and cblas_sgemv";
      ::dlclose(library);
      continue;
    }
    // One that was in the process already has read its number of threads.
    if (auto* set_threads = symbol<void(int)>(library, "openblas_set_num_threads")) set_threads(1);
    auto* config = symbol<char*()>(library, "openblas_get_config");
    found.description = config != nullptr ? config() : "a CBLAS that does not tell its name (" + name + ")";
    return found;
  }
  found.why_not =
      "no BLAS can be loaded (" + first_error +
      "); install OpenBLAS (Debian: libopenblas0), or name a library with a C interface in MEMWALL_BLAS";
  return found;
}

const BlasLibrary& blas_library() {
  static const BlasLibrary library = load_blas(usual_names());
  return library;
}

}  // namespace memwall::cpu
