#include "cuda/fused_attention.h"

#include <variant>

#include "cuda/attention.h"
#include "cuda/cache.h"

namespace memwall::cuda {
namespace {

// The kernel that stages keys and values turns nothing.
bool can_turn(const AttentionWork& work) {
  return held_in_registers({KvElement::f16, 1, work.heads, work.kv_heads, work.d_k, work.d_v, 1, 1});
}

AttentionTask task_of(const FusedTask& task) {
  const auto& work = std::get<AttentionWork>(task.ops[1].work);
  const Workload& workload = task.ops[1].workload;
  return {work, workload, true, cost_of(task.ops[0].work, workload).flops + cost_of(work, workload).flops};
}

}  // namespace

bool is_fused_attention(const FusedTask& task) {
  if (task.ops.size() != 2) return false;
  const auto* rotary = std::get_if<ElementwiseWork>(&task.ops[0].work);
  const auto* attention = std::get_if<AttentionWork>(&task.ops[1].work);
  if (rotary == nullptr || attention == nullptr) return false;
  const Workload& a = task.ops[0].workload;
  const Workload& b = task.ops[1].workload;
  const std::int64_t turned = attention->heads + (attention->shared ? 0 : attention->kv_heads);
  return rotary->function == ElementwiseFunction::rotary && rotary->width == attention->d_k &&
         rotary->rows_per_token == turned && b.phase == Phase::decode && a.phase == b.phase &&
         a.batch == b.batch && a.context == b.context && kv_element(attention->kv).has_value() &&
         can_turn(*attention);
}

std::vector<Variant> fused_attention_variants(const FusedTask& task, Context& context) {
  return attention_variants(task_of(task), context);
}

Footprint fused_attention_footprint(const FusedTask& task, Context& context) {
  return attention_footprint(task_of(task), context);
}

std::unique_ptr<Operands> place_fused_attention(const FusedTask& task, Context& context, std::int64_t copies,
                                                std::uint64_t seed) {
  return place_attention(task_of(task), context, copies, seed);
}

}  // namespace memwall::cuda
