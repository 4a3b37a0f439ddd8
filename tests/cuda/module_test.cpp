// The built module itself, on a machine with or without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "cuda/load.h"
#include "tests/cli/process.h"
#include "tests/cuda/gpu_fixture.h"
#include "tests/support.h"

namespace memwall::cuda {
namespace {

#ifdef MEMWALL_BUILT_MODULE

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

TEST(CudaModule, LoadsAndSaysWhatItFinds) {
  const std::unique_ptr<Runtime> runtime = load_module(MEMWALL_BUILT_MODULE);
  const Versions versions = runtime->versions();
  EXPECT_THAT(versions.runtime, MatchesRegex("[0-9]+\\.[0-9]"));
  // Either, and in the second case why.
  if (versions.no_cublas.empty()) {
    EXPECT_TRUE(MEMWALL_CUDA_WITH_CUBLAS);
    EXPECT_THAT(versions.cublas, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
    EXPECT_THAT(versions.cublasLt, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  } else {
    EXPECT_THAT(versions.cublas + versions.cublasLt, IsEmpty());
    EXPECT_THAT(versions.no_cublas, AnyOf(HasSubstr("was not found"), HasSubstr("without cuBLAS's headers")));
  }
  try {
    if (runtime->device_count() > 0) return;
    EXPECT_THROW(runtime->open(0), RunError);
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("driver"));
    EXPECT_EQ(failure_of([&] { runtime->open(0); }), error.what());
  }
}

// In a process of its own: the libraries are looked for once.
TEST(CudaModule, LoadsWithoutCublasAndSaysWhy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const EnvironmentVariable named("MEMWALL_CUBLAS", "/nowhere");
  const auto look = [] {
    const Versions versions = load_module(MEMWALL_BUILT_MODULE)->versions();
    std::cerr << versions.no_cublas;
    std::exit(versions.cublas.empty() && !versions.runtime.empty() ? 0 : 1);
  };
  EXPECT_EXIT(
      look(), ::testing::ExitedWithCode(0),
      MEMWALL_CUDA_WITH_CUBLAS ? "in /nowhere, which MEMWALL_CUBLAS names" : "without cuBLAS's headers");
}

// What it links: the C++ and the system's libraries, none of CUDA's.
TEST(CudaModule, LinksNoneOfCudasLibraries) {
  const Finished done = Process({"readelf", "-d", MEMWALL_BUILT_MODULE}).wait();
  if (done.status != 0) GTEST_SKIP() << "no readelf: " << done.err;
  EXPECT_THAT(done.out, HasSubstr("[libstdc++.so.6]"));
  for (const char* library : {"libcublas", "libcudart", "libcuda.so", "RPATH", "RUNPATH"})
    EXPECT_THAT(done.out, Not(HasSubstr(library)));
}

#else

TEST(CudaModule, LoadsAndSaysWhatItFinds) { GTEST_SKIP() << "the CUDA backend was not built"; }

#endif

}  // namespace
}  // namespace memwall::cuda
