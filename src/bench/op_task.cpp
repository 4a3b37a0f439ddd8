#include "bench/op_task.h"

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

}  // namespace memwall
