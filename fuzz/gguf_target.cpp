#include <cstdint>
#include <stdexcept>

#include "checkpoint/gguf.h"
#include "cost/op.h"
#include "fuzz/memory_file.h"
#include "fuzz/targets.h"
#include "input/error.h"
#include "load/gguf_model.h"

namespace memwall {

// A header of any bytes is read or refused with an InputError; so are its values by a getter, and the model
// they make.
int fuzz_gguf(const std::uint8_t* data, std::size_t size) {
  const MemoryFile bytes(data, size);
  try {
    const Gguf file = read_gguf(bytes.path());
    std::int64_t sum = 0;
    for (const StoredTensor& tensor : file.tensors) {
      static_cast<void>(tensor.elements());
      sum += tensor.bytes;
    }
    if (sum > file.data_bytes || file.data_bytes > static_cast<std::int64_t>(size)) {
      throw std::logic_error("the tensors' bytes do not add up");
    }
    for (const auto& [key, value] : file.metadata) {
      try {
        static_cast<void>(file.integers(key));
      } catch (const InputError&) {
      }
    }
    static_cast<void>(lower(model_from_gguf(file)));
  } catch (const InputError&) {
  }
  return 0;
}

}  // namespace memwall
