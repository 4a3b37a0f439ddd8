#include "load/safetensors_draft.h"

#include <algorithm>
#include <utility>

#include "format/checked.h"

namespace memwall {

Draft::Draft(const Block& block) : frame_(block) {
  std::size_t next = 0;
  for (std::size_t i = 0; i <= block.tensors.size(); ++i) {
    for (; next < block.states.size() && block.states[next].before == i; ++next)
      slots_.push_back({.tensor = {}, .state = block.states[next].state});
    if (i < block.tensors.size()) slots_.push_back({.tensor = block.tensors[i]});
  }
  frame_.tensors.clear();
  frame_.states.clear();
  frame_.layers.clear();
}

std::string Draft::name_of(const Tensor& tensor) const {
  switch (frame_.kind) {
    case BlockKind::mlp:
    case BlockKind::moe:
      return "mlp." + tensor.name;
    case BlockKind::attention:
      return "self_attn." + tensor.name;
    case BlockKind::mixer:
      return (frame_.name == "mla" ? std::string("self_attn") : frame_.name) + "." + tensor.name;
    default:
      return tensor.name;
  }
}

Slot* Draft::find(const std::string& name) {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const Slot& slot) { return !slot.state && slot.tensor.name == name; });
  return found == slots_.end() ? nullptr : &*found;
}

Slot& Draft::append(Tensor tensor) {
  slots_.push_back({.tensor = std::move(tensor)});
  return slots_.back();
}

Slot& Draft::insert_behind(const Slot& owner, Tensor tensor) {
  const auto at = slots_.begin() + (&owner - slots_.data()) + 1;
  return *slots_.insert(at, Slot{.tensor = std::move(tensor)});
}

void Draft::replace(const std::vector<std::string>& names, std::vector<Tensor> tensors) {
  std::vector<Slot> slots;
  bool placed = false;
  for (Slot& slot : slots_) {
    if (slot.state || std::find(names.begin(), names.end(), slot.tensor.name) == names.end()) {
      slots.push_back(std::move(slot));
      continue;
    }
    if (std::exchange(placed, true)) continue;
    for (Tensor& tensor : tensors) slots.push_back({.tensor = std::move(tensor)});
  }
  slots_ = std::move(slots);
}

void Draft::bind(Slot& slot, StoredModule& module) {
  store_as(slot.tensor, module);
  slot.stored = &module;
  module.used = true;
}

void add_bytes(Tensor& tensor, std::int64_t bytes) {
  if (bytes > 0) tensor.stored_bytes = checked_add(tensor.bytes(), bytes);
}

Block Draft::block() && {
  Block block = std::move(frame_);
  for (Slot& slot : slots_) {
    if (slot.state) {
      block.place(*slot.state);
      continue;
    }
    add_bytes(slot.tensor, slot.more_bytes);
    block.tensors.push_back(std::move(slot.tensor));
  }
  return block;
}

}  // namespace memwall
