#include "model/components.h"

#include <algorithm>

#include "format/checked.h"

namespace memwall {
namespace {

std::string component_name(const Block& block, const Tensor& tensor) {
  if (tensor.name.rfind("shared_expert", 0) == 0) return "shared experts";
  if (tensor.name.rfind("experts.", 0) == 0) return "experts";
  switch (tensor.role) {
    case Role::embedding:
    case Role::positions:
      return "embedding";
    case Role::norm:
      return "norms";
    case Role::router:
      return "router";
    default:
      break;
  }
  if (tensor.name.rfind("router", 0) == 0) return "router";
  switch (block.kind) {
    case BlockKind::embedding:
      return "embedding";
    case BlockKind::attention:
      return "attention";
    case BlockKind::mixer:
      return block.name;
    case BlockKind::mlp:
    case BlockKind::moe:
      return "mlp";
    case BlockKind::head:
      return "lm_head";
    case BlockKind::shapes:
    case BlockKind::kv_cache:
      break;
  }
  return "shapes";
}

bool is_norms_bias(const Block& block, const Tensor& tensor) {
  const Tensor* owner = block.owner_of(tensor);
  return owner != nullptr && owner->role == Role::norm;
}

}  // namespace

std::vector<Component> components_of(const Model& model) {
  std::vector<Component> components;
  for (const Block& block : model.blocks) {
    const std::int64_t layers = block_count(block);
    for (const Tensor& tensor : block.tensors) {
      const std::string name = is_norms_bias(block, tensor) ? "norms" : component_name(block, tensor);
      auto it = std::find_if(components.begin(), components.end(),
                             [&](const Component& component) { return component.name == name; });
      if (it == components.end()) it = components.insert(components.end(), {.name = name});
      const auto add = [&](std::int64_t& sum, std::int64_t one) {
        sum = checked_add(sum, checked_mul(one, layers));
      };
      if (!tensor.tied) {
        add(it->parameters, tensor.elements());
        add(it->stored_bytes, tensor.bytes());
      }
      add(it->read_bytes, read_by_one_token(block, tensor, tensor.bytes()));
    }
  }
  return components;
}

}  // namespace memwall
