// A session in a child process whose device does not come back, or hangs again and again. What the command
// line makes of lost devices is tested in tests/cli/lost_gpu_test.cpp.
#include "bench/supervise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "bench/device_lost.h"
#include "cuda/device.h"
#include "input/error.h"
#include "tests/cuda/fake_gpu.h"
#include "tests/support.h"
#include "tests/temporary_folder.h"

namespace memwall {
namespace {

using ::testing::HasSubstr;

// A small GPU on which something happens at each launch from the `good`-th on; every process counts anew.
std::unique_ptr<Device> device_with(int good, const std::function<void()>& what) {
  cuda::GpuProperties properties = cuda::fake_properties();
  properties.multiprocessors = 1;
  properties.l2_bytes = 4 << 10;
  auto gpu = std::make_unique<cuda::FakeGpu>(properties);
  gpu->seconds_a_launch = 0.06;
  gpu->tamper = [=, launches = 0](cuda::Launch&) mutable {
    if (++launches > good) what();
  };
  return cuda::make_device(std::move(gpu));
}

SupervisedWork probing(const std::function<std::unique_ptr<Device>()>& open) {
  return {.open = [=](std::vector<std::string>&) { return open(); },
          .memory_bytes = 0,
          .check = [](const Session&) {},
          .run = [](Session& session) { session.probe(); }};
}

TEST(Supervisor, EndsWithWhatThereIsWhereTheDeviceDoesNotComeBack) {
  const TemporaryFolder folder;
  const std::string once = folder / "once";
  Supervisor supervisor(probing([&]() -> std::unique_ptr<Device> {
    if (std::filesystem::exists(once)) throw RunError("all devices are busy");
    return device_with(300, [&] {
      write_text(once, "");
      throw DeviceLost("an illegal memory access");
    });
  }));
  ASSERT_TRUE(supervisor.open());
  int recorded = 0;
  supervisor.run({}, [&] { ++recorded; });
  EXPECT_THAT(supervisor.ended(), HasSubstr("does not come back: all devices are busy"));
  EXPECT_GT(recorded, 0);
  EXPECT_NE(supervisor.ledger().find("read bandwidth"), nullptr);
}

TEST(Supervisor, EndsWhereTheDeviceHangsAgainAndAgain) {
  Supervisor supervisor(
      probing([] { return device_with(300, [] { std::this_thread::sleep_for(std::chrono::minutes(5)); }); }),
      {.silence_s = 1, .hangs = 2});
  ASSERT_TRUE(supervisor.open());
  supervisor.run({}, {});
  EXPECT_THAT(supervisor.ended(), HasSubstr("hung 2 times"));
  EXPECT_NE(supervisor.ledger().find("read bandwidth"), nullptr);
}

TEST(Supervisor, PassesOnWhatOpeningThrows) {
  Supervisor refused(probing([]() -> std::unique_ptr<Device> { throw InputError("no such device"); }));
  EXPECT_THROW(refused.open(), InputError);
  Supervisor failed(probing([]() -> std::unique_ptr<Device> { throw RunError("busy"); }));
  EXPECT_THROW(failed.open(), RunError);
  Supervisor crashed(probing([]() -> std::unique_ptr<Device> { std::_Exit(3); }));
  try {
    crashed.open();
    FAIL() << "opened";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("status 3"));
  }
}

// A plain failure of the program itself keeps what was measured.
TEST(Supervisor, KeepsTheLedgerOfARunThatFails) {
  SupervisedWork work = probing([] { return device_with(1'000'000, [] {}); });
  work.run = [](Session& session) {
    session.probe();
    throw std::logic_error("a mistake");
  };
  Supervisor supervisor(work);
  ASSERT_TRUE(supervisor.open());
  supervisor.run({}, {});
  EXPECT_EQ(supervisor.ended(), "a mistake");
  EXPECT_NE(supervisor.ledger().find("copy bandwidth"), nullptr);
}

}  // namespace
}  // namespace memwall
