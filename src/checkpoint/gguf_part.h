// One GGUF file's header. gguf.h is the way in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/gguf.h"
#include "checkpoint/gguf_bytes.h"

namespace memwall {

struct GgufPart {
  std::uint32_t version = 0;
  std::map<std::string, GgufValue> metadata;
  std::vector<StoredTensor> tensors;
  std::int64_t data_bytes = 0;
  std::uint64_t alignment = 0;
};

GgufPart read_gguf_part(const std::string& path, GgufBudget& budget);

// The type and the value that follow a key.
GgufValue read_gguf_value(GgufBytes& bytes, const std::string& key);

}  // namespace memwall
