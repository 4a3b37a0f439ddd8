// Finding and loading the CUDA backend, with a module that the tests build.
#include "cuda/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support.h"
#include "tests/temporary_folder.h"

namespace memwall::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kModule = "MEMWALL_CUDA_MODULE";
constexpr const char* kMachine = "MEMWALL_FAKE_MACHINE";

std::string failure_of(const std::string& path) {
  try {
    load_module(path);
  } catch (const RunError& error) {
    return error.what();
  }
  return "loaded";
}

TEST(CudaLoad, LooksBesideTheInstalledProgramAndWhereItIsTold) {
  const TemporaryFolder prefix;
  const std::string program = prefix / "bin/memwall";
  const EnvironmentVariable unset(kModule, "");
  EXPECT_EQ(module_path(program), "");
  const std::string folder = prefix / MEMWALL_INSTALL_LIBDIR "/memwall";
  fs::create_directories(folder);
  write_text(folder + "/libmemwall_cuda.so", "");
  EXPECT_EQ(module_path(program), folder + "/libmemwall_cuda.so");
  const EnvironmentVariable named(kModule, "/nowhere/module.so");
  EXPECT_EQ(module_path(program), "/nowhere/module.so");
  const EnvironmentVariable relative(kModule, "module.so");
  EXPECT_EQ(module_path(program), (fs::current_path() / "module.so").string());
}

TEST(CudaLoad, LoadsAModuleAndCatchesWhatItThrows) {
  const EnvironmentVariable named(kModule, MEMWALL_FAKE_CUDA);
  const EnvironmentVariable machine(kMachine, "");
  const std::unique_ptr<Runtime> runtime = load_runtime();
  EXPECT_EQ(runtime->device_count(), 2);
  EXPECT_EQ(runtime->open(1)->properties().name, "NVIDIA H200");
  EXPECT_EQ(load_runtime()->device_count(), 2);  // again
  const EnvironmentVariable none(kMachine, "no-driver");
  EXPECT_THROW(runtime->device_count(), RunError);
}

TEST(CudaLoad, WithoutADriverNoModuleIsLoaded) {
  EXPECT_THROW(require_driver("libno-such-driver.so.1"), RunError);
  EXPECT_NO_THROW(require_driver("libc.so.6"));  // any library that can be loaded
}

TEST(CudaLoad, SeesAnNvidiaDeviceOrDriver) {
  const auto here = [](const std::vector<std::string>& files) {
    const TemporaryFolder root;
    for (const std::string& file : files) {
      fs::create_directories(fs::path(root / file).parent_path());
      write_text(root / file, "");
    }
    return nvidia_here(root.path());
  };
  EXPECT_FALSE(here({}));
  EXPECT_FALSE(here({"dev/null", "dev/nvidia-modeset"}));
  EXPECT_TRUE(here({"dev/nvidia0"}));
  EXPECT_TRUE(here({"dev/nvidia7"}));  // a container's only one
  EXPECT_TRUE(here({"dev/dxg"}));
  EXPECT_TRUE(here({"proc/driver/nvidia/version"}));
}

TEST(CudaLoad, RefusesWhatIsNoModuleOnOneLine) {
  const TemporaryFolder folder;
  write_text(folder / "text.so", "no library");
  EXPECT_THAT(failure_of(folder / "text.so"), HasSubstr("text.so"));
  EXPECT_THAT(failure_of(folder / "none.so"), HasSubstr("No such file"));
  EXPECT_THAT(failure_of("libm.so.6"), EndsWith("no memwall_cuda_module_version"));
  const EnvironmentVariable other(kMachine, "other-build");
  EXPECT_THAT(failure_of(MEMWALL_FAKE_CUDA), HasSubstr("of another build"));
  for (const std::string& path : {folder / "text.so", folder / "none.so", std::string("libm.so.6")})
    EXPECT_THAT(failure_of(path), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace memwall::cuda
