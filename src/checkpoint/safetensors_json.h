// The JSON in the header of a safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/safetensors_header.h"
#include "checkpoint/stored_tensor.h"
#include "input/json.h"
#include "input/regular_file.h"

namespace memwall {

// What the header says besides the tensors.
struct HeaderContents {
  std::vector<std::int64_t> begins;  // of the tensors' data, in the order of the header
  std::map<std::string, std::string> metadata;
};

// Appends the tensors to `tensors`, in the order of the header. What can be seen from one tensor alone is
// checked: its fields, its dtype, its shape against the span of its data.
HeaderContents read_header_json(const RegularFile& file, std::int64_t begin, std::int64_t length,
                                HeaderBudget& budget, std::vector<StoredTensor>& tensors,
                                const json::FailAt& fail);

}  // namespace memwall
