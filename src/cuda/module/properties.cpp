#include "cuda/module/properties.h"

#include <cuda_runtime_api.h>

#include <array>
#include <cctype>

#include "cuda/module/check.h"
#include "cuda/module/matrix_library.h"

namespace memwall::cuda {
namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  MEMWALL_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

// 13000 is 13.0.
std::string cuda_version(int number) {
  return std::to_string(number / 1000) + '.' + std::to_string(number % 1000 / 10);
}

int driver_version() {
  int version = 0;  // stays so where there is no driver
  MEMWALL_CHECK(cudaDriverGetVersion(&version));
  return version;
}

std::string pci_id(int device) {
  std::array<char, 32> text{};
  MEMWALL_CHECK(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device));
  std::string id = text.data();
  for (char& c : id) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return id;
}

}  // namespace

int count_devices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return count;
  (void)cudaGetLastError();
  if (status == cudaErrorNoDevice) return 0;
  if (status == cudaErrorStubLibrary)
    throw RunError("no CUDA driver was found, only the toolkit's stub of it");
  if (status == cudaErrorInsufficientDriver) {
    const int driver = driver_version();
    if (driver == 0) throw RunError("no CUDA driver was found");
    throw RunError("the CUDA driver is too old for CUDA " + cuda_version(CUDART_VERSION) +
                   ", with which memwall was built (it supports " + cuda_version(driver) + ")");
  }
  check(status, __FILE__, __LINE__, "cudaGetDeviceCount(&count)");
  return 0;
}

GpuProperties read_properties(int device) {
  const int count = count_devices();
  if (device < 0 || device >= count) {
    throw RunError("there is no device cuda:" + std::to_string(device) + ": CUDA sees " +
                   (count == 0   ? "none"
                    : count == 1 ? "one, cuda:0"
                                 : std::to_string(count)));
  }
  cudaDeviceProp known{};
  MEMWALL_CHECK(cudaGetDeviceProperties(&known, device));
  GpuProperties p;
  p.index = device;
  p.name = known.name;
  p.pci_id = pci_id(device);
  p.arch.major = known.major;
  p.arch.minor = known.minor;
  p.arch.threads_a_block = known.maxThreadsPerBlock;
  p.arch.threads_a_multiprocessor = known.maxThreadsPerMultiProcessor;
  p.arch.blocks_a_multiprocessor = known.maxBlocksPerMultiProcessor;
  p.arch.registers_a_multiprocessor = known.regsPerMultiprocessor;
  p.arch.shared_a_block = static_cast<int>(known.sharedMemPerBlock);
  p.multiprocessors = known.multiProcessorCount;
  p.l2_bytes = known.l2CacheSize;
  p.total_bytes = static_cast<std::int64_t>(known.totalGlobalMem);
  // CUDA 13's properties have no clocks any more.
  p.sm_clock_kHz = attribute(cudaDevAttrClockRate, device);
  p.memory_clock_kHz = attribute(cudaDevAttrMemoryClockRate, device);
  p.memory_bus_bits = known.memoryBusWidth;
  p.ecc = known.ECCEnabled != 0;
  p.integrated = known.integrated != 0;
  return p;
}

Versions read_versions() {
  Versions versions;
  const int driver = driver_version();
  if (driver != 0) versions.driver = cuda_version(driver);
  int runtime = 0;
  MEMWALL_CHECK(cudaRuntimeGetVersion(&runtime));
  versions.runtime = cuda_version(runtime);
  read_library_versions(versions);
  return versions;
}

}  // namespace memwall::cuda
