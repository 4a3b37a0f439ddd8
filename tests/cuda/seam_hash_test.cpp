// The hash of the interface between the program and its CUDA backend, as the build makes it.
#include "cuda/seam_hash.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "tests/cli/process.h"

namespace memwall::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// The header that cmake/SeamHash.cmake makes of the sources below a folder.
std::string header_of(const std::string& root, const std::string& depfile = "") {
  const TemporaryFolder folder;
  const std::string output = folder / "made/seam_hash.h";
  std::vector<std::string> command = {MEMWALL_CMAKE, "-DROOT=" + root, "-DOUTPUT=" + output};
  if (!depfile.empty()) command.push_back("-DDEPFILE=" + depfile);
  command.insert(command.end(), {"-P", MEMWALL_SOURCE_DIR "/cmake/SeamHash.cmake"});
  const Finished done = Process(std::move(command)).wait();
  EXPECT_EQ(done.status, 0) << done.err;
  return content_of(output);
}

// Every header of ours that a file reaches, by a walk of the test's own.
void walk(const std::string& file, std::set<std::string>& reached) {
  if (!reached.insert(file).second) return;
  const std::string text = content_of(MEMWALL_SOURCE_DIR "/" + file);
  const std::regex include("#include \"([^\"]+)\"");
  for (std::sregex_iterator at(text.begin(), text.end(), include); at != std::sregex_iterator(); ++at) {
    const std::string name = (*at)[1];
    walk(fs::exists(MEMWALL_SOURCE_DIR "/src/" + name) ? "src/" + name : name, reached);
  }
}

std::set<std::string> headers_that_cross() {
  std::set<std::string> reached;
  for (const char* file : {"src/cuda/runtime.h", "src/bench/device_lost.h", "src/bench/out_of_memory.h",
                           "src/bench/unsupported.h", "src/input/error.h"})
    walk(file, reached);
  return reached;
}

TEST(CudaSeamHash, IsOfEveryHeaderThatCrosses) {
  const std::set<std::string> reached = headers_that_cross();
  EXPECT_GE(reached.size(), 17U);
  EXPECT_EQ(reached.count("kernels/cuda/linear_layout.h"), 1U);
  const TemporaryFolder folder;
  const std::string header = header_of(MEMWALL_SOURCE_DIR, folder / "depfile");
  const std::string depfile = content_of(folder / "depfile");
  for (const std::string& file : reached) {
    EXPECT_THAT(header, HasSubstr("//   " + file + "\n"));
    EXPECT_THAT(depfile, HasSubstr("/" + file));
  }
  EXPECT_THAT(header, HasSubstr(fmt::format("0x{:016x}U", kSeamHash)));
}

TEST(CudaSeamHash, ChangesWithAnyOfThem) {
  const TemporaryFolder copy;
  const std::set<std::string> reached = headers_that_cross();
  for (const std::string& file : reached) {
    fs::create_directories(fs::path(copy / file).parent_path());
    fs::copy_file(MEMWALL_SOURCE_DIR "/" + file, copy / file);
  }
  const std::string before = header_of(copy.path());
  EXPECT_EQ(before, header_of(MEMWALL_SOURCE_DIR));  // wherever it lies
  for (const char* file : {"src/cuda/runtime.h", "src/bench/device_lost.h", "kernels/cuda/geometry.h"}) {
    ASSERT_EQ(reached.count(file), 1U) << file;
    const std::string text = content_of(copy / file);
    write_text(copy / file, text + "\n");
    EXPECT_NE(header_of(copy.path()), before) << file;
    write_text(copy / file, text);
  }
  EXPECT_EQ(header_of(copy.path()), before);
}

}  // namespace
}  // namespace memwall::cuda
