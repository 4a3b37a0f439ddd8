// A block while its tensors are found in a checkpoint: tensors and states in one list, so that either may be
// added and removed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/safetensors_modules.h"
#include "model/model.h"

namespace memwall {

struct Slot {
  Tensor tensor;
  std::optional<State> state{};          // instead of a tensor
  const StoredModule* stored = nullptr;  // where the tensor was found
  std::int64_t more_bytes = 0;           // of what belongs to it besides

  bool is_free() const { return !state && stored == nullptr && !tensor.tied; }
};

class Draft {
 public:
  explicit Draft(const Block& block);

  BlockKind kind() const { return frame_.kind; }
  bool feeds() const { return kind() == BlockKind::mlp || kind() == BlockKind::moe; }
  // "mlp.down_proj", as messages name it.
  std::string name_of(const Tensor& tensor) const;

  std::vector<Slot>& slots() { return slots_; }
  Slot* find(const std::string& name);
  Slot& append(Tensor tensor);
  // Right behind `owner`, a slot of this draft; invalidates references to slots.
  Slot& insert_behind(const Slot& owner, Tensor tensor);
  // Takes out the named tensors and puts others where the first of them was. Invalidates references to slots.
  void replace(const std::vector<std::string>& names, std::vector<Tensor> tensors);

  // Takes the module for the slot's tensor.
  static void bind(Slot& slot, StoredModule& module);

  // The block, of layer-less kind as yet.
  Block block() &&;

 private:
  Block frame_;
  std::vector<Slot> slots_;
};

// What a tensor and what belongs to it besides take in the file.
void add_bytes(Tensor& tensor, std::int64_t bytes);

}  // namespace memwall
