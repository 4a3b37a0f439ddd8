// libFuzzer's entry point to the target that MEMWALL_FUZZ_TARGET names.
#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return memwall::MEMWALL_FUZZ_TARGET(data, size);
}
