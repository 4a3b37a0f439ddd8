// memwall devices, and commands on GPUs that fail: the machines are those of tests/cuda/fake_module.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "paths.h"
#include "tests/cli/process.h"
#include "tests/support.h"

namespace memwall {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kMixed = MEMWALL_TEST_DATA "/fixtures/mixed.yaml";
constexpr const char* kMeasured = " --context 64 --prompt 0 --format json";

// Runs a command line on one of the fake module's machines.
Finished run_on(const std::string& machine, const std::string& line) {
  const EnvironmentVariable module("MEMWALL_CUDA_MODULE", MEMWALL_FAKE_CUDA);
  const EnvironmentVariable name("MEMWALL_FAKE_MACHINE", machine);
  return run(line);
}

TEST(DevicesCommand, TellsTheGpusInEveryForm) {
  const Finished done = run_on("", "devices --format json");
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err, "");
  const Json json = Json::parse(done.out);
  EXPECT_EQ(json["schema"], "memwall.devices/1");
  EXPECT_EQ(json["auto"], "cuda:0");
  ASSERT_EQ(json["devices"].size(), 3U);
  const Json& cpu = json["devices"][0];
  for (const char* key : {"name", "threads", "cpus", "cores", "pinned", "numa", "instruction_set", "blas",
                          "l1d_bytes", "l2_bytes", "last_level_bytes", "free_bytes"})
    EXPECT_TRUE(cpu.contains(key)) << key;
  EXPECT_EQ(cpu["device"], "cpu");
  const Json& gpu = json["devices"][2];
  EXPECT_EQ(gpu["device"], "cuda:1");
  EXPECT_EQ(gpu["card"], "h200");
  EXPECT_EQ(gpu["multiprocessors"], 132);
  EXPECT_NEAR(gpu["peak_GBps"].get<double>(), 4916.7, 0.1);
  EXPECT_EQ(gpu["now"]["sm_clock_MHz"], nullptr);
  EXPECT_EQ(json["cuda"]["runtime"], "13.0");

  const Finished table = run_on("", "devices");
  for (const char* part : {"cpu", "cuda:0", "cuda:1", "NVIDIA H200", "card h200", "no clocks", "cuBLAS"})
    EXPECT_THAT(table.out, HasSubstr(part));
  const std::vector<std::string> csv = lines_of(run_on("", "devices --format csv").out);
  ASSERT_EQ(csv.size(), 4U);
  EXPECT_THAT(csv[0], StartsWith("device,kind,name,threads"));
  EXPECT_THAT(csv[3], StartsWith("cuda:1,cuda,NVIDIA H200,"));
  EXPECT_EQ(lines_of(run_on("", "devices --format md").out).size(), 5U);
}

TEST(DevicesCommand, TellsWhyThereIsNoGpu) {
  for (const auto& [machine, why] : {std::pair{"no-device", "there is no CUDA device"},
                                     std::pair{"no-driver", "driver version is insufficient"},
                                     std::pair{"other-build", "of another build"}}) {
    const Finished done = run_on(machine, "devices --format json");
    EXPECT_EQ(done.status, 0) << done.err;
    const Json json = Json::parse(done.out);
    EXPECT_EQ(json["auto"], "cpu");
    EXPECT_EQ(json["devices"].size(), 1U);
    EXPECT_THAT(json["cuda"]["why_not"].get<std::string>(), HasSubstr(why));
  }
  EXPECT_THAT(run_on("no-device", "devices").out, HasSubstr("no GPU: there is no CUDA device"));
}

TEST(CommandsOnAGpu, ThatIsNotThereAreRefused) {
  const std::string measure = "measure " + kMixed + kMeasured + " --device ";
  for (const auto& [machine, device, why] :
       {std::tuple{"no-driver", "cuda:0", "driver version is insufficient"},
        std::tuple{"no-device", "cuda:0", "there is no CUDA device"},
        std::tuple{"other-build", "cuda:0", "of another build"},
        std::tuple{"", "cuda:2", "2 devices, cuda:0 to cuda:1"}}) {
    const Finished done = run_on(machine, measure + device);
    expect_refused(done, why);
    EXPECT_THAT(done.err, HasSubstr(why));
  }
}

TEST(CommandsOnAGpu, ThatDoesNotOpenEndWithOneLineAndNoFile) {
  const TemporaryFolder folder;
  for (const std::string& command :
       {"measure " + kMixed + kMeasured, std::string("baseline --n 64 --no-prompt")}) {
    const Finished done =
        run_on("does-not-open", command + " --device cuda:0 --output " + (folder / "result"));
    EXPECT_EQ(done.status, 1) << done.err;
    EXPECT_EQ(done.out, "");
    EXPECT_EQ(lines_of(done.err).size(), 1U) << done.err;
    EXPECT_THAT(done.err, HasSubstr("cudaSetDevice"));
    EXPECT_TRUE(folder.names().empty());
  }
}

// A result, which says of everything that it failed and why; the reason is told once.
TEST(CommandsOnAGpu, OnWhichEverythingFailsSayWhy) {
  for (const std::string& command :
       {"measure " + kMixed + kMeasured, std::string("baseline --n 64 --no-prompt --format json")}) {
    const Finished done = run_on("fails-running", command + " --device cuda:0");
    EXPECT_EQ(done.status, 1) << done.err;
    ASSERT_EQ(lines_of(done.err).size(), 1U) << done.err;
    EXPECT_THAT(done.err, HasSubstr("more: fake.cu:7"));
    EXPECT_THAT(done.err, HasSubstr("illegal memory access"));
    const Json json = Json::parse(done.out);
    EXPECT_EQ(json["device"]["read_GBps"], nullptr);
    for (const Json& step : json.value("decode", Json::array())) {
      EXPECT_EQ(step["measured"]["partial"], true);
      for (const Json& op : step["ops"])
        EXPECT_THAT(op["why"].get<std::string>(), HasSubstr("illegal memory access"));
    }
  }
}

TEST(CommandsOnAGpu, WithTooLittleMemoryAreRefused) {
  const Finished done = run_on("small", "measure " + kMixed + kMeasured + " --device cuda:0");
  expect_refused(done, "64 MiB");
  EXPECT_THAT(done.err, HasSubstr("are too few"));
}

TEST(CommandsOnAuto, FallBackToTheCpuWithOneNote) {
  for (const char* machine : {"no-driver", "no-device", "other-build", "does-not-open"}) {
    const Finished done = run_on(machine, "baseline --n 16 --no-prompt --device auto");
    EXPECT_EQ(done.status, 0) << done.err;
    const std::vector<std::string> lines = lines_of(done.err);
    ASSERT_FALSE(lines.empty()) << machine;
    EXPECT_THAT(lines[0], StartsWith("memwall: note: "));
    EXPECT_THAT(lines[0], HasSubstr("this runs on the CPU"));
  }
}

TEST(CommandsOnAuto, SayNothingBesideAnError) {
  const Finished done = run_on("no-driver", "measure " + kMixed + " --memory 1MiB --device auto");
  expect_refused(done, "memory");
  EXPECT_THAT(done.err, HasSubstr("--memory"));
}

TEST(CommandsOffTheGpu, DoNotLoadTheModule) {
  EXPECT_EQ(run_on("must-not-load", "devices").status, 128 + SIGABRT);
  for (const char* line : {"estimate llama-3.1-8b --card h200", "inspect llama-3.1-8b", "cards", "--version"})
    EXPECT_EQ(run_on("must-not-load", line).status, 0) << line;
  expect_refused(run_on("must-not-load", "measure " + kMixed + " --memory 1MiB --device cpu"), "cpu");
}

}  // namespace
}  // namespace memwall
