// A Hugging Face config.json as a Model.
#pragma once

#include <string>

#include "huggingface/config.h"
#include "model/model.h"

namespace memwall {

// Reads the configuration of any decoder-only family. One that is not known is read by what its keys
// usually mean, and the model says so (Model::approximate). Throws InputError where keys are missing or
// contradict each other, and where an unknown family has parts that no rule covers.
Model load_config(const std::string& path);

// The same for a document in memory; `name` becomes the model's.
Model model_from_config(json::Document document, const std::string& name);

}  // namespace memwall
