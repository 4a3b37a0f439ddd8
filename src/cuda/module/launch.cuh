// The one kernel there is: it runs a kernel body with its parameters and the block's shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#include "cuda/module/check.h"
#include "cuda/module/kernels.h"

namespace memwall::cuda {

// Blocks that a multiprocessor shall hold at once: a kernel's kMinBlocks, or 1. ptxas (CUDA 13.0) given none
// at all schedules for so few registers that about four loads of a thread stay in flight, however far a loop
// is unrolled; given one, all of them.
template <class Kernel, class = void>
struct MinBlocks {
  static constexpr unsigned value = 1;
};
template <class Kernel>
struct MinBlocks<Kernel, std::void_t<decltype(Kernel::kMinBlocks)>> {
  static constexpr unsigned value = Kernel::kMinBlocks;
};

// kThreads is a parameter of its own so that it stands in the kernel's name, where the test that reads
// ptxas's report finds it.
template <class Kernel, unsigned kThreads>
__global__ void __launch_bounds__(kThreads, MinBlocks<Kernel>::value)
    entry(const typename Kernel::Params params) {
  extern __shared__ __align__(16) unsigned char shared[];
  Kernel::run(params, reinterpret_cast<std::byte*>(shared));
}

template <class Kernel>
const char* pretty_name() {
  return __PRETTY_FUNCTION__;
}

// What dispatch() of a family's .cuh calls with the kernel that a launch names.
struct Starter {
  const Target& target;

  template <class Kernel>
  void operator()(const Geometry& geometry, const typename Kernel::Params& params) const {
    static_assert(std::is_trivially_copyable_v<typename Kernel::Params>, "it is copied to the device");
    static_assert(sizeof(typename Kernel::Params) <= 4096, "what every architecture passes to a kernel");
    const char* name = pretty_name<Kernel>();
    // cudaLaunchKernel reads the arguments and changes none.
    void* arguments[] = {const_cast<typename Kernel::Params*>(&params)};
    const cudaError_t status =
        cudaLaunchKernel(reinterpret_cast<const void*>(&entry<Kernel, Kernel::kThreads>),
                         dim3(geometry.grid_x, geometry.grid_y, geometry.grid_z), dim3(geometry.threads),
                         arguments, geometry.shared_bytes, target.stream);
    // The grid's and the block's limits, and an architecture that the module was not built for, show here. An
    // earlier kernel's failure may too: hence their names.
    if (status != cudaSuccess) {
      check(status, __FILE__, __LINE__, ("launching " + kernel_name(name) + target.launched.words()).c_str());
    }
    target.launched.add(name);
  }
};

}  // namespace memwall::cuda
