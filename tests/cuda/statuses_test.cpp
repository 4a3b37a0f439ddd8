// What CUDA's statuses mean, held against the toolkit's header where there is one.
#include "cuda/module/statuses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "tests/cli/process.h"

namespace memwall::cuda {
namespace {

TEST(CudaStatuses, TellAFailureFromALostDevice) {
  for (const int lost : {700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 214, 220, 46, 999})
    EXPECT_EQ(kind_of(lost), StatusKind::lost) << lost;
  // An invalid argument or configuration, no image, too few resources, not supported.
  for (const int failed : {1, 9, 98, 209, 400, 701, 801})
    EXPECT_EQ(kind_of(failed), StatusKind::failed) << failed;
  for (int capture = 900; capture <= 908; ++capture)
    EXPECT_EQ(kind_of(capture), StatusKind::capture) << capture;
  EXPECT_EQ(kind_of(2), StatusKind::memory);
  EXPECT_EQ(lost_name(700), "cudaErrorIllegalAddress");
  EXPECT_EQ(lost_name(701), "");
}

#ifdef MEMWALL_CUDA_INCLUDE

struct Documented {
  std::string name;
  bool ends_the_process = false;
};

// Every status of `enum cudaError`, with what its comment says.
std::map<int, Documented> documented() {
  std::string text = content_of(MEMWALL_CUDA_INCLUDE "/driver_types.h");
  text = text.substr(text.find("cudaSuccess "));
  text = text.substr(0, text.find("};"));
  std::map<int, Documented> statuses;
  // What stands between two enumerators is the comment of the second.
  const std::regex enumerator("(cudaError\\w+)\\s*=\\s*(\\d+)");
  std::size_t before = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), enumerator); at != std::sregex_iterator(); ++at) {
    const auto here = static_cast<std::size_t>(at->position());
    const std::string comment = text.substr(before, here - before);
    statuses[std::stoi((*at)[2])] = {(*at)[1],
                                     comment.find("process must be terminated") != std::string::npos};
    before = here;
  }
  return statuses;
}

TEST(CudaStatuses, EveryStatusThatTheToolkitCallsFinalLosesTheDevice) {
  int final = 0;
  for (const auto& [code, status] : documented()) {
    if (status.ends_the_process) {
      ++final;
      EXPECT_EQ(kind_of(code), StatusKind::lost) << status.name;
    }
    EXPECT_EQ(lost_name(code), kind_of(code) == StatusKind::lost ? status.name : "");
    const bool capture = status.name.find("Capture") != std::string::npos;
    EXPECT_EQ(kind_of(code) == StatusKind::capture, capture) << status.name;
  }
  EXPECT_GE(final, 9);
  EXPECT_EQ(documented().at(2).name, "cudaErrorMemoryAllocation");
}

#endif

}  // namespace
}  // namespace memwall::cuda
