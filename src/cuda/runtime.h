// What memwall asks of CUDA: the small seam between the program, which knows no CUDA header, and the module
// libmemwall_cuda.so, which implements it. The tests implement it too: with the host executor, and with
// machines that fail. C++17, since the module's .cu files include it.
//
// Every function but the noexcept ones throws RunError (input/error.h) naming the call that failed, the file
// and line of the module and CUDA's own words: DeviceLost (bench/device_lost.h) where no later call of this
// process can succeed, else OutOfMemory (bench/out_of_memory.h) where memory is what lacks, and
// UnsupportedError (bench/unsupported.h) where a library, or a capture, refuses or fails at the work and the
// device is usable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/launch.h"

namespace memwall::cuda {

struct GpuProperties {
  int index = 0;
  std::string name;    // "NVIDIA H200"
  std::string pci_id;  // "0000:3b:00.0"
  ArchLimits arch;     // compute capability and limits
  int multiprocessors = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t total_bytes = 0;
  int sm_clock_kHz = 0;      // peak
  int memory_clock_kHz = 0;  // peak
  int memory_bus_bits = 0;
  bool ecc = false;
  bool integrated = false;  // its memory is the system's
};

struct Versions {
  std::string driver;    // "13.0", what the driver supports
  std::string runtime;   // "13.0"
  std::string cublas;    // "13.1.0"; empty where there is none
  std::string cublasLt;  //
  // Why there is no cuBLAS: memwall's own kernels run without it. Of the device opened last, where one was.
  std::string no_cublas = {};
};

// The clocks and what slows them, as NVML tells; `available` false where it is not there.
struct Clocks {
  bool available = false;
  std::string why_not;  // where it is not
  int sm_MHz = 0;
  int memory_MHz = 0;
  int temperature_C = 0;
  double power_W = 0;
  std::string driver_version;          // "580.159.03"
  std::vector<std::string> slowed_by;  // throttle reasons, none where the GPU runs free (idle is none)
};

enum class ScalarType : std::uint8_t { f32, f16, bf16, f8_e4m3, i8 };

// y[m, n] = x[m, k] w[n, k]^T, all row-major: w are `out x in` weights. f8: y is bf16, scales of one f32 a
// tensor; i8: y is i32; else y has x's type. Accumulated in f32 (i32 for i8).
struct GemmProblem {
  ScalarType type = ScalarType::f16;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t w_pitch = 0;  // elements from a row of w to the next, >= k

  friend bool operator==(const GemmProblem& a, const GemmProblem& b) {
    return a.type == b.type && a.m == b.m && a.n == b.n && a.k == b.k && a.w_pitch == b.w_pitch;
  }
};

struct GemmOperands {
  const void* x = nullptr;
  const void* w = nullptr;
  void* y = nullptr;
  void* workspace = nullptr;       // of the arm's workspace_bytes
  const float* x_scale = nullptr;  // f8, device memory, one value
  const float* w_scale = nullptr;
};

// One way in which a library computes a GemmProblem: "cublas gemmEx", "cublas gemvStridedBatched", "cublasLt
// 3 (tile 128x64, split-k 4)".
struct GemmArm {
  std::string name;
  std::int64_t workspace_bytes = 0;
  int id = 0;  // for Gpu::gemm
};

enum class Timing : std::uint8_t {
  graph,   // the launches captured in one CUDA graph, its replay timed: no launch waits for the host
  stream,  // launched one by one
};

// One device, its memory and one stream.
class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual const GpuProperties& properties() const = 0;
  virtual std::int64_t free_bytes() = 0;

  // Plain device memory, 256-byte aligned; never managed. Throws where it does not fit.
  virtual void* allocate(std::int64_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  // These wait for all launches before, and until the bytes are there.
  virtual void upload(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void download(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void zero(void* memory, std::int64_t bytes) = 0;

  // On the stream; asynchronous. Inside time()'s graph: captured.
  virtual void launch(const Launch& launch) = 0;

  // The library's ways for a problem: cuBLAS's, and up to 16 that cublasLt's heuristics propose, few of them
  // for one row; none where no library computes it on this card, or there is none. Asked once a problem;
  // kept.
  virtual std::vector<GemmArm> gemm_arms(const GemmProblem& problem) = 0;
  virtual void gemm(const GemmProblem& problem, int arm, const GemmOperands& operands) = 0;

  virtual void synchronize() = 0;
  // Seconds from the start of the first launch to the end of the last, on the GPU's clock.
  virtual double time(const std::function<void()>& launches, Timing timing) = 0;

  virtual Clocks clocks() = 0;
};

// What it opens may outlive it.
class Runtime {
 public:
  virtual ~Runtime() = default;
  // 0 where there is a driver but no device. Throws where there is no driver.
  virtual int device_count() = 0;
  virtual GpuProperties properties(int device) = 0;
  virtual std::unique_ptr<Gpu> open(int device) = 0;
  virtual Versions versions() = 0;
};

// What the module exports, by these names and with C linkage:
//   std::uint64_t memwall_cuda_module_version();     // kSeamHash of cuda/seam_hash.h, made while building
//   memwall::cuda::Runtime* memwall_cuda_runtime();  // owned by the caller, deleted by its destructor
// A module of another hash is refused: it was built with other headers than the program.
using ModuleVersionFunction = std::uint64_t();
using ModuleRuntimeFunction = Runtime*();

}  // namespace memwall::cuda
