// A Hugging Face checkpoint as a model: config.json says how it is built, the safetensors headers what is
// stored.
#pragma once

#include "checkpoint/safetensors.h"
#include "model/model.h"

namespace memwall {

// `from_config` with the shapes, formats and bytes of the stored tensors. Every stored byte is in the model's
// blocks or its extras, once: both together are checkpoint.data_bytes. Tensors that are not understood are
// counted as read in every step, and said in a warning. Throws InputError where the checkpoint lacks a matrix
// of the configuration's, or stores one of another shape.
Model bind_checkpoint(Model from_config, const Checkpoint& checkpoint);

}  // namespace memwall
