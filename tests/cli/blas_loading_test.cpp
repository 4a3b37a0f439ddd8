// The BLAS is loaded by what multiplies, and by nothing else: OpenBLAS starts threads and maps buffers as
// soon as it is in a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/process.h"
#include "tests/support.h"

namespace memwall {
namespace {

Finished run_shell(const std::string& script) {
  return Process({"sh", "-c", script, MEMWALL_EXECUTABLE}).wait();
}

TEST(BlasLoading, TheProgramIsLinkedToNoBlas) {
  const Finished libraries = run_shell("LD_TRACE_LOADED_OBJECTS=1 exec \"$0\"");
  EXPECT_THAT(libraries.out, testing::HasSubstr("libc.so"));
  EXPECT_THAT(libraries.out, testing::Not(testing::HasSubstr("blas")));
}

TEST(BlasLoading, LittleAddressSpaceIsEnoughForWhatMeasuresNothing) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer maps terabytes";
#endif
  const DataVariable data;
  for (const std::string command :
       {"models", "cards", "inspect llama-3.2-1b", "estimate llama-3.2-1b --card h200"}) {
    const Finished finished = run_shell("ulimit -v 120000; exec \"$0\" " + command);
    EXPECT_EQ(finished.status, 0) << command << finished.err;
    EXPECT_EQ(finished.err, "") << command;
    EXPECT_FALSE(finished.out.empty()) << command;
  }
}

// The project's own GEMM stands in, and the line says why it is alone.
TEST(BlasLoading, OneThatIsMissingIsOneLine) {
  const EnvironmentVariable blas("MEMWALL_BLAS", "/no/such/libblas.so");
  const Finished measured = run("baseline --threads 1 --n 64 --format json");
  EXPECT_EQ(measured.status, 0) << measured.err;
  std::vector<std::string> lines = lines_of(measured.err);
  // On a machine that others use, too, there may be one about that.
  std::erase_if(lines, [](const std::string& line) { return line.find(" unstable, ") != std::string::npos; });
  EXPECT_EQ(lines.size(), 1U) << measured.err;
  EXPECT_THAT(measured.err, testing::HasSubstr("/no/such/libblas.so"));
  EXPECT_THAT(measured.out, testing::HasSubstr("\"variant\": \"gemm\""));
  EXPECT_THAT(run("devices").out, testing::HasSubstr("no BLAS"));
}

}  // namespace
}  // namespace memwall
