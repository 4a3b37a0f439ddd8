// No kernel of the built module spills registers or asks for more of them than there are.
#include "tests/cuda/ptxas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <typeinfo>

#include "kernels/cuda/stream.cuh"
#include "tests/cuda/executor.h"
#include "tests/cuda/stream_support.h"

namespace memwall::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A read that is as it should be, and a triad that is not, as ptxas 13.0 writes them.
constexpr const char* kReport =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function "
    "'_ZN7memwall4cuda5entryINS0_10ReadKernelILi4EEELj256EEEvNT_6ParamsE' for 'sm_90'\n"
    "ptxas info    : Function properties for "
    "_ZN7memwall4cuda5entryINS0_10ReadKernelILi4EEELj256EEEvNT_6ParamsE\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 40 registers, used 1 barriers\n"
    "ptxas info    : Compile time = 1.000 ms\n"
    "ptxas info    : Compiling entry function "
    "'_ZN7memwall4cuda5entryINS0_10ReadKernelILi8EEELj1024EEEvNT_6ParamsE' for 'sm_75'\n"
    "ptxas info    : Function properties for "
    "_ZN7memwall4cuda5entryINS0_10ReadKernelILi8EEELj1024EEEvNT_6ParamsE\n"
    "    48 bytes stack frame, 60 bytes spill stores, 72 bytes spill loads\n"
    "ptxas info    : Used 72 registers, used 1 barriers, 48 bytes cumulative stack size\n";

TEST(CudaPtxas, ReportsAreRead) {
  const std::vector<KernelUse> uses = parse_ptxas(kReport);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_THAT(uses[0].name, HasSubstr("entry<memwall::cuda::ReadKernel<4>, 256u>("));
  EXPECT_EQ(uses[0].architecture, "sm_90");
  EXPECT_EQ(uses[0].registers, 40);
  EXPECT_EQ(uses[0].threads, 256);
  EXPECT_THAT(faults_of(uses[0]), IsEmpty());

  EXPECT_EQ(uses[1].architecture, "sm_75");
  EXPECT_EQ(uses[1].threads, 1024);
  EXPECT_THAT(faults_of(uses[1]),
              ElementsAre(HasSubstr("of sm_75: spills 60 bytes and loads 72 of them"),
                          HasSubstr("has a stack frame of 48 bytes"),
                          HasSubstr("1024 threads of 72 registers are more than a multiprocessor has")));
}

TEST(CudaPtxas, BlocksThatShallBeTogetherShareTheRegisters) {
  const KernelUse use = parse_ptxas(kReport).front();  // 40 registers, 256 threads
  EXPECT_THAT(faults_of(use, 6), IsEmpty());
  EXPECT_THAT(faults_of(use, 7), ElementsAre(HasSubstr("1792 threads of 40 registers are more")));
}

TEST(CudaPtxas, WhatIsNotToldIsAFault) {
  EXPECT_THAT(parse_ptxas("ptxas info    : 0 bytes gmem\n"), IsEmpty());
  KernelUse use;
  use.name = "kernel";
  use.architecture = "sm_80";
  EXPECT_THAT(faults_of(use), ElementsAre("kernel of sm_80: its registers are not told",
                                          "kernel of sm_80: its threads are not told"));
}

#ifdef MEMWALL_CUDA_OBJECTS

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// Of the object of that source: "stream.cu".
std::vector<KernelUse> uses_of(const std::string& object) {
  std::ifstream file(object + ".ptxas");
  EXPECT_TRUE(file) << object << ".ptxas is missing";
  std::ostringstream report;
  report << file.rdbuf();
  return parse_ptxas(report.str());
}

TEST(CudaPtxas, NoKernelOfTheModuleSpills) {
  std::set<std::string> architectures;
  for (const std::string& number : split(MEMWALL_CUDA_BUILT_FOR, ',')) architectures.insert("sm_" + number);
  int kernels = 0;
  for (const std::string& object : split(MEMWALL_CUDA_OBJECTS, ':')) {
    if (object.find(".cu.") == std::string::npos) continue;
    std::map<std::string, std::set<std::string>> built_for;
    for (const KernelUse& use : uses_of(object)) {
      EXPECT_THAT(faults_of(use), IsEmpty());
      built_for[use.name].insert(use.architecture);
    }
    for (const auto& [name, found] : built_for) EXPECT_EQ(found, architectures) << name;
    kernels += static_cast<int>(built_for.size());
  }
  EXPECT_GT(kernels, 10);
}

// What dispatch() calls.
struct EntryName {
  std::string text;
  template <class Kernel>
  void operator()(const Geometry&, const StreamParams&) {
    text = "entry<" + kernel_name(typeid(Kernel)) + ", ";
  }
};

// Their grids count on so many resident blocks (resident_stream_blocks).
TEST(CudaPtxas, ProbesGetRegistersForTheirResidentBlocks) {
  int checked = 0;
  for (const std::string& object : split(MEMWALL_CUDA_OBJECTS, ':')) {
    if (object.find("/stream.cu.") == std::string::npos) continue;
    for (const KernelUse& use : uses_of(object)) {
      const int number = std::stoi(use.architecture.substr(use.architecture.find('_') + 1));
      for (const StreamLaunch& launch : stream_kernels()) {
        EntryName name;
        dispatch(launch, name);
        if (use.name.find(name.text) == std::string::npos) continue;
        ++checked;
        if (!stream_takes(launch, number / 10, number % 10)) continue;
        EXPECT_THAT(faults_of(use, resident_stream_blocks(launch, number / 10, number % 10)), IsEmpty());
      }
    }
  }
  const auto architectures = static_cast<int>(split(MEMWALL_CUDA_BUILT_FOR, ',').size());
  EXPECT_EQ(checked, architectures * static_cast<int>(stream_kernels().size()));
}

#else

TEST(CudaPtxas, ProbesGetRegistersForTheirResidentBlocks) {
  GTEST_SKIP() << "the CUDA backend was not built";
}

TEST(CudaPtxas, NoKernelOfTheModuleSpills) { GTEST_SKIP() << "the CUDA backend was not built"; }

#endif

}  // namespace
}  // namespace memwall::cuda
