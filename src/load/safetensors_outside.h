// The tensors before and after the layers.
#pragma once

#include <string>

#include "load/safetensors_modules.h"
#include "load/safetensors_notes.h"
#include "model/model.h"

namespace memwall {

// Binds the model's embedding and head blocks, which it must have. Other tables are counted as gathered.
struct OutsideBlocks {
  Block embedding;
  Block head;
};
OutsideBlocks bind_outside(const std::string& file, const Block& embedding, const Block& head,
                           StoredModules& modules, BindingNotes& notes, Model& model);

}  // namespace memwall
