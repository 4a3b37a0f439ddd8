// Decoders with multi-head latent attention. Sources: DeepSeek-V2 (arXiv 2405.04434), V3 (2412.19437), and
// the modelling code of Hugging Face transformers 5.24 (models/NAME/modeling_NAME.py).
#include "format/checked.h"
#include "huggingface/families_parts.h"
#include "huggingface/plan.h"

namespace memwall {
namespace {

std::vector<Block> mla_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  if (!config.flag_or({"use_mla"}, true)) return {common_attention(plan, layer)};  // DeepSeek-VL2 Tiny
  return {mla_block(plan.common, read_mla(config, plan))};
}

// A.X K1 has a norm behind its experts too.
void axk1(const Config&, Plan& plan) { plan.moe.expert.norm = NormPlace::both; }

// Two attentions and two dense MLPs a layer, the experts beside the second; some "experts" do nothing.
void longcat(const Config& config, Plan& plan) {
  if (plan.moe.experts == 0) config.fail_about(kExperts, "no n_routed_experts");
  all_moe(plan);
  plan.moe.idle = size_or_none(config, {"zero_expert_num"});
}

std::vector<Block> longcat_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Block attention = mla_block(plan.common, read_mla(config, plan));
  return {attention, mlp_block(plan.common, layer.mlp), attention};
}

std::vector<Block> longcat_feed_forward(const Config&, const Plan& plan, const LayerPlan& layer) {
  MoeSpec spec = plan.moe;
  spec.expert.norm = NormPlace::none;  // it reads what the first MLP read
  return {moe_block(plan.common, spec), mlp_block(plan.common, layer.mlp)};
}

}  // namespace

const std::vector<Family>& latent_families() {
  static const std::vector<Family> families = {
      {.types = {"deepseek_v2", "mistral4"}, .mixer = mla_mixer},
      {.types = {"deepseek_v3", "kimi_k2", "kimi_k25", "glm4_moe_lite", "sarvam_mla"},
       .router_bias = kAlways,
       .mixer = mla_mixer},
      {.types = {"axk1"}, .router_bias = kAlways, .adjust = axk1, .mixer = mla_mixer},
      {.types = {"youtu", "minicpm3"}, .tied = true, .mixer = mla_mixer},
      {.types = {"longcat_flash"},
       .router_bias = kAlways,
       .adjust = longcat,
       .mixer = longcat_mixer,
       .feed_forward = longcat_feed_forward},
  };
  return families;
}

}  // namespace memwall
