// Finds and loads the CUDA backend, the module libmemwall_cuda.so. Nothing is loaded before a command asks:
// CUDA, and the libraries that the module opens, cost over 100 ms at every start.
#pragma once

#include <memory>
#include <string>

#include "cuda/runtime.h"
#include "input/error.h"

namespace memwall::cuda {

// There is no module to load: a build without CUDA.
class NoModule : public RunError {
 public:
  using RunError::RunError;
};

// The module's file: what MEMWALL_CUDA_MODULE names where it is set, whether it is there or not; else in
// LIBDIR/memwall of the prefix that `program` is installed under, or in the build tree that it runs from;
// empty where neither has one.
std::string module_path(const std::string& program);

// Loads the module of this file; what it throws says so on one line. Throws RunError where the file is no
// module, the libraries it needs are missing, or it is of another build.
std::unique_ptr<Runtime> load_module(const std::string& path);

// Throws RunError where the driver's library cannot be loaded: the module takes tens of MB, to say the same.
void require_driver(const char* library = "libcuda.so.1");

// Whether this program has a module to load.
bool has_module();

// This program's module. Throws NoModule where there is none, and as require_driver (but where
// MEMWALL_CUDA_MODULE names the module) and load_module do.
std::unique_ptr<Runtime> load_runtime();

// This machine has an NVIDIA device or driver, whatever this build can do with it. `root` stands before its
// paths, for tests.
bool nvidia_here(const std::string& root = "");

}  // namespace memwall::cuda
