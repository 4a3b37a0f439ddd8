#include <stdexcept>

#include "checkpoint/safetensors.h"
#include "fuzz/memory_file.h"
#include "fuzz/targets.h"
#include "input/error.h"

namespace memwall {

// Bytes that begin like an object are read as an index, others as a file with tensors.
int fuzz_safetensors(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  try {
    if (size > 0 && data[0] == '{') {
      read_safetensors_index(file.path());
    } else {
      const Checkpoint checkpoint = read_safetensors_file(file.path());
      std::int64_t bytes = 0;
      for (const StoredTensor& tensor : checkpoint.tensors) {
        static_cast<void>(tensor.elements());
        bytes += tensor.bytes;
      }
      if (bytes != checkpoint.data_bytes || bytes > static_cast<std::int64_t>(size)) {
        throw std::logic_error("the tensors' bytes do not add up");
      }
    }
  } catch (const InputError&) {
  }
  return 0;
}

}  // namespace memwall
