// Blocks to ops: which operations a block runs, in what order, at what shapes.
#include <utility>

#include "cost/op.h"

namespace memwall {
namespace {

// FLOPs an element, a transcendental counted as one (docs/formulas.md).
constexpr std::int64_t kRmsNormFlops = 4;     // square, sum, scale, weight
constexpr std::int64_t kLayerNormFlops = 7;   // sum, centre, square, sum, scale, weight, bias
constexpr std::int64_t kRotaryFlops = 3;      // two products and a sum
constexpr std::int64_t kActivationFlops = 4;  // negate, exp, add, divide
constexpr std::int64_t kReluFlops = 1;

class Lowering {
 public:
  Lowering(const Model& model, std::vector<Op>& ops) : model_(model), ops_(ops) {}

  void block(const Block& block) {
    switch (block.kind) {
      case BlockKind::embedding:
        return embedding(block);
      case BlockKind::attention:
        return attention(block);
      case BlockKind::kv_cache:
        return cached_attention(block);
      case BlockKind::mlp:
        return mlp(block);
      case BlockKind::moe:
        return moe(block);
      case BlockKind::shapes:
        for (const Tensor& tensor : block.tensors) {
          if (tensor.role == Role::linear) linear(block, tensor.name);
        }
        return;
      case BlockKind::head:
        norm(block, "final_norm", 1, true);
        if (block.find("lm_head") != nullptr) linear(block, "lm_head");
        return;
    }
  }

 private:
  Op& add(const Block& block, std::string name, Work work) {
    ops_.push_back({.name = std::move(name), .work = std::move(work), .layers = block.layers});
    ops_.back().fusible = ops_.back().kind() == OpKind::elementwise;
    return ops_.back();
  }

  static LinearWork linear_work(const Block& block, const Tensor& tensor) {
    const Tensor* bias = block.find(tensor.name + ".bias");
    return {.out = tensor.out,
            .in = tensor.in,
            .format = tensor.format,
            .bias = bias != nullptr,
            .bias_format = bias != nullptr ? bias->format : Format{},
            .last_token_only = tensor.role == Role::lm_head};
  }

  // The op of a linear tensor, if the block has it. True where it has.
  bool linear(const Block& block, const std::string& name, bool joins_previous = false) {
    const Tensor* tensor = block.find(name);
    if (tensor == nullptr) return false;
    const LinearWork work = linear_work(block, *tensor);
    Work wrapped = work;
    if (tensor->role == Role::expert) {
      wrapped = ExpertWork{.each = work, .total = tensor->copies, .per_token = block.experts_per_token};
    } else if (tensor->role == Role::router) {
      wrapped = RouterWork{.linear = work, .per_token = block.experts_per_token};
    }
    add(block, name, wrapped).joins_previous = joins_previous;
    return true;
  }

  void norm(const Block& block, const std::string& name, std::int64_t rows_per_token,
            bool last_token_only = false) {
    const Tensor* weight = block.find(name);
    if (weight == nullptr) return;
    const Tensor* bias = block.find(name + ".bias");
    const bool rms = block.norm == NormKind::rms;
    add(block, name,
        ElementwiseWork{
            .function = rms ? ElementwiseFunction::rms_norm : ElementwiseFunction::layer_norm,
            .width = weight->out,
            .rows_per_token = rows_per_token,
            .weights = weight->out + (bias != nullptr ? bias->out : 0),
            .weight_format = weight->format,
            .flops_per_element = rms ? kRmsNormFlops : kLayerNormFlops - (bias != nullptr ? 0 : 1),
            .last_token_only = last_token_only});
  }

  void residual(const Block& block, const std::string& name) {
    add(block, name,
        ElementwiseWork{.function = ElementwiseFunction::add, .width = model_.hidden_size, .inputs = 2});
  }

  void embedding(const Block& block) {
    for (const Tensor& tensor : block.tensors) {
      add(block, tensor.name, EmbeddingWork{.rows = tensor.out, .width = tensor.in, .format = tensor.format})
          .fusible = true;
    }
  }

  void cached_attention(const Block& block) {
    const State& state = *block.state;
    if (block.rotary) {
      add(block, "rotary",
          ElementwiseWork{.function = ElementwiseFunction::rotary,
                          .width = state.d_k,
                          .rows_per_token = block.heads + state.kv_heads,
                          .flops_per_element = kRotaryFlops});
    }
    add(block, "attention",
        AttentionWork{.heads = block.heads,
                      .kv_heads = state.kv_heads,
                      .d_k = state.d_k,
                      .d_v = state.d_v,
                      .window = state.window,
                      .kv = model_.kv});
  }

  void attention(const Block& block) {
    norm(block, "attn_norm", 1);
    if (!linear(block, "qkv_proj")) {
      linear(block, "q_proj");
      linear(block, "k_proj", true);
      linear(block, "v_proj", true);
    }
    // A norm of one head's width runs once a head, a norm of the whole projection once a token.
    const auto rows = [&](const char* name, std::int64_t heads) {
      const Tensor* weight = block.find(name);
      return weight != nullptr && weight->out == block.state->d_k ? heads : 1;
    };
    norm(block, "q_norm", rows("q_norm", block.heads));
    norm(block, "k_norm", rows("k_norm", block.state->kv_heads));
    cached_attention(block);
    linear(block, "o_proj");
    norm(block, "attn_post_norm", 1);
    residual(block, "attn_residual");
  }

  void activation(const Block& block, const std::string& prefix, std::int64_t width,
                  std::int64_t rows_per_token) {
    const std::int64_t flops = block.activation == ActivationKind::relu ? kReluFlops : kActivationFlops;
    add(block, prefix + "activation",
        ElementwiseWork{.function = ElementwiseFunction::activate,
                        .width = width,
                        .rows_per_token = rows_per_token,
                        .inputs = block.gated ? 2 : 1,
                        .flops_per_element = flops + (block.gated ? 1 : 0),
                        .activation = block.activation});
  }

  void mlp_linears(const Block& block, const std::string& prefix, std::int64_t rows_per_token) {
    if (!linear(block, prefix + "gate_up_proj")) {
      const bool gated = linear(block, prefix + "gate_proj");
      linear(block, prefix + "up_proj", gated);
    }
    activation(block, prefix, block.find(prefix + "down_proj")->in, rows_per_token);
    linear(block, prefix + "down_proj");
  }

  void mlp(const Block& block) {
    norm(block, "mlp_norm", 1);
    mlp_linears(block, "", 1);
    norm(block, "mlp_post_norm", 1);
    residual(block, "mlp_residual");
  }

  void moe(const Block& block) {
    norm(block, "mlp_norm", 1);
    linear(block, "router");
    linear(block, "shared_expert.gate", true);  // reads what the router reads
    mlp_linears(block, "experts.", block.experts_per_token);
    add(block, "experts.combine",
        ElementwiseWork{.function = ElementwiseFunction::combine,
                        .width = model_.hidden_size,
                        .inputs = block.experts_per_token,
                        .flops_per_element = 2 * block.experts_per_token});
    if (block.find("shared_expert.down_proj") != nullptr) {
      mlp_linears(block, "shared_expert.", 1);
    }
    norm(block, "mlp_post_norm", 1);
    residual(block, "mlp_residual");
  }

  const Model& model_;
  std::vector<Op>& ops_;
};

}  // namespace

std::vector<Op> lower(const Model& model) {
  std::vector<Op> ops;
  Lowering lowering(model, ops);
  for (const Block& block : model.blocks) lowering.block(block);
  return ops;
}

}  // namespace memwall
