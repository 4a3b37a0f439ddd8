// Every call of CUDA's is checked: MEMWALL_CHECK(cudaMalloc(&p, bytes)) throws
//   "gpu.cpp:123: cudaMalloc(&p, bytes): out of memory (2)"
// as what the status means (statuses.h): OutOfMemory, DeviceLost, UnsupportedError where a capture could not
// hold the work, else RunError. Destructors use let_go(), which does not throw. Both clear CUDA's record of
// the error, which the next launch would else be blamed for; an error that broke the context stays, and every
// later call tells it.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "bench/device_lost.h"
#include "bench/out_of_memory.h"
#include "bench/unsupported.h"
#include "cuda/module/statuses.h"
#include "input/error.h"

namespace memwall::cuda {

// `words` say what went wrong, in the library's own language.
template <class Error = RunError>
[[noreturn]] void fail(std::string_view file, int line, std::string_view call, std::string_view words,
                       int code) {
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  std::string message(file);
  message += ':' + std::to_string(line) + ": ";
  message += call;
  message += ": ";
  message += words;
  throw Error(message + " (" + std::to_string(code) + ')');
}

inline void check(cudaError_t status, const char* file, int line, const char* call) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  const char* words = cudaGetErrorString(status);
  const int code = static_cast<int>(status);
  switch (kind_of(code)) {
    case StatusKind::memory:
      fail<OutOfMemory>(file, line, call, words, code);
    case StatusKind::capture:
      fail<UnsupportedError>(file, line, call, words, code);
    case StatusKind::lost:
      fail<DeviceLost>(file, line, call, words, code);
    case StatusKind::failed:
      break;
  }
  fail(file, line, call, words, code);
}

// Of CUDA's or its libraries': 0 is success.
template <class Status>
void let_go(Status status) noexcept {
  if (status != Status{}) (void)cudaGetLastError();
}

#define MEMWALL_CHECK(call) ::memwall::cuda::check((call), __FILE__, __LINE__, #call)

}  // namespace memwall::cuda
