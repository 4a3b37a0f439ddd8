#include "cuda/module/statuses.h"

#include <algorithm>
#include <array>

namespace memwall::cuda {
namespace {

struct Status {
  int code;
  std::string_view name;
};

// driver_types.h of CUDA 13.0. Of those without a mark it says that "the process must be terminated and
// relaunched".
constexpr std::array kLost = {
    Status{46, "cudaErrorDevicesUnavailable"},    // once it was open
    Status{100, "cudaErrorNoDevice"},             // as that: it fell off the bus
    Status{201, "cudaErrorDeviceUninitialized"},  // its context is gone, as after a reset
    Status{214, "cudaErrorECCUncorrectable"},     // its memory is not to be trusted
    Status{220, "cudaErrorNvlinkUncorrectable"},  //
    Status{226, "cudaErrorContained"},
    Status{700, "cudaErrorIllegalAddress"},
    Status{702, "cudaErrorLaunchTimeout"},
    Status{709, "cudaErrorContextIsDestroyed"},  // as 201
    Status{710, "cudaErrorAssert"},
    Status{714, "cudaErrorHardwareStackError"},
    Status{715, "cudaErrorIllegalInstruction"},
    Status{716, "cudaErrorMisalignedAddress"},
    Status{717, "cudaErrorInvalidAddressSpace"},
    Status{718, "cudaErrorInvalidPc"},
    Status{719, "cudaErrorLaunchFailure"},
    Status{721, "cudaErrorTensorMemoryLeak"},
    Status{806, "cudaErrorMpsRpcFailure"},      // the server that owns the context does not answer,
    Status{807, "cudaErrorMpsServerNotReady"},  // or "is in the process of recovering from a fatal failure"
    Status{810, "cudaErrorMpsClientTerminated"},
    Status{911, "cudaErrorExternalDevice"},
    Status{999, "cudaErrorUnknown"},  // nothing says that it would pass
};

constexpr int kMemoryAllocation = 2;
// cudaErrorStreamCapture... and cudaErrorCapturedEvent.
constexpr int kFirstCapture = 900;
constexpr int kLastCapture = 908;

}  // namespace

std::string_view lost_name(int status) {
  const auto* const found =
      std::find_if(kLost.begin(), kLost.end(), [&](const Status& each) { return each.code == status; });
  return found == kLost.end() ? std::string_view() : found->name;
}

StatusKind kind_of(int status) {
  if (status == kMemoryAllocation) return StatusKind::memory;
  if (status >= kFirstCapture && status <= kLastCapture) return StatusKind::capture;
  return lost_name(status).empty() ? StatusKind::failed : StatusKind::lost;
}

}  // namespace memwall::cuda
