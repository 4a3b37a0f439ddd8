// MODEL as a person writes it: what they have downloaded, or a name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"
#include "model/model.h"

namespace memwall {

// A zoo model's name or alias, with or without its owner and however it is written
// ("meta-llama/Llama-3.1-8B-Instruct", "llama3.1:8b"); a model YAML; a config.json; a .safetensors file or
// its index; a .gguf file; or a folder that holds one model in any of these forms. Of safetensors the headers
// give shapes, formats and bytes and the config.json beside them the rest. Where a name leaves a choice, what
// was taken is added to `notes`. Throws InputError.
Model find_model(std::string_view word, std::vector<std::string>* notes = nullptr);

// The safetensors that `word` names, where no config.json lies beside them, so that they are no Model;
// nothing where it names anything else. Throws InputError.
std::optional<Checkpoint> find_bare_checkpoint(std::string_view word);

// Every model of the zoo, by name.
std::vector<Model> zoo();

}  // namespace memwall
