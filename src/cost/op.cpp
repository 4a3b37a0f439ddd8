#include "cost/op.h"

#include <algorithm>
#include <array>
#include <iterator>

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

std::vector<Op> group_equal(const std::vector<Op>& ops) {
  std::vector<Op> grouped;
  for (const Op& op : ops) {
    const auto same = std::find_if(grouped.begin(), grouped.end(), [&](const Op& other) {
      return other.name == op.name && other.work == op.work && other.layers.empty() == op.layers.empty();
    });
    if (same == grouped.end()) {
      grouped.push_back(op);
    } else {
      std::vector<std::int32_t> merged;
      std::merge(same->layers.begin(), same->layers.end(), op.layers.begin(), op.layers.end(),
                 std::back_inserter(merged));
      same->layers = std::move(merged);
    }
  }
  return grouped;
}

}  // namespace memwall
