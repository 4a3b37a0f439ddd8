#include "model/model.h"

#include <algorithm>

#include "format/checked.h"

namespace memwall {

std::int64_t Tensor::elements() const { return checked_mul(checked_mul(out, in), copies); }

std::int64_t Tensor::bytes() const {
  // A vector's blocks lie along its length.
  const std::int64_t each = role == Role::norm || role == Role::bias ? storage_bytes(format, 1, out)
                                                                     : storage_bytes(format, out, in);
  return checked_mul(each, copies);
}

const Tensor* Block::find(const std::string& wanted) const {
  const auto it =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == wanted; });
  return it == tensors.end() ? nullptr : &*it;
}

namespace {

std::int64_t block_count(const Block& block) {
  return block.layers.empty() ? 1 : static_cast<std::int64_t>(block.layers.size());
}

// Sums a quantity of every tensor over the layers it stands for.
template <typename Quantity>
std::int64_t sum_tensors(const Model& model, Quantity quantity) {
  std::int64_t total = 0;
  for (const Block& block : model.blocks) {
    for (const Tensor& tensor : block.tensors) {
      total = checked_add(total, checked_mul(quantity(block, tensor), block_count(block)));
    }
  }
  return total;
}

// Of `all` (elements or bytes of every copy), what a batch-1 step reads.
std::int64_t read_once(const Block& block, const Tensor& tensor, std::int64_t all) {
  switch (tensor.read) {
    case Read::gathered:
      return 0;
    case Read::per_expert:
      return all / tensor.copies * block.experts_per_token;
    case Read::always:
      break;
  }
  return all;
}

}  // namespace

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  count.total = sum_tensors(model, [](const Block&, const Tensor& t) { return t.tied ? 0 : t.elements(); });
  count.embedding = sum_tensors(model, [](const Block&, const Tensor& t) {
    return t.role == Role::embedding || t.role == Role::positions ? t.elements() : 0;
  });
  count.active =
      sum_tensors(model, [](const Block& b, const Tensor& t) { return read_once(b, t, t.elements()); });
  return count;
}

std::int64_t stored_bytes(const Model& model) {
  return sum_tensors(model, [](const Block&, const Tensor& t) { return t.tied ? 0 : t.bytes(); });
}

std::int64_t read_bytes(const Model& model) {
  return sum_tensors(model, [](const Block& b, const Tensor& t) { return read_once(b, t, t.bytes()); });
}

std::int64_t kv_cache_bytes(const Model& model, std::int64_t context) {
  std::int64_t total = 0;
  for (const Block& block : model.blocks) {
    if (!block.state) continue;
    const State& state = *block.state;
    const std::int64_t token = checked_mul(state.kv_heads, checked_add(kv_vector_bytes(model.kv, state.d_k),
                                                                       kv_vector_bytes(model.kv, state.d_v)));
    const std::int64_t tokens = state.window > 0 ? std::min(state.window, context) : context;
    total = checked_add(total, checked_mul(checked_mul(token, tokens), block_count(block)));
  }
  return total;
}

std::int64_t kv_bytes_per_token(const Model& model) { return kv_cache_bytes(model, 1); }

Model with_weights(Model model, std::optional<Format> weights, std::optional<Format> head) {
  if (!weights && !head) return model;
  const auto is_16bit = [](Format f) { return f.kind == FormatKind::f16 || f.kind == FormatKind::bf16; };
  const Format f16{FormatKind::f16, 0, false};
  const auto small_format = [&](Format own) {
    if (is_16bit(own)) return own;
    return weights && is_16bit(*weights) ? *weights : f16;
  };
  const Format head_16bit = is_16bit(model.head) ? model.head : small_format(model.weights);
  if (weights) model.weights = *weights;
  if (head) {
    model.head = *head;
  } else if (weights) {
    model.head = keeps_16bit_head(*weights) ? head_16bit : *weights;
  }
  for (Block& block : model.blocks) {
    for (Tensor& tensor : block.tensors) {
      switch (tensor.role) {
        case Role::embedding:
        case Role::positions:
        case Role::lm_head:
          tensor.format = model.head;
          break;
        case Role::linear:
        case Role::expert:
          if (weights) tensor.format = *weights;
          break;
        case Role::router:
        case Role::norm:
        case Role::bias:
          if (weights) tensor.format = small_format(tensor.format);
          break;
      }
    }
  }
  return model;
}

}  // namespace memwall
