// Attention whose queries pass a narrow space that all heads share (multi-matrix factorization, arXiv
// 2507.19427). Source: modeling_step3.py of stepfun-ai/step3 and vLLM's step3_text.py.
#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

void step3(const Config& config, Plan& plan) {
  plan.moe.shared_intermediate =
      size_or(config, {"share_expert_dim"},
              plan.moe.shared_intermediate > 0 ? plan.moe.shared_intermediate : plan.moe.expert.intermediate);
  // Without a list, all but the first layer have experts.
  if (!config.has({"moe_layers_enum"})) plan.moe_layers[0] = false;
}

std::vector<Block> step3_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  Block block = common_attention(plan, layer);
  const std::int64_t shared = size_or(config, {"share_q_dim"}, plan.common.hidden_size);
  Block queries;
  add_norm(queries, plan.common, "inter_norm", shared);
  add_linear(queries, plan.common, "wq", checked_mul(layer.attention.heads, layer.attention.head_dim),
             shared);
  for (Tensor& tensor : block.tensors) {
    if (tensor.name == "q_proj") tensor.out = shared;
  }
  insert_before_state(block, queries.tensors);
  return {block};
}

}  // namespace

const std::vector<Family>& factorized_families() {
  static const std::vector<Family> families = {
      {.types = {"step3", "step3_text", "step3_vl"},
       .qkv_bias = kNever,
       .o_bias = kNever,
       .adjust = step3,
       .mixer = step3_mixer},
  };
  return families;
}

}  // namespace memwall
