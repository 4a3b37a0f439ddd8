// Zamba: Mamba layers, and now and then a transformer block whose weights are one for all its uses: stored by
// the first, read again by the others. Sources: the modelling code of Hugging
// Face transformers 5.24 (models/NAME/modeling_NAME.py) or, for a family that it lacks, the code in the
// model's repository.
#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "huggingface/families_parts.h"

namespace memwall {
namespace {

const std::vector<const char*> kZambaKinds = {"hybrid", "mamba", "linear_attention"};

bool is_hybrid(const std::string& type) { return type == "hybrid"; }

// Whether every one of the `blocks` shared blocks, which take turns, was used before this layer.
bool stored_before(const Plan& plan, const LayerPlan& layer, std::int64_t blocks) {
  for (std::int32_t i = 0; i < layer.index && blocks > 0; ++i)
    blocks -= is_hybrid(plan.types[static_cast<std::size_t>(i)]) ? 1 : 0;
  return blocks == 0;
}

// It reads the embedded tokens beside the hidden state: inputs of twice the width.
Block shared_attention(const Plan& plan, const LayerPlan& layer) {
  Common wide = plan.common;
  wide.hidden_size = checked_mul(2, plan.common.hidden_size);
  Block block = attention_block(wide, layer.attention);
  block.kind = BlockKind::mixer;
  block.name = "shared_attention";
  for (Tensor& tensor : block.tensors) {
    if (tensor.name == "o_proj") tensor.out = plan.common.hidden_size;
  }
  return block;
}

// What a use has of its own: a projection of the shared block's output into the Mamba layer.
Block output_of_use(const Plan& plan) {
  Block block{.kind = BlockKind::mixer, .name = "shared_output"};
  add_linear(block, plan.common, "linear", plan.common.hidden_size, plan.common.hidden_size);
  return block;
}

void double_heads(const Config& config, Plan& plan) {
  const std::int64_t heads = std::max<std::int64_t>(1, plan.attention.heads);
  const std::int64_t width = checked_mul(2, plan.common.hidden_size) / heads;
  plan.attention.head_dim = plan.attention.v_head_dim = size_or(config, {"attention_head_dim"}, width);
  plan.notes.emplace_back("shared blocks are stored once and read at every use");
}

void zamba(const Config& config, Plan& plan) {
  double_heads(config, plan);
  const std::int64_t period = size_or(config, {"attn_layer_period"}, 6);
  const std::int64_t offset = config.integer_or({"attn_layer_offset"}, 4);
  if (!plan.types.empty()) return;
  for (std::int32_t i = 0; i < plan.layers; ++i)
    plan.types.emplace_back(i == 2 || (i > 2 && (i - 3) % period == offset) ? "hybrid" : "mamba");
}

std::vector<Block> zamba_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  MambaSpec spec = read_mamba(config, plan);
  spec.inner = checked_mul(plan.common.hidden_size, size_or(config, {"mamba_expand"}, 2));
  const Block mamba = mamba_block(plan.common, spec);
  if (!is_hybrid(layer.type)) return {mamba};
  std::vector<Block> blocks = {shared_attention(plan, layer), mlp_block(plan.common, layer.mlp)};
  if (stored_before(plan, layer, 1)) std::for_each(blocks.begin(), blocks.end(), mark_tied);
  blocks.push_back(output_of_use(plan));
  blocks.push_back(mamba);
  return blocks;
}

void zamba2(const Config& config, Plan& plan) {
  double_heads(config, plan);
  plan.mlp.bias = config.flag_or({"add_bias_linear"}, false);
  plan.attention.rotary = config.flag_or({"use_mem_rope"}, false);
  if (plan.types.empty()) config.fail("no layers_block_type");
}

// A low-rank addition to shared projections, of each use's own.
void add_adapter(Block& block, const Plan& plan, const std::string& name, std::int64_t rank, std::int64_t out,
                 std::int64_t in) {
  add_linear(block, plan.common, name + "_adapter.0", rank, in);
  add_linear(block, plan.common, name + "_adapter.1", out, rank);
}

std::vector<Block> zamba2_mixer(const Config& config, const Plan& plan, const LayerPlan& layer) {
  const Block mamba = mamba2_block(plan.common, read_mamba2(config, plan));
  if (!is_hybrid(layer.type)) return {mamba};
  const std::int64_t hidden = plan.common.hidden_size;
  const std::int64_t rank = size_or(config, {"adapter_rank", "lora_rank"}, 128);
  Block attention = shared_attention(plan, layer);
  Block mlp = mlp_block(plan.common, layer.mlp);
  if (stored_before(plan, layer, size_or(config, {"num_mem_blocks"}, 1))) {
    mark_tied(attention);
    mark_tied(mlp);
  }
  Block adapters;
  if (config.flag_or({"use_shared_attention_adapter", "use_shared_attention_lora"}, false)) {
    for (const char* name : {"q_proj", "k_proj", "v_proj"})
      add_adapter(adapters, plan, name, rank, checked_mul(2, hidden), checked_mul(2, hidden));
    insert_before_state(attention, adapters.tensors);
    adapters = {};
  }
  add_adapter(adapters, plan, "gate_up_proj", rank, checked_mul(2, layer.mlp.intermediate), hidden);
  mlp.tensors.insert(mlp.tensors.begin() + 2, adapters.tensors.begin(), adapters.tensors.end());
  return {attention, mlp, output_of_use(plan), mamba};
}

}  // namespace

const std::vector<Family>& zamba_families() {
  static const std::vector<Family> families = {
      {.types = {"zamba"},
       .tied = true,
       .qkv_bias = kNever,
       .o_bias = kNever,
       .rotary = false,
       .layer_kinds = kZambaKinds,
       .adjust = zamba,
       .mixer = zamba_mixer,
       .feed_forward = nothing},
      {.types = {"zamba2"},
       .tied = true,
       .qkv_bias = kNever,
       .o_bias = kNever,
       .fused_gate_up = true,
       .layer_kinds = kZambaKinds,
       .adjust = zamba2,
       .mixer = zamba2_mixer,
       .feed_forward = nothing},
  };
  return families;
}

}  // namespace memwall
