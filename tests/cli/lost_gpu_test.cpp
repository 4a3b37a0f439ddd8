// measure and baseline on GPUs that are lost, hang or crash while they run: the machines are those of
// tests/cuda/fake_module.cpp that execute. What was being measured is marked, the rest is there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "paths.h"
#include "tests/cli/process.h"
#include "tests/support.h"

namespace memwall {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kModel =
    "name: m\nhidden_size: 64\nvocab_size: 64\nmax_context: 128\nlayers:\n  - repeat: 2\n"
    "    attention: {heads: 4, kv_heads: 2, head_dim: 16}\n    mlp: {intermediate: 96}\n";

class LostGpu : public ::testing::Test {
 protected:
  // The command line of a measure on that machine; its result goes to result_.
  std::vector<std::string> command(const std::string& machine) {
    write_text(folder_ / "m.yaml", kModel);
    ::setenv("MEMWALL_FAKE_MACHINE", machine.c_str(), 1);
    return memwall_command({"measure", folder_ / "m.yaml", "--device", "cuda:0", "--context", "40",
                            "--prompt", "0", "--batch", "2", "--weights", "f16", "--step", "--output",
                            result_});
  }
  Json result() const { return Json::parse(content_of(result_)); }
  static Json op(const Json& result, const std::string& name) {
    for (const Json& op : result["decode"][0]["ops"])
      if (op["name"] == name) return op;
    return nullptr;
  }
  // Every op but those named has a figure.
  static void expect_measured_but(const Json& result, const std::vector<std::string>& names) {
    for (const Json& op : result["decode"][0]["ops"]) {
      const bool left_out = std::find(names.begin(), names.end(), op["name"]) != names.end();
      EXPECT_EQ(op.contains("not_measured"), left_out) << op["name"];
      EXPECT_EQ(op.contains("why"), left_out) << op["name"];
    }
  }

  TemporaryFolder folder_;
  const std::string result_ = folder_ / "result.json";
  const EnvironmentVariable module_{"MEMWALL_CUDA_MODULE", MEMWALL_FAKE_CUDA};
  const EnvironmentVariable machine_{"MEMWALL_FAKE_MACHINE", ""};
  // A slow machine, busy with other tests, shall not look like a GPU that hangs.
  const EnvironmentVariable patience_{"MEMWALL_GPU_PATIENCE", "120"};
};

TEST_F(LostGpu, NothingIsLostOnAGoodOne) {
  const Finished done = Process(command("executes")).wait();
  EXPECT_EQ(done.status, 0) << done.err;
  // Its clock is so slow that samples do not settle, which may be said.
  EXPECT_THAT(done.err, Not(HasSubstr("the GPU")));
  EXPECT_THAT(done.err, Not(HasSubstr("failed")));
  const Json json = result();
  EXPECT_FALSE(json.contains("incomplete"));
  expect_measured_but(json, {});
  EXPECT_FALSE(json["decode"][0]["measured"].contains("partial"));
  EXPECT_FALSE(json["decode"][0]["measured"]["step"].contains("partial"));
  EXPECT_GT(json["device"]["read_GBps"].get<double>(), 0);
}

TEST_F(LostGpu, ALostDeviceCostsTheOpThatLostIt) {
  for (const char* machine : {"executes,lost-at:AttentionKernel", "executes,crashes-at:AttentionKernel"}) {
    const Finished done = Process(command(machine)).wait();
    EXPECT_EQ(done.status, 1) << machine;
    EXPECT_THAT(done.err, AllOf(HasSubstr("warning: decode attention"), HasSubstr("the GPU was lost")));
    const Json json = result();
    EXPECT_FALSE(json.contains("incomplete")) << machine;
    expect_measured_but(json, {"attention"});
    EXPECT_THAT(op(json, "attention")["why"].get<std::string>(), HasSubstr("the GPU was lost"));
    const Json& measured = json["decode"][0]["measured"];
    EXPECT_EQ(measured["partial"], true);
    // The whole step runs without it, and says so.
    ASSERT_TRUE(measured.contains("step")) << measured.dump();
    EXPECT_EQ(measured["step"]["partial"], true);
  }
}

// Once: the way with which it was lost is left out, another serves.
TEST_F(LostGpu, ALostArmLeavesTheOpToTheOthers) {
  const Finished done = Process(command("executes,lost-at:fake library")).wait();
  const Json json = result();
  expect_measured_but(json, {});
  bool marked = false;
  const Json q = op(json, "q_proj");
  for (const Json& variant : q["variants"])
    marked = marked || (variant["name"] == "fake library" && variant.contains("failed"));
  EXPECT_TRUE(marked) << q.dump();
  EXPECT_EQ(q["variant"], "gemv");
}

TEST_F(LostGpu, AProbesArmThatIsWrongOrLosesTheDeviceIsLeftOut) {
  for (const char* machine : {"executes,lost-at:ReadKernel<4", "executes,wrong-at:ReadKernel<4"}) {
    const Finished done = Process(command(machine)).wait();
    EXPECT_THAT(done.err, HasSubstr("read probe, 4 loads")) << machine;
    const Json json = result();
    EXPECT_GT(json["device"]["read_GBps"].get<double>(), 0) << machine;
    expect_measured_but(json, {});
  }
}

// No share of it, and no whole step; the ops' own times stand.
TEST_F(LostGpu, WithoutAnyReadProbeTheStepSaysWhyItIsMissing) {
  const Finished done = Process(command("executes,fails-at:ReadKernel")).wait();
  EXPECT_EQ(done.status, 1);
  const Json json = result();
  expect_measured_but(json, {});
  EXPECT_TRUE(json["device"]["read_GBps"].is_null());
  EXPECT_EQ(json["decode"][0]["measured"]["step_failed"], "there is no read bandwidth to hold it against");
}

TEST_F(LostGpu, AHangEndsAfterTheGivenPatience) {
  const EnvironmentVariable patience("MEMWALL_GPU_PATIENCE", "5");
  const Finished done = Process(command("executes,hangs-at:RotaryKernel")).wait();
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.err, HasSubstr("no answer within 5 s"));
  expect_measured_but(result(), {"rotary"});
}

TEST_F(LostGpu, AnInterruptLeavesWhatWasMeasured) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Process process(command("executes,pauses:20"));
    ASSERT_TRUE(process.wait_until_it_catches(signal));
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    process.send(signal);
    const Finished done = process.wait();
    EXPECT_EQ(done.status, 130) << done.err;
    EXPECT_EQ(result()["incomplete"], true);
    EXPECT_THAT(folder_.names(), ::testing::UnorderedElementsAre("m.yaml", "result.json"));
  }
}

// Even of a kill: what there was some seconds before.
TEST_F(LostGpu, AKillLeavesWhatWasMeasured) {
  Process process(command("executes,pauses:50"));
  // A slow machine may write the file before it has a first figure.
  const auto has_figure = [&] {
    return std::filesystem::exists(result_) && result()["device"]["read_GBps"].is_number();
  };
  for (int i = 0; i < 6000 && !has_figure(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.send(SIGKILL);
  EXPECT_EQ(process.wait().status, 128 + SIGKILL);
  ASSERT_TRUE(has_figure());
  EXPECT_EQ(result()["incomplete"], true);
}

TEST_F(LostGpu, BaselineRunsInAProcessOfItsOwnToo) {
  ::setenv("MEMWALL_FAKE_MACHINE", "executes,crashes-at:WriteKernel", 1);
  const Finished done = Process(memwall_command({"baseline", "--device", "cuda:0", "--n", "16", "--no-prompt",
                                                 "--output", result_}))
                            .wait();
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.err, HasSubstr("the GPU was lost"));
  EXPECT_GT(result()["device"]["read_GBps"].get<double>(), 0);
}

}  // namespace
}  // namespace memwall
