// A small GPU that runs every kernel on the host (fake_gpu.h), timed by a model, and fails as it is told to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/runtime.h"

namespace memwall::cuda {

GpuProperties faulty_gpu_properties();

// Each word is one fault; others are passed over. KERNEL is a part of a kernel's name as C++ spells it
// ("AttentionKernel", "ReadKernel<4>"), or of the library's arm ("fake library"). Where #N may follow, it is
// the Nth of those kernels that is launched, by default the first.
//
//   lost-at:KERNEL[#N]     the launch is fine; the next call that waits, and then every call but release(),
//                          throws DeviceLost
//   hangs-at:KERNEL[#N]    the launch is fine; the next call that waits never returns
//   crashes-at:KERNEL[#N]  SIGSEGV
//   refuses-at:KERNEL      every launch of it throws UnsupportedError
//   fails-at:KERNEL        every launch of it throws RunError, and the device goes on
//   wrong-at:KERNEL        every launch of it does nothing, so that its outputs are wrong
//   pauses:MS              each sample takes so long, so that a run lasts
//
// The environment's MEMWALL_FAKE_ONCE names a file. Where it is there, the faults that end a process (lost,
// hangs, crashes) stay out; the first of them makes it, so that a process started anew goes on.
std::unique_ptr<Gpu> make_faulty_gpu(int device, const std::vector<std::string>& words);

}  // namespace memwall::cuda
