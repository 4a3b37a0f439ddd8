// A checkpoint's tensors, where there is no model to tell of.
#pragma once

#include <string>

#include "checkpoint/safetensors.h"
#include "report/json.h"
#include "report/table.h"

namespace memwall {

// Tensors that differ in their numbers alone (layers, experts) are one row; of more than 5000 rows the
// further ones are summed in one.
std::string tensors_text(const Checkpoint& checkpoint, const Style& style);

// {name, shape, type, bytes}
Json tensor_figures(const StoredTensor& tensor);

}  // namespace memwall
