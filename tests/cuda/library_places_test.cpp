// Where cuBLAS is looked for, on machines made of empty files.
#include "cuda/module/library_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tests/temporary_folder.h"

namespace memwall::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CudaLibraryPlaces : public ::testing::Test {
 protected:
  // Files of a version: cuBLAS and, beside it, cuBLASLt.
  void install(const std::string& folder, int major, bool lt = true) const {
    fs::create_directories(machine_ / folder);
    const std::string ending = ".so." + std::to_string(major);
    write_text(machine_ / (folder + "/libcublas" + ending), "");
    if (lt) write_text(machine_ / (folder + "/libcublasLt" + ending), "");
  }
  LibraryPlaces find(const std::map<std::string, std::string>& environment = {}) const {
    return library_places(roots(environment), 13);
  }
  LibraryRoots roots(const std::map<std::string, std::string>& environment) const {
    const auto value = [&](const char* name) {
      const auto found = environment.find(name);
      return found == environment.end() ? nullptr : found->second.c_str();
    };
    return library_roots(value, machine_.path());
  }
  // The folders that are tried behind the dynamic linker's path, below the machine's root.
  std::vector<std::string> folders(const std::map<std::string, std::string>& environment = {}) const {
    std::vector<std::string> found;
    for (const LibraryPlace& place : find(environment).places) {
      const fs::path folder = fs::path(place.cublas).parent_path();
      EXPECT_EQ(folder, fs::path(place.cublasLt).parent_path());
      if (!folder.empty()) found.push_back(folder.lexically_relative(machine_.path()));
    }
    return found;
  }

  TemporaryFolder machine_;
};

TEST_F(CudaLibraryPlaces, TheDynamicLinkersPathComesFirst) {
  const LibraryPlaces none = find();
  ASSERT_EQ(none.places.size(), 1U);
  EXPECT_EQ(none.places[0].cublasLt, "libcublasLt.so.13");
  EXPECT_EQ(none.places[0].cublas, "libcublas.so.13");
}

TEST_F(CudaLibraryPlaces, ToolkitsComeBeforePythonsPackages) {
  install("opt/engine/.venv/lib/python3.12/site-packages/nvidia/cu13/lib", 13);
  install("opt/other/lib/python3.11/site-packages/nvidia/cublas/lib", 13);
  install("usr/lib/python3/dist-packages/nvidia/cublas/lib", 13);
  install("usr/local/cuda-13.0/targets/x86_64-linux/lib", 13);
  install("usr/local/lib/python3.10/dist-packages/nvidia/cu13/lib", 13);
  EXPECT_THAT(folders(), ElementsAre("usr/local/cuda-13.0/targets/x86_64-linux/lib",
                                     "opt/other/lib/python3.11/site-packages/nvidia/cublas/lib",
                                     "opt/engine/.venv/lib/python3.12/site-packages/nvidia/cu13/lib",
                                     "usr/local/lib/python3.10/dist-packages/nvidia/cu13/lib",
                                     "usr/lib/python3/dist-packages/nvidia/cublas/lib"));
}

TEST_F(CudaLibraryPlaces, TheEnvironmentsFoldersComeBeforeTheUsualOnes) {
  install("usr/local/cuda/lib64", 13);
  install("toolkit/lib64", 13);
  install("elsewhere/lib", 13);
  install("venv/lib/python3.11/site-packages/nvidia/cu13/lib", 13);
  install("conda/lib", 13);
  install("home/.local/lib/python3.11/site-packages/nvidia/cu13/lib", 13);
  EXPECT_THAT(folders({{"CUDA_HOME", machine_ / "toolkit"},
                       {"CUDA_PATH", machine_ / "elsewhere"},
                       {"VIRTUAL_ENV", machine_ / "venv"},
                       {"CONDA_PREFIX", machine_ / "conda"},
                       {"HOME", machine_ / "home"}}),
              ElementsAre("toolkit/lib64", "elsewhere/lib", "usr/local/cuda/lib64",
                          "venv/lib/python3.11/site-packages/nvidia/cu13/lib", "conda/lib",
                          "home/.local/lib/python3.11/site-packages/nvidia/cu13/lib"));
}

// A virtual environment's python3 is a link, and so may be the one it names.
TEST_F(CudaLibraryPlaces, PythonOnThePathTellsItsPrefixes) {
  install("env/lib/python3.12/site-packages/nvidia/cu13/lib", 13);
  install("python/lib/python3.12/site-packages/nvidia/cu13/lib", 13);
  for (const char* folder : {"env/bin", "python/bin"}) fs::create_directories(machine_ / folder);
  write_text(machine_ / "python/bin/python3.12", "");
  fs::create_symlink("python3.12", machine_ / "python/bin/python3");
  fs::create_symlink(machine_ / "python/bin/python3", machine_ / "env/bin/python3");
  EXPECT_THAT(folders({{"PATH", "/nowhere::" + (machine_ / "env/bin")}}),
              ElementsAre("env/lib/python3.12/site-packages/nvidia/cu13/lib",
                          "python/lib/python3.12/site-packages/nvidia/cu13/lib"));
}

// Where a job's shell has none of them on PATH.
TEST_F(CudaLibraryPlaces, EnvironmentsThatNobodyActivatedAreFound) {
  const std::vector<std::string> places = {
      "site/nvidia/cu13/lib",
      "home/venv/lib/python3.12/site-packages/nvidia/cu13/lib",
      "home/miniconda3/lib",
      "home/miniconda3/envs/torch/lib",
      "home/.pyenv/versions/3.12.4/lib/python3.12/site-packages/nvidia/cu13/lib",
      "opt/conda/envs/torch/lib/python3.11/site-packages/nvidia/cublas/lib",
      "workspace/venv/lib/python3.10/site-packages/nvidia/cublas/lib",
      "usr/local/lib/ollama/cuda_v13"};
  for (const std::string& place : places) install(place, 13);
  EXPECT_EQ(folders({{"HOME", machine_ / "home"}, {"PYTHONPATH", "/nowhere:" + (machine_ / "site")}}),
            places);
}

TEST_F(CudaLibraryPlaces, ANamedFolderIsTheOnlyOne) {
  install("usr/local/cuda/lib64", 13);
  install("named", 13);
  EXPECT_THAT(folders({{"MEMWALL_CUBLAS", machine_ / "named"}}), ElementsAre("named"));
  EXPECT_EQ(find({{"MEMWALL_CUBLAS", machine_ / "named"}}).places.size(), 1U);  // nor the dynamic linker's
  EXPECT_THAT(find({{"MEMWALL_CUBLAS", machine_ / "missing"}}).places, IsEmpty());
}

TEST_F(CudaLibraryPlaces, AFolderIsTriedOnce) {
  install("usr/local/cuda-13.0/targets/x86_64-linux/lib", 13);
  fs::create_symlink("targets/x86_64-linux/lib", machine_ / "usr/local/cuda-13.0/lib64");
  fs::create_symlink("cuda-13.0", machine_ / "usr/local/cuda");
  EXPECT_THAT(folders(), ElementsAre("usr/local/cuda/lib64"));
}

TEST_F(CudaLibraryPlaces, OtherVersionsAndHalvesAreNotTried) {
  install("usr/local/cuda/lib64", 12);
  install("opt/half/lib", 13, false);
  EXPECT_THAT(folders(), IsEmpty());
  EXPECT_THAT(find().others, ElementsAre(EndsWith("usr/local/cuda/lib64/libcublas.so.12")));
}

TEST_F(CudaLibraryPlaces, WhyThereIsNoneIsOneLine) {
  EXPECT_EQ(
      no_library_words("libcublasLt.so.13: cannot open shared object file", find(), 13),
      "libcublas.so.13 was not found (libcublasLt.so.13: cannot open shared object file); MEMWALL_CUBLAS can "
      "name its folder");
  install("usr/local/cuda/lib64", 12);
  const std::string words = no_library_words("libcublasLt.so.13: cannot open", find(), 13);
  EXPECT_THAT(words, HasSubstr("for which memwall was built, but "));
  EXPECT_THAT(words, HasSubstr("usr/local/cuda/lib64/libcublas.so.12; "));
  EXPECT_THAT(words, Not(HasSubstr("\n")));
  EXPECT_EQ(no_library_words("", find({{"MEMWALL_CUBLAS", "/nowhere"}}), 13),
            "libcublas.so.13 was not found in /nowhere, which MEMWALL_CUBLAS names");
}

}  // namespace
}  // namespace memwall::cuda
