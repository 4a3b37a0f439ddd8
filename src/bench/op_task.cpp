#include "bench/op_task.h"

#include <algorithm>
#include <variant>

namespace memwall {

OpTask essential_task(const Work& work, Workload workload) {
  const auto* linear = std::get_if<LinearWork>(&work);
  const auto* elementwise = std::get_if<ElementwiseWork>(&work);
  const bool last_only = (linear != nullptr && linear->last_token_only) ||
                         (elementwise != nullptr && elementwise->last_token_only);
  if (last_only) workload.phase = Phase::decode;
  const bool over_context = std::holds_alternative<AttentionWork>(work) ||
                            std::holds_alternative<LatentWork>(work) ||
                            std::holds_alternative<IndexerWork>(work);
  if (workload.phase == Phase::decode && !over_context) workload.context = 1;
  return {.work = work, .workload = workload};
}

bool same_task(const OpTask& a, const OpTask& b) {
  return a.work == b.work && a.workload.phase == b.workload.phase && a.workload.batch == b.workload.batch &&
         a.workload.context == b.workload.context && a.whole_layers == b.whole_layers;
}

bool same_task(const Task& a, const Task& b) {
  if (const auto* op = std::get_if<OpTask>(&a)) {
    const auto* other = std::get_if<OpTask>(&b);
    return other != nullptr && same_task(*op, *other);
  }
  const auto* fused = std::get_if<FusedTask>(&a);
  const auto* other = std::get_if<FusedTask>(&b);
  if (fused == nullptr || other == nullptr) return false;
  return std::equal(fused->ops.begin(), fused->ops.end(), other->ops.begin(), other->ops.end(),
                    [](const OpTask& x, const OpTask& y) { return same_task(x, y); });
}

}  // namespace memwall
