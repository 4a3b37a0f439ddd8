#include "model/join_layers.h"

#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace memwall {
namespace {

void mix(std::size_t& hash, std::size_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
}

// Of what sets layers apart: equal layers have the same.
std::size_t hash_of(const std::vector<Block>& layer) {
  std::size_t hash = layer.size();
  for (const Block& block : layer) {
    mix(hash, static_cast<std::size_t>(block.kind));
    for (const Tensor& tensor : block.tensors) {
      mix(hash, std::hash<std::string_view>()(tensor.name));
      for (const std::int64_t size : {tensor.out, tensor.in, tensor.copies, tensor.stored_bytes})
        mix(hash, static_cast<std::size_t>(size));
      mix(hash, static_cast<std::size_t>(tensor.format.kind));
      mix(hash, tensor.tied ? 1 : 0);
    }
    for (const Block::Placed& placed : block.states) {
      if (const auto* kv = std::get_if<KvState>(&placed.state))
        mix(hash, static_cast<std::size_t>(kv->window));
    }
  }
  return hash;
}

}  // namespace

void LayerJoiner::add(std::int32_t index, std::vector<Block> layer) {
  const std::size_t hash = hash_of(layer);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    if (groups_[at->second].layer != layer) continue;
    groups_[at->second].indices.push_back(index);
    return;
  }
  by_hash_.emplace(hash, groups_.size());
  groups_.push_back({std::move(layer), {index}});
}

void LayerJoiner::finish(std::vector<Block>& blocks) {
  for (Group& group : groups_) {
    for (Block& block : group.layer) {
      block.layers = group.indices;
      blocks.push_back(std::move(block));
    }
  }
  groups_.clear();
  by_hash_.clear();
}

}  // namespace memwall
