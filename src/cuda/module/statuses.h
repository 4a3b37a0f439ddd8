// What a status of CUDA's runtime means for whoever made the call. Plain numbers, so that the host's tests
// hold it against the toolkit's header.
#pragma once

#include <string_view>

namespace memwall::cuda {

enum class StatusKind {
  failed,   // this call alone
  memory,   // there is not enough of it
  capture,  // a capture could not hold the work; the stream is usable once the capture has ended
  lost,     // the device does not answer this process any more
};

// Of a cudaError_t that is not cudaSuccess.
StatusKind kind_of(int status);
// "cudaErrorIllegalAddress" of a status that loses the device; empty for others.
std::string_view lost_name(int status);

}  // namespace memwall::cuda
