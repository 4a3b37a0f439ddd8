#include "bench/step_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <variant>

#include "bench/op_task.h"
#include "format/checked.h"

namespace memwall {
namespace {

bool same_op(const Op& a, const Op& b) {
  return a.name == b.name && a.work == b.work && a.layers.empty() == b.layers.empty();
}

// How many of a part's copies are held beside `layers_held` of `layers` layers.
std::int64_t copies_held(const StepPart& part, std::int64_t layers_held, std::int64_t layers) {
  if (!part.in_layers) return 1;
  return std::max<std::int64_t>(1, div_up(checked_mul(part.count, layers_held), layers));
}

bool has_experts(const StepPlan& plan) {
  return std::any_of(plan.parts.begin(), plan.parts.end(), [](const StepPart& part) {
    return std::holds_alternative<ExpertWork>(part.main().work);
  });
}

bool reads_memory(const Op& op) { return op.kind() != OpKind::elementwise && op.kind() != OpKind::embedding; }

}  // namespace

const Op& StepPart::main() const {
  const auto found = std::find_if(ops.begin(), ops.end(), reads_memory);
  return found != ops.end() ? *found : ops.front();
}

std::string StepPart::name() const {
  std::string name;
  for (const Op& op : ops) name += (name.empty() ? "" : " + ") + op.name;
  return name;
}

Task StepPart::task(const Workload& workload, bool whole_layers) const {
  if (fused()) {
    FusedTask task;
    for (const Op& op : ops) task.ops.push_back(essential_task(op.work, workload));
    return task;
  }
  OpTask task = essential_task(ops.front().work, workload);
  task.whole_layers = whole_layers;
  return task;
}

StepPlan plan_step(const std::vector<Op>& ops) {
  StepPlan plan;
  for (const Op& op : group_equal(ops))
    plan.parts.push_back({{op}, {plan.parts.size()}, op.count(), !op.layers.empty()});
  std::vector<std::int64_t> next_copy(plan.parts.size(), 0);
  const auto launch = [&](const Op& op) {
    const auto part = std::find_if(plan.parts.begin(), plan.parts.end(),
                                   [&](const StepPart& candidate) { return same_op(candidate.main(), op); });
    const auto index = static_cast<std::size_t>(part - plan.parts.begin());
    plan.launches.push_back({index, next_copy[index]++});
  };

  const auto first_layer_op =
      std::find_if(ops.begin(), ops.end(), [](const Op& op) { return !op.layers.empty(); });
  std::for_each(ops.begin(), first_layer_op, launch);
  std::set<std::int32_t> layers;
  for (const Op& op : ops) layers.insert(op.layers.begin(), op.layers.end());
  for (const std::int32_t layer : layers) {
    for (const Op& op : ops) {
      if (std::binary_search(op.layers.begin(), op.layers.end(), layer)) launch(op);
    }
  }
  std::for_each(first_layer_op, ops.end(), [&](const Op& op) {
    if (op.layers.empty()) launch(op);
  });
  plan.layers = static_cast<std::int64_t>(layers.size());
  return plan;
}

namespace {

const ElementwiseWork* norm_of(const Op& op) {
  const auto* work = std::get_if<ElementwiseWork>(&op.work);
  if (work == nullptr) return nullptr;
  const bool norm =
      work->function == ElementwiseFunction::rms_norm || work->function == ElementwiseFunction::layer_norm;
  return norm ? work : nullptr;
}

// Ops do not name what they read, so this follows from their order. Of two norms in a row, whose output a
// linear takes is not known. Behind the run, and until a norm of the same width makes a new input: a router
// or expert of that width reads this norm, and so does a linear that follows a residual without a norm of its
// own, as in the blocks that run attention and MLP side by side.
bool norm_is_read_elsewhere(const StepPlan& plan, std::size_t first, std::size_t count) {
  const auto op_at = [&](std::size_t i) -> const Op& {
    return plan.parts[plan.launches[i].part].ops.front();
  };
  const ElementwiseWork* norm = norm_of(op_at(first));
  if (norm == nullptr) return false;
  if (first > 0 && norm_of(op_at(first - 1)) != nullptr) return true;
  bool after_residual = false;
  for (std::size_t i = first + count; i < plan.launches.size(); ++i) {
    const StepPart& part = plan.parts[plan.launches[i].part];
    if (!part.in_layers || plan.launches[i].part == plan.launches[first].part)
      return false;  // the next layer
    const Op& op = part.ops.front();
    if (const ElementwiseWork* next = norm_of(op); next != nullptr && next->width == norm->width)
      return false;
    const auto* elementwise = std::get_if<ElementwiseWork>(&op.work);
    if (elementwise != nullptr && elementwise->function == ElementwiseFunction::add) after_residual = true;
    const LinearWork* linear = linear_of(op.work);
    if (linear == nullptr || linear->in != norm->width) continue;
    if (after_residual || !std::holds_alternative<LinearWork>(op.work)) return true;
  }
  return false;
}

}  // namespace

StepPlan fuse_plan(const StepPlan& plan, const std::function<bool(const std::vector<std::size_t>&)>& fuses) {
  constexpr std::size_t kMost = 6;  // a norm, four linears and what follows
  std::map<std::vector<std::size_t>, bool> known;
  const auto fuse = [&](const std::vector<std::size_t>& members) {
    const auto [at, fresh] = known.try_emplace(members, false);
    if (fresh) at->second = fuses(members);
    return at->second;
  };
  StepPlan fused;
  fused.layers = plan.layers;
  std::map<std::vector<std::size_t>, std::size_t> part_of;
  for (std::size_t i = 0; i < plan.launches.size();) {
    std::vector<std::size_t> members;
    for (std::size_t j = i; j < plan.launches.size() && members.size() < kMost; ++j) {
      const StepPart& next = plan.parts[plan.launches[j].part];
      const bool next_layer =
          std::find(members.begin(), members.end(), next.members.front()) != members.end();
      if (next_layer || (!next.in_layers && !members.empty())) break;
      members.push_back(next.members.front());
      if (!next.in_layers) break;
    }
    while (members.size() > 1 && (norm_is_read_elsewhere(plan, i, members.size()) || !fuse(members)))
      members.pop_back();
    const auto [at, fresh] = part_of.try_emplace(members, fused.parts.size());
    if (fresh) {
      StepPart part{{}, members, 0, plan.parts[plan.launches[i].part].in_layers};
      for (const std::size_t member : members) part.ops.push_back(plan.parts[member].ops.front());
      fused.parts.push_back(std::move(part));
    }
    fused.launches.push_back({at->second, fused.parts[at->second].count++});
    i += members.size();
  }
  return fused;
}

StepHolding holding_of(const StepPlan& plan, const StepFootprints& footprints, std::int64_t layers_held,
                       bool all_experts) {
  StepHolding holding{
      .layers_held = layers_held, .all_experts = all_experts, .copies = {}, .matrices_a_copy = {}};
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const StepPart& part = plan.parts[i];
    holding.copies.push_back(0);
    holding.matrices_a_copy.push_back(1);
    if (!footprints[i]) continue;
    const Footprint& footprint = *footprints[i];
    std::int64_t matrices = footprint.least_copies;
    if (const auto* experts = std::get_if<ExpertWork>(&part.main().work); experts != nullptr && all_experts)
      matrices = std::max(matrices, experts->total);
    holding.copies.back() = footprint.cold ? copies_held(part, layers_held, plan.layers) : 1;
    holding.matrices_a_copy.back() = matrices;
    const std::int64_t cold =
        footprint.cold ? checked_mul(footprint.copy_bytes, checked_mul(holding.copies.back(), matrices))
                       : footprint.copy_bytes;
    holding.bytes = checked_add(holding.bytes, checked_add(cold, footprint.fixed_bytes));
    if (footprint.cold && part.in_layers) holding.cold_bytes += cold;
  }
  return holding;
}

std::optional<StepHolding> fullest_holding(const StepPlan& plan, const StepFootprints& footprints,
                                           std::int64_t memory_bytes, std::int64_t least_cold_bytes) {
  StepHolding holding = holding_of(plan, footprints, plan.layers, true);
  const bool all_experts = !has_experts(plan);
  std::int64_t layers = plan.layers;
  if (holding.bytes > memory_bytes) holding = holding_of(plan, footprints, layers, all_experts);
  while (holding.bytes > memory_bytes && layers > 1)
    holding = holding_of(plan, footprints, --layers, all_experts);
  const bool rotates = layers < plan.layers;
  if (holding.bytes > memory_bytes || (rotates && holding.cold_bytes < least_cold_bytes)) return std::nullopt;
  return holding;
}

StepHolding least_holding(const StepPlan& plan, const StepFootprints& footprints,
                          std::int64_t least_cold_bytes) {
  const bool all_experts = !has_experts(plan);
  std::int64_t layers = std::min<std::int64_t>(1, plan.layers);
  StepHolding holding = holding_of(plan, footprints, layers, all_experts);
  while (holding.cold_bytes < least_cold_bytes && layers < plan.layers)
    holding = holding_of(plan, footprints, ++layers, all_experts);
  return holding;
}

std::int64_t turn_of(const StepHolding& holding, const StepLaunch& launch, std::int64_t step) {
  const std::int64_t copies = holding.copies[launch.part];
  return launch.copy % copies + copies * step;
}

}  // namespace memwall
