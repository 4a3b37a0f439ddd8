#include "model/model.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "format/checked.h"

namespace memwall {

std::int64_t Tensor::elements() const { return checked_mul(checked_mul(out, in), copies); }

std::int64_t Tensor::bytes() const {
  if (stored_bytes >= 0) return stored_bytes;
  // A vector's blocks lie along its length.
  const bool vector = role == Role::norm || role == Role::bias || role == Role::parameter;
  const std::int64_t each =
      vector ? storage_bytes(format, 1, checked_mul(out, in)) : storage_bytes(format, out, in);
  return checked_mul(each, copies);
}

std::int64_t RecurrentState::bytes() const {
  return checked_add(checked_mul(elements, element_bytes), checked_mul(conv_elements, 2));
}

const Tensor* Block::find(const std::string& wanted) const {
  const auto it =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == wanted; });
  return it == tensors.end() ? nullptr : &*it;
}

std::int64_t block_count(const Block& block) {
  return block.layers.empty() ? 1 : static_cast<std::int64_t>(block.layers.size());
}

std::int64_t read_by_one_token(const Block& block, const Tensor& tensor, std::int64_t all) {
  switch (tensor.read) {
    case Read::gathered:
    case Read::never:
      return 0;
    case Read::per_expert:
      return all / tensor.copies * block.experts_per_token;
    case Read::always:
      break;
  }
  return all;
}

const Tensor* Block::owner_of(const Tensor& bias) const {
  constexpr std::string_view kSuffix = ".bias";
  if (bias.role != Role::bias || !bias.name.ends_with(kSuffix)) return nullptr;
  return find(bias.name.substr(0, bias.name.size() - kSuffix.size()));
}

namespace {

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

}  // namespace

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  count.total = sum_tensors(model, [](const Block&, const Tensor& t) { return t.tied ? 0 : t.elements(); });
  count.embedding = sum_tensors(model, [](const Block&, const Tensor& t) {
    return t.role == Role::embedding || t.role == Role::positions ? t.elements() : 0;
  });
  count.active = sum_tensors(
      model, [](const Block& b, const Tensor& t) { return read_by_one_token(b, t, t.elements()); });
  return count;
}

std::int64_t published_difference(const Model& model) {
  if (!model.published) return 0;
  const Published& published = *model.published;
  const std::int64_t difference =
      checked_add(count_parameters(model).total, published.buffers) - published.parameters;
  if (!published.rounded || published.parameters == 0) return difference;
  std::int64_t unit = 1;
  while (published.parameters % (unit * 10) == 0) unit *= 10;
  return 2 * std::abs(difference) <= unit ? 0 : difference;
}

std::int64_t stored_bytes(const Model& model) {
  return sum_tensors(model, [](const Block&, const Tensor& t) { return t.tied ? 0 : t.bytes(); });
}

std::int64_t read_bytes(const Model& model) {
  return sum_tensors(model,
                     [](const Block& b, const Tensor& t) { return read_by_one_token(b, t, t.bytes()); });
}

namespace {

struct EntryBytes {
  KvFormat kv;

  std::int64_t operator()(const KvState& s) const {
    if (s.shared) return 0;
    return checked_mul(s.kv_heads, checked_add(kv_vector_bytes(kv, s.d_k), kv_vector_bytes(kv, s.d_v)));
  }
  std::int64_t operator()(const LatentState& s) const {
    return kv_vector_bytes(kv, checked_add(s.rank, s.rope));
  }
  std::int64_t operator()(const IndexerState& s) const { return kv_vector_bytes(kv, s.width); }
  std::int64_t operator()(const RecurrentState&) const { return 0; }
};

// Entries one sequence of `context` tokens keeps, windows and chunks being `beyond` tokens longer.
struct EntriesKept {
  std::int64_t context;
  std::int64_t beyond;

  std::int64_t operator()(const KvState& s) const {
    if (s.window > 0) return std::min(checked_add(s.window, beyond), context);
    return s.chunk > 0 ? std::min(checked_add(s.chunk, beyond), context) : context;
  }
  std::int64_t operator()(const LatentState& s) const {
    return s.window > 0 ? std::min(checked_add(s.window, beyond), context) : entries_kept(s, context);
  }
  std::int64_t operator()(const IndexerState& s) const { return entries_kept(s, context); }
  std::int64_t operator()(const RecurrentState&) const { return 0; }
};

// Sums a quantity of every state over the layers it stands for.
template <typename Quantity>
std::int64_t sum_states(const Model& model, Quantity quantity) {
  std::int64_t total = 0;
  for (const Block& block : model.blocks) {
    for (const Block::Placed& placed : block.states) {
      total = checked_add(total, checked_mul(quantity(placed.state), block_count(block)));
    }
  }
  return total;
}

std::int64_t tokens_an_entry(const State& state) {
  if (const auto* latent = std::get_if<LatentState>(&state)) return latent->every;
  if (const auto* indexer = std::get_if<IndexerState>(&state)) return indexer->every;
  return 1;
}

}  // namespace

std::int64_t entries_kept(const LatentState& state, std::int64_t context) {
  return state.window > 0 ? std::min(state.window, context) : div_up(context, state.every);
}

std::int64_t entries_kept(const IndexerState& state, std::int64_t context) {
  return div_up(context, state.every);
}

std::int64_t entry_bytes(const State& state, KvFormat kv) { return std::visit(EntryBytes{kv}, state); }

std::int64_t kv_cache_bytes(const Model& model, std::int64_t context, std::int64_t beyond_window) {
  return sum_states(model, [&](const State& state) {
    return checked_mul(entry_bytes(state, model.kv), std::visit(EntriesKept{context, beyond_window}, state));
  });
}

std::int64_t kv_bytes_per_token(const Model& model) {
  return sum_states(
      model, [&](const State& state) { return entry_bytes(state, model.kv) / tokens_an_entry(state); });
}

std::int64_t state_bytes(const Model& model) {
  return sum_states(model, [](const State& state) {
    const auto* recurrent = std::get_if<RecurrentState>(&state);
    return recurrent != nullptr ? recurrent->bytes() : 0;
  });
}

std::vector<std::pair<Format, std::int64_t>> formats_by_bytes(const Model& model) {
  std::vector<std::pair<Format, std::int64_t>> formats;
  for (const Block& block : model.blocks) {
    for (const Tensor& tensor : block.tensors) {
      if (tensor.role != Role::linear && tensor.role != Role::expert) continue;
      auto found = std::find_if(formats.begin(), formats.end(),
                                [&](const auto& one) { return one.first == tensor.format; });
      if (found == formats.end()) found = formats.insert(formats.end(), {tensor.format, 0});
      found->second = checked_add(found->second, checked_mul(tensor.bytes(), block_count(block)));
    }
  }
  std::stable_sort(formats.begin(), formats.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return formats;
}

std::optional<Format> main_format(const Model& model) {
  const auto formats = formats_by_bytes(model);
  if (formats.empty()) return std::nullopt;
  return formats.front().first;
}

void check_sums(const Model& model) {
  count_parameters(model);
  stored_bytes(model);
  kv_bytes_per_token(model);
  state_bytes(model);
}

Model with_weights(Model model, std::optional<Format> weights, std::optional<Format> head) {
  if (!weights && !head) return model;
  const auto is_16bit = [](Format f) { return f.kind == FormatKind::f16 || f.kind == FormatKind::bf16; };
  const Format f16{FormatKind::f16, 0, false};
  const auto small_format = [&](Format own) {
    if (is_16bit(own)) return own;
    return weights && is_16bit(*weights) ? *weights : f16;
  };
  const Format head_16bit = is_16bit(model.head) ? model.head : small_format(model.weights);
  if (weights) {
    model.weights = *weights;
    model.weights_assigned.clear();
  }
  if (head) {
    model.head = *head;
  } else if (weights) {
    model.head = keeps_16bit_head(*weights) ? head_16bit : *weights;
  }
  const auto store_as = [](Tensor& tensor, Format format) {
    tensor.format = format;
    tensor.stored_bytes = -1;
  };
  for (Block& block : model.blocks) {
    for (Tensor& tensor : block.tensors) {
      switch (tensor.role) {
        case Role::embedding:
        case Role::positions:
        case Role::lm_head:
          store_as(tensor, model.head);
          break;
        case Role::linear:
        case Role::expert:
          if (weights) store_as(tensor, *weights);
          break;
        case Role::router:
        case Role::norm:
        case Role::bias:
        case Role::parameter:
          if (weights) store_as(tensor, small_format(tensor.format));
          break;
      }
    }
  }
  return model;
}

}  // namespace memwall
