// Streams and events.
#pragma once

#include "cuda/module/handle.h"

namespace memwall::cuda {

// A stream of the current device that does not wait for the legacy default stream.
class Stream {
 public:
  Stream() { MEMWALL_CHECK(cudaStreamCreateWithFlags(handle_.out(), cudaStreamNonBlocking)); }
  cudaStream_t get() const { return handle_.get(); }

 private:
  Handle<cudaStream_t, cudaStreamDestroy> handle_;
};

// An event that takes the time.
class Event {
 public:
  Event() { MEMWALL_CHECK(cudaEventCreate(handle_.out())); }
  void record(const Stream& stream) { MEMWALL_CHECK(cudaEventRecord(handle_.get(), stream.get())); }

  // Both recorded and past. About half a microsecond fine.
  static double seconds_between(const Event& start, const Event& end) {
    float milliseconds = 0;
    MEMWALL_CHECK(cudaEventElapsedTime(&milliseconds, start.handle_.get(), end.handle_.get()));
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  Handle<cudaEvent_t, cudaEventDestroy> handle_;
};

}  // namespace memwall::cuda
