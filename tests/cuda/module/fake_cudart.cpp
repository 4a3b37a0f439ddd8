#include "tests/cuda/module/fake_cudart.h"

#include <cstdio>
#include <cstring>

#include "cuda/module/check.h"
#include "cuda/module/kernels.h"
#include "cuda/module/matrix_library.h"

namespace memwall::cuda {
namespace {

// The status of a call that touches the context; `waits` for what was launched, or is told of it.
cudaError_t called(const char* name, bool waits = false) {
  FakeCuda& cuda = fake_cuda();
  if (waits && cuda.broken != cudaSuccess) cuda.noticed = true;
  cudaError_t status = cuda.noticed ? cuda.broken : cudaSuccess;
  auto& told = cuda.statuses[name];
  if (status == cudaSuccess && !told.empty()) {
    status = told.front();
    told.pop_front();
  }
  if (status != cudaSuccess) cuda.last = status;
  return status;
}

// A handle that is not null.
template <class T>
void make(T* handle) {
  static int object = 0;
  *handle = reinterpret_cast<T>(&object);
}

class FakeLibrary final : public MatrixLibrary {
 public:
  const std::vector<GemmArm>& arms(const GemmProblem&) override { return arms_; }
  void run(const GemmProblem&, int, const GemmOperands&, Launched& launched) override {
    if (!fake_cuda().library_fails.empty()) throw UnsupportedError(fake_cuda().library_fails);
    launched.add("fake library");
  }

 private:
  std::vector<GemmArm> arms_ = {{"fake library", 0, 0}};
};

}  // namespace

FakeCuda& fake_cuda() {
  static FakeCuda cuda;
  return cuda;
}

std::unique_ptr<MatrixLibrary> open_matrix_library(const Stream&, const ArchLimits&) {
  const std::string& why_not = fake_cuda().library_does_not_open;
  if (!why_not.empty()) throw UnsupportedError(why_not);
  return std::make_unique<FakeLibrary>();
}

void read_library_versions(Versions& versions) { versions.cublas = "13.1.0"; }

void require_code(const GpuProperties&) {}

void start_delay(std::uint64_t cycles, const Target&) { fake_cuda().delays.push_back(cycles); }

// As launch.cuh's.
#define MEMWALL_START(Kind)                                                                                \
  void start(const Kind##Launch&, const Target& target) {                                                  \
    check(called("a launch"), __FILE__, __LINE__, ("launching " #Kind + target.launched.words()).c_str()); \
    target.launched.add(#Kind);                                                                            \
  }
MEMWALL_START(Fill)
MEMWALL_START(Stream)
MEMWALL_START(Linear)
MEMWALL_START(Attention)
MEMWALL_START(Latent)
MEMWALL_START(Indexer)
MEMWALL_START(Elementwise)
MEMWALL_START(Router)
MEMWALL_START(Gather)
MEMWALL_START(Recurrent)
MEMWALL_START(Quantize)

}  // namespace memwall::cuda

using memwall::cuda::called;
using memwall::cuda::fake_cuda;
using memwall::cuda::make;

// Extern "C" by their declarations.
cudaError_t cudaSetDevice(int) { return called("cudaSetDevice"); }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 30;
  return called("cudaMemGetInfo", true);
}
cudaError_t cudaMalloc(void** memory, size_t) {
  make(memory);
  return called("cudaMalloc");
}
cudaError_t cudaFree(void*) { return called("cudaFree", true); }
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t) { return called("cudaMemsetAsync"); }
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t) {
  return called("cudaMemcpyAsync");
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  make(stream);
  return called("cudaStreamCreateWithFlags");
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return called("cudaStreamDestroy"); }
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  if (fake_cuda().capturing) {
    ++fake_cuda().waits_in_a_capture;
    fake_cuda().spoilt = true;
    return fake_cuda().last = cudaErrorStreamCaptureUnsupported;
  }
  return called("cudaStreamSynchronize", true);
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  if (fake_cuda().capturing) return fake_cuda().last = cudaErrorIllegalState;
  fake_cuda().capturing = true;
  fake_cuda().spoilt = false;
  return called("cudaStreamBeginCapture");
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  fake_cuda().capturing = false;
  if (fake_cuda().spoilt) return fake_cuda().last = cudaErrorStreamCaptureInvalidated;
  const cudaError_t status = called("cudaStreamEndCapture");
  if (status == cudaSuccess) make(graph);
  return status;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = fake_cuda().capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return called("cudaStreamIsCapturing");
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  make(event);
  return called("cudaEventCreate");
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return called("cudaEventDestroy"); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return called("cudaEventRecord"); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return called("cudaEventElapsedTime");
}
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, size_t* count) {
  *count = 4;
  return called("cudaGraphGetNodes");
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t, unsigned long long) {
  const cudaError_t status = called("cudaGraphInstantiateWithFlags");
  if (status == cudaSuccess) make(exec);
  return status;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return called("cudaGraphUpload"); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return called("cudaGraphLaunch"); }
cudaError_t cudaGraphDestroy(cudaGraph_t) { return called("cudaGraphDestroy"); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return called("cudaGraphExecDestroy"); }
cudaError_t cudaGetLastError() {
  const cudaError_t last = fake_cuda().last;
  fake_cuda().last = fake_cuda().noticed ? fake_cuda().broken : cudaSuccess;
  return last;
}
const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "a failure";
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrClockRate ? fake_cuda().sm_clock_kHz : 1;
  return called("cudaDeviceGetAttribute");
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int) {
  std::snprintf(id, static_cast<size_t>(length), "0000:3B:00.0");
  return called("cudaDeviceGetPCIBusId");
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return called("cudaGetDeviceCount");
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::snprintf(properties->name, sizeof properties->name, "Fake");
  return called("cudaGetDeviceProperties");
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return called("cudaDriverGetVersion");
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return called("cudaRuntimeGetVersion");
}
