// What ptxas -v says of a kernel, as scripts/ptxas_report keeps it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memwall::cuda {

// One kernel of one architecture. Bytes are a thread's.
struct KernelUse {
  std::string name;          // "void memwall::cuda::entry<memwall::cuda::ReadKernel<4>, 256u>(...)"
  std::string architecture;  // "sm_90"
  int registers = 0;
  int threads = 0;  // a block; from the name, 0 where it has none
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
};

// Of a report's text; functions that a kernel calls count to it.
std::vector<KernelUse> parse_ptxas(std::string_view report);

// What is wrong with it, one line a fault; empty where nothing is. So many blocks together must get their
// registers, of which every architecture from sm_75 to sm_120 has 65536 a multiprocessor and 255 a thread,
// handed out to warps 256 at a time (CUDA C++ programming guide, "Technical Specifications per Compute
// Capability").
std::vector<std::string> faults_of(const KernelUse& use, int blocks = 1);

}  // namespace memwall::cuda
