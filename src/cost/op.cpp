#include "cost/op.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <unordered_map>

#include "format/checked.h"

namespace memwall {

std::string_view op_kind_name(OpKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"linear",    "attention",   "expert",   "router",
                                                      "recurrent", "elementwise", "embedding"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::int64_t LinearWork::weight_bytes() const {
  if (stored_bytes >= 0) return stored_bytes;
  const std::int64_t weights = storage_bytes(format, out, in);
  return bias ? checked_add(weights, storage_bytes(bias_format, 1, out)) : weights;
}

std::int64_t ElementwiseWork::weight_bytes() const {
  if (stored_bytes >= 0) return stored_bytes;
  return weights > 0 ? storage_bytes(weight_format, 1, weights) : 0;
}

namespace {

struct KindOf {
  OpKind operator()(const LinearWork&) const { return OpKind::linear; }
  OpKind operator()(const RouterWork&) const { return OpKind::router; }
  OpKind operator()(const ExpertWork&) const { return OpKind::expert; }
  OpKind operator()(const AttentionWork&) const { return OpKind::attention; }
  OpKind operator()(const LatentWork&) const { return OpKind::attention; }
  OpKind operator()(const IndexerWork&) const { return OpKind::attention; }
  OpKind operator()(const RecurrentWork&) const { return OpKind::recurrent; }
  OpKind operator()(const ElementwiseWork&) const { return OpKind::elementwise; }
  OpKind operator()(const EmbeddingWork&) const { return OpKind::embedding; }
};

}  // namespace

OpKind Op::kind() const { return std::visit(KindOf{}, work); }

const LinearWork* linear_of(const Work& work) {
  if (const auto* linear = std::get_if<LinearWork>(&work)) return linear;
  if (const auto* router = std::get_if<RouterWork>(&work)) return &router->linear;
  if (const auto* expert = std::get_if<ExpertWork>(&work)) return &expert->each;
  return nullptr;
}

namespace {

// Of the sizes that set works apart; equal works have the same.
struct SizesOf {
  using Sizes = std::array<std::int64_t, 6>;

  Sizes operator()(const LinearWork& work) const {
    return {work.out, work.in, work.stored_bytes, static_cast<std::int64_t>(work.format.kind)};
  }
  Sizes operator()(const RouterWork& work) const { return {work.linear.out, work.linear.in, work.per_token}; }
  Sizes operator()(const ExpertWork& work) const {
    return {work.each.out, work.each.in, work.each.stored_bytes, work.total, work.per_token};
  }
  Sizes operator()(const AttentionWork& work) const {
    return {work.heads, work.kv_heads, work.d_k, work.d_v, work.window, work.chunk};
  }
  Sizes operator()(const LatentWork& work) const {
    return {work.state.heads, work.state.rank, work.state.rope, work.state.window, work.state.every};
  }
  Sizes operator()(const IndexerWork& work) const {
    return {work.state.heads, work.state.width, work.state.every};
  }
  Sizes operator()(const RecurrentWork& work) const {
    return {work.state.elements, work.state.conv_elements, work.weight_bytes};
  }
  Sizes operator()(const ElementwiseWork& work) const {
    return {work.width, work.rows_per_token, work.weights, work.stored_bytes};
  }
  Sizes operator()(const EmbeddingWork& work) const { return {work.rows, work.width}; }
};

std::size_t hash_of(const Op& op) {
  std::size_t hash = std::hash<std::string>()(op.name);
  const auto mix = [&](std::size_t value) {
    hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  };
  mix(op.work.index());
  for (const std::int64_t size : std::visit(SizesOf{}, op.work)) mix(static_cast<std::size_t>(size));
  return hash;
}

}  // namespace

std::vector<Op> group_equal(const std::vector<Op>& ops) {
  std::vector<Op> grouped;
  std::unordered_multimap<std::size_t, std::size_t> by_hash;  // to places in `grouped`
  for (const Op& op : ops) {
    const std::size_t hash = hash_of(op);
    const auto [begin, end] = by_hash.equal_range(hash);
    const auto same = std::find_if(begin, end, [&](const auto& entry) {
      const Op& other = grouped[entry.second];
      return other.name == op.name && other.work == op.work && other.layers.empty() == op.layers.empty();
    });
    if (same == end) {
      by_hash.emplace(hash, grouped.size());
      grouped.push_back(op);
    } else {
      std::vector<std::int32_t>& layers = grouped[same->second].layers;
      layers.insert(layers.end(), op.layers.begin(), op.layers.end());
    }
  }
  for (Op& op : grouped) std::sort(op.layers.begin(), op.layers.end());
  return grouped;
}

}  // namespace memwall
