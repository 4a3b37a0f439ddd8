// Blocks to ops: which operations a block runs, in what order, at what shapes.
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
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

// What an activation gates: "down_proj", "experts.down_proj", "shared_expert.down_proj".
constexpr std::string_view kDownProj = "down_proj";

// Walks a block's tensors and states in their order. What stands between them unnamed (activations, rotary
// embeddings, sums) follows from the kind of the block.
class Lowering {
 public:
  Lowering(const Model& model, const Block& block, std::vector<Op>& ops)
      : model_(model), block_(block), ops_(ops) {
    for (const Tensor& tensor : block.tensors) tensors_.emplace(tensor.name, &tensor);
  }

  void run() {
    std::size_t next_state = 0;
    for (std::size_t i = 0; i <= block_.tensors.size(); ++i) {
      for (; next_state < block_.states.size() && block_.states[next_state].before == i; ++next_state)
        state(block_.states[next_state].state);
      if (i < block_.tensors.size()) tensor(block_.tensors[i]);
    }
    if (pending_bytes_ > 0) loose_parameters();
    switch (block_.kind) {
      case BlockKind::attention:
      case BlockKind::mixer:
        return residual("attn_residual");
      case BlockKind::mlp:
      case BlockKind::moe:
        return residual("mlp_residual");
      default:
        return;
    }
  }

 private:
  // Of the block; a search through all its tensors for each of them would take hours of a hostile file.
  const Tensor* find(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second;
  }

  bool has_owner(const Tensor& bias) const {
    constexpr std::string_view kSuffix = ".bias";
    return bias.name.ends_with(kSuffix) &&
           find(bias.name.substr(0, bias.name.size() - kSuffix.size())) != nullptr;
  }

  Op& add(std::string name, Work work) {
    ops_.push_back({.name = std::move(name), .work = std::move(work), .layers = block_.layers});
    ops_.back().fusible = ops_.back().kind() == OpKind::elementwise;
    joins_ = nullptr;
    return ops_.back();
  }

  void tensor(const Tensor& tensor) {
    if (tensor.read == Read::never) return;
    switch (tensor.role) {
      case Role::embedding:
      case Role::positions:
        add(tensor.name, EmbeddingWork{.rows = tensor.out, .width = tensor.in, .format = tensor.format})
            .fusible = true;
        return;
      case Role::norm:
        return norm(tensor);
      case Role::parameter:
        pending_bytes_ += tensor.bytes();
        return;
      case Role::bias:
        // Counted with its linear or norm; alone it is read by what comes next.
        if (!has_owner(tensor)) pending_bytes_ += tensor.bytes();
        return;
      case Role::linear:
      case Role::lm_head:
      case Role::router:
      case Role::expert:
        return linear(tensor);
    }
  }

  // Outputs of a mixture's router beyond its experts: choices that run none (LongCat's zero experts).
  std::int64_t idle_choices(const Tensor& expert) const {
    if (block_.kind != BlockKind::moe) return 0;
    const auto router = std::find_if(block_.tensors.begin(), block_.tensors.end(),
                                     [](const Tensor& t) { return t.role == Role::router; });
    if (router == block_.tensors.end()) return 0;
    return std::max<std::int64_t>(0, router->out - expert.copies);
  }

  void linear(const Tensor& tensor) {
    if (tensor.name.ends_with(kDownProj) && !has_sub_norm(tensor)) activation(tensor);
    const Tensor* bias = find(tensor.name + ".bias");
    const LinearWork work{.out = tensor.out,
                          .in = tensor.in,
                          .format = tensor.format,
                          .bias = bias != nullptr,
                          .bias_format = bias != nullptr ? bias->format : Format{},
                          .stored_bytes = stored(tensor, bias),
                          .last_token_only = tensor.role == Role::lm_head};
    Work wrapped = work;
    if (tensor.role == Role::expert) {
      wrapped = ExpertWork{.each = work,
                           .total = tensor.copies,
                           .per_token = block_.experts_per_token,
                           .idle = idle_choices(tensor)};
    } else if (tensor.role == Role::router) {
      wrapped = RouterWork{.linear = work, .per_token = block_.experts_per_token};
    }
    // Linears side by side over the same input are one launch in every engine: q, k and v; gate and up; what
    // else reads the router's input. Experts wait for the router's choice.
    const bool joins =
        joins_ != nullptr && joins_->in == tensor.in && block_.kind != BlockKind::shapes &&
        (joins_->role == tensor.role || (joins_->role == Role::router && tensor.role == Role::linear));
    add(tensor.name, wrapped).joins_previous = joins;
    joins_ = &tensor;
    if (tensor.role == Role::expert && tensor.name.ends_with(kDownProj)) combine_experts();
  }

  void norm(const Tensor& weight) {
    constexpr std::string_view kSubNorm = "sub_norm";
    if (block_.kind != BlockKind::mixer && weight.name.ends_with(kSubNorm)) {
      const Tensor* down =
          find(weight.name.substr(0, weight.name.size() - kSubNorm.size()) + std::string(kDownProj));
      if (down != nullptr) activation(*down);
    }
    const Tensor* bias = find(weight.name + ".bias");
    const bool rms = weight.norm == NormKind::rms;
    add(weight.name,
        ElementwiseWork{
            .function = rms ? ElementwiseFunction::rms_norm : ElementwiseFunction::layer_norm,
            .width = weight.out,
            .rows_per_token = weight.rows,
            .weights = weight.out + (bias != nullptr ? bias->out : 0),
            .weight_format = weight.format,
            .stored_bytes = stored(weight, bias),
            .flops_per_element = rms ? kRmsNormFlops : kLayerNormFlops - (bias != nullptr ? 0 : 1),
            .last_token_only = block_.kind == BlockKind::head});
  }

  void residual(const std::string& name) {
    add(name,
        ElementwiseWork{.function = ElementwiseFunction::add, .width = model_.hidden_size, .inputs = 2});
  }

  void loose_parameters() {
    add("parameters", ElementwiseWork{.function = ElementwiseFunction::add,
                                      .width = model_.hidden_size,
                                      .inputs = 2,
                                      .stored_bytes = take_pending()});
  }

  // Of one copy, where a file's header says what it takes.
  static std::int64_t stored(const Tensor& weight, const Tensor* bias) {
    if (weight.stored_bytes < 0 && (bias == nullptr || bias->stored_bytes < 0)) return -1;
    return (weight.bytes() + (bias != nullptr ? bias->bytes() : 0)) / weight.copies;
  }

  std::int64_t take_pending() { return std::exchange(pending_bytes_, 0); }

  void state(const State& state) {
    std::visit([&](const auto& s) { use(s); }, state);
  }

  void use(const KvState& s) {
    if (s.rotary) {
      add("rotary", ElementwiseWork{.function = ElementwiseFunction::rotary,
                                    .width = s.d_k,
                                    .rows_per_token = s.heads + (s.shared ? 0 : s.kv_heads),
                                    .flops_per_element = kRotaryFlops});
    }
    add("attention", AttentionWork{.heads = s.heads,
                                   .kv_heads = s.kv_heads,
                                   .d_k = s.d_k,
                                   .d_v = s.d_v,
                                   .window = s.window,
                                   .kv = model_.kv,
                                   .chunk = s.chunk,
                                   .top_k = s.top_k,
                                   .shared = s.shared,
                                   .weight_bytes = take_pending()});
  }

  void use(const LatentState& s) {
    if (s.rope > 0) {
      add("rotary", ElementwiseWork{.function = ElementwiseFunction::rotary,
                                    .width = s.rope,
                                    .rows_per_token = s.heads + 1,
                                    .flops_per_element = kRotaryFlops});
    }
    add("attention", LatentWork{.state = s, .kv = model_.kv, .weight_bytes = take_pending()});
  }

  void use(const IndexerState& s) {
    add("indexer", IndexerWork{.state = s, .kv = model_.kv, .weight_bytes = take_pending()});
  }

  void use(const RecurrentState& s) {
    add(block_.name, RecurrentWork{.state = s, .weight_bytes = take_pending()});
  }

  static std::string prefix_of(const Tensor& down) {
    return down.name.substr(0, down.name.size() - kDownProj.size());
  }

  bool has_sub_norm(const Tensor& down) const { return find(prefix_of(down) + "sub_norm") != nullptr; }

  // Between up_proj and down_proj.
  void activation(const Tensor& down) {
    const std::string prefix = prefix_of(down);
    const std::int64_t flops = block_.activation == ActivationKind::relu ? kReluFlops : kActivationFlops;
    add(prefix + "activation",
        ElementwiseWork{.function = ElementwiseFunction::activate,
                        .width = down.in,
                        .rows_per_token = down.role == Role::expert ? block_.experts_per_token : 1,
                        .inputs = block_.gated ? 2 : 1,
                        .flops_per_element = flops + (block_.gated ? 1 : 0),
                        .activation = block_.activation});
  }

  void combine_experts() {
    const Tensor* down = find("experts.down_proj");
    add("experts.combine", ElementwiseWork{.function = ElementwiseFunction::combine,
                                           .width = down->out,
                                           .inputs = block_.experts_per_token,
                                           .flops_per_element = 2 * block_.experts_per_token});
  }

  const Model& model_;
  const Block& block_;
  std::vector<Op>& ops_;
  std::unordered_map<std::string_view, const Tensor*> tensors_;
  std::int64_t pending_bytes_ = 0;  // of parameters that the next state reads
  const Tensor* joins_ = nullptr;   // the linear just added; null after anything else
};

}  // namespace

std::vector<Op> lower(const Model& model) {
  std::vector<Op> ops;
  for (const Block& block : model.blocks) Lowering(model, block, ops).run();
  return ops;
}

}  // namespace memwall
