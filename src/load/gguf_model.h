// A GGUF file as a model: its tensors are the truth, its metadata say how they are used.
#pragma once

#include <string>

#include "checkpoint/gguf.h"
#include "model/model.h"

namespace memwall {

// Every tensor of the file is in the model's blocks or its extras, once: their bytes add up to the file's.
// What is not understood is counted as read in every step, and said in a warning. Throws InputError where the
// file holds no language model, or its metadata and its tensors contradict each other.
Model model_from_gguf(const Gguf& file);

// The same for a path; of a split model, any part's.
Model load_gguf(const std::string& path);

}  // namespace memwall
