// Where a machine keeps cuBLAS: beside a toolkit, among Python's packages, or where the environment says.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace memwall::cuda {

// Folders under which it may lie, the first one first. None need exist.
struct LibraryRoots {
  std::string named;                  // MEMWALL_CUBLAS: then nowhere else
  std::vector<std::string> toolkits;  // with lib64, targets/*/lib, lib
  std::vector<std::string> packages;  // PYTHONPATH: folders of Python packages
  std::vector<std::string>
      prefixes;  // with lib/python3*/site-packages or dist-packages, lib (Conda), lib/ollama
};

// This machine's: `environment` gives a variable's value, or null; `root` stands before the paths that every
// machine has (/usr/local), for tests. Runs nothing.
LibraryRoots library_roots(const std::function<const char*(const char*)>& environment,
                           const std::string& root = "");

// A pair of libraries to try.
struct LibraryPlace {
  std::string cublasLt;  // to open first
  std::string cublas;
};

struct LibraryPlaces {
  std::string named;                 // MEMWALL_CUBLAS
  std::vector<LibraryPlace> places;  // of the wanted major version, the first one first
  std::vector<std::string> others;   // files of other versions, which are not
};

// Looks for libcublas.so.MAJOR with a libcublasLt.so.MAJOR beside it. The dynamic linker's own path, which
// knows LD_LIBRARY_PATH, comes before the roots, by plain names; nothing is opened.
LibraryPlaces library_places(const LibraryRoots& roots, int major);

// Why there is no cuBLAS, in one line that says what to do; `last` are the words of the last place's failure.
std::string no_library_words(const std::string& last, const LibraryPlaces& found, int major);

}  // namespace memwall::cuda
