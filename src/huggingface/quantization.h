// The quantization_config of a config.json: in which format a checkpoint stores which linears.
#pragma once

#include <string>

#include "huggingface/config.h"
#include "model/model.h"

namespace memwall {

// Gives the model's linears, experts and head the formats that the configuration's quantization_config
// states, the modules it leaves alone keeping theirs. Throws InputError where the method is not known.
void apply_quantization(const Config& config, Model& model);

// The same for what some tools write to a file beside config.json: ModelOpt's hf_quant_config.json, GPTQ's
// quantize_config.json. For models whose config.json has no quantization_config.
void apply_quantization(const json::Document& document, Model& model);
void apply_quantization_file(const std::string& path, Model& model);

}  // namespace memwall
