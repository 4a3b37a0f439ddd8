#include "cuda/module/cublas_library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "cuda/module/library_places.h"

namespace memwall::cuda {
namespace {

// On one line.
std::string linker_error() {
  const char* error = ::dlerror();
  std::string text = error != nullptr ? error : "unknown error";
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

// One pair of libraries, closed again unless it is kept.
class Opened {
 public:
  // Lt first and for all to see: cuBLAS needs it, and lies in no path of the dynamic linker's.
  explicit Opened(const LibraryPlace& place) {
    lt_ = ::dlopen(place.cublasLt.c_str(), RTLD_LAZY | RTLD_GLOBAL);
    if (lt_ != nullptr) cublas_ = ::dlopen(place.cublas.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (cublas_ == nullptr) why_not_ = linker_error();
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    if (kept_) return;
    if (cublas_ != nullptr) ::dlclose(cublas_);
    if (lt_ != nullptr) ::dlclose(lt_);
  }

  const std::string& why_not() const { return why_not_; }
  void keep() { kept_ = true; }

  CublasFunctions functions() {
    CublasFunctions call;
#define MEMWALL_FIND(name) find(cublas_, #name, call.name);
    MEMWALL_CUBLAS_FUNCTIONS(MEMWALL_FIND)
#undef MEMWALL_FIND
#define MEMWALL_FIND(name) find(lt_, #name, call.name);
    MEMWALL_CUBLASLT_FUNCTIONS(MEMWALL_FIND)
#undef MEMWALL_FIND
    return call;
  }

 private:
  template <class Function>
  void find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    if (function == nullptr && why_not_.empty()) why_not_ = std::string("it has no ") + name;
  }

  void* lt_ = nullptr;
  void* cublas_ = nullptr;
  std::string why_not_;
  bool kept_ = false;
};

std::string dotted(int major, int minor, int patch) {
  return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(patch);
}

// Why this pair is not used; empty where it is.
std::string open(const LibraryPlace& place, CublasLibrary& library) {
  Opened opened(place);
  if (!opened.why_not().empty()) return opened.why_not();
  const CublasFunctions call = opened.functions();
  if (!opened.why_not().empty()) return place.cublas + ": " + opened.why_not();
  std::array<int, 3> parts{};
  for (const auto& [property, value] :
       {std::pair{MAJOR_VERSION, &parts[0]}, std::pair{MINOR_VERSION, &parts[1]},
        std::pair{PATCH_LEVEL, &parts[2]}}) {
    if (call.cublasGetProperty(property, value) != CUBLAS_STATUS_SUCCESS)
      return place.cublas + " does not tell its version";
  }
  library.version = dotted(parts[0], parts[1], parts[2]);
  if (parts[0] != CUBLAS_VER_MAJOR)
    return place.cublas + " is " + library.version + ", and memwall was built for " +
           std::to_string(CUBLAS_VER_MAJOR);
  // 130100 is 13.1.0; before 12 it was 1000 and 100 in place of 10000 and 100.
  const auto lt = static_cast<int>(call.cublasLtGetVersion());
  library.lt_version = dotted(lt / 10000, lt / 100 % 100, lt % 100);
  library.call = call;
  opened.keep();
  return "";
}

CublasLibrary open_any() {
  const LibraryPlaces found =
      library_places(library_roots([](const char* name) { return std::getenv(name); }), CUBLAS_VER_MAJOR);
  CublasLibrary library;
  // The last pair's words: the first is the dynamic linker's path, where mostly there is none.
  for (const LibraryPlace& place : found.places) {
    library = {};
    library.why_not = open(place, library);
    if (library.why_not.empty()) return library;
  }
  CublasLibrary none;
  none.why_not = no_library_words(library.why_not, found, CUBLAS_VER_MAJOR);
  return none;
}

}  // namespace

const CublasLibrary& cublas_library() {
  static const auto& library = *new CublasLibrary(open_any());
  return library;
}

}  // namespace memwall::cuda
