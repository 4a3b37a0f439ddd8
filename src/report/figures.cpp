#include "report/figures.h"

#include <algorithm>

#include "format/units.h"
#include "model/components.h"

namespace memwall {
namespace {

struct ShapeFigures {
  Json& json;
  const Cost& cost;

  void linear(const LinearWork& w) const {
    json["out"] = w.out;
    json["in"] = w.in;
    json["format"] = format_name(w.format);
  }
  void operator()(const LinearWork& w) const { linear(w); }
  void operator()(const RouterWork& w) const { linear(w.linear); }
  void operator()(const ExpertWork& w) const {
    linear(w.each);
    json["experts"] = {
        {"total", w.total}, {"per_token", w.per_token}, {"touched", number(cost.experts_touched)}};
  }
  void operator()(const AttentionWork& w) const {
    json["out"] = w.heads * w.d_v;
    json["in"] = w.heads * w.d_k;
    json["format"] = std::string(kv_format_name(w.kv));
    json["heads"] = w.heads;
    json["kv_heads"] = w.kv_heads;
    if (w.window > 0) json["window"] = w.window;
    if (w.chunk > 0) json["chunk"] = w.chunk;
    if (w.top_k > 0) json["top_k"] = w.top_k;
  }
  void operator()(const LatentWork& w) const {
    json["out"] = w.state.heads * w.state.rank;
    json["in"] = w.state.heads * (w.state.rank + w.state.rope);
    json["format"] = std::string(kv_format_name(w.kv));
    json["heads"] = w.state.heads;
    json["kv_heads"] = 1;
    if (w.state.window > 0) json["window"] = w.state.window;
    if (w.state.top_k > 0) json["top_k"] = w.state.top_k;
  }
  void operator()(const IndexerWork& w) const {
    json["out"] = w.state.heads;
    json["in"] = w.state.heads * w.state.width;
    json["format"] = std::string(kv_format_name(w.kv));
    json["heads"] = w.state.heads;
    json["kv_heads"] = 1;
  }
  void operator()(const RecurrentWork& w) const {
    json["out"] = w.state.elements;
    json["in"] = w.state.elements;
    json["format"] = w.state.element_bytes == 4 ? "f32" : "bf16";
  }
  void operator()(const ElementwiseWork& w) const {
    json["out"] = w.rows_per_token * w.width;
    json["in"] = w.rows_per_token * w.width;
    json["format"] = w.weights > 0 ? Json(format_name(w.weight_format)) : Json(nullptr);
  }
  void operator()(const EmbeddingWork& w) const {
    json["out"] = w.rows;
    json["in"] = w.width;
    json["format"] = format_name(w.format);
  }
};

}  // namespace

Json model_figures(const Model& model) {
  const ParameterCount count = count_parameters(model);
  Json json;
  json["name"] = model.name;
  json["title"] = model.title;
  json["architecture"] = model.architecture;
  json["source"] = model.source;
  json["layers"] = model.layers;
  json["hidden_size"] = model.hidden_size > 0 ? Json(model.hidden_size) : Json(nullptr);
  json["vocab_size"] = model.vocab_size > 0 ? Json(model.vocab_size) : Json(nullptr);
  json["max_context"] = model.max_context > 0 ? Json(model.max_context) : Json(nullptr);
  json["weights"] = format_name(model.weights);
  json["head_weights"] = format_name(model.head);
  json["kv"] = std::string(kv_format_name(model.kv));
  json["parameters"] = {{"total", count.total}, {"embedding", count.embedding}, {"active", count.active}};
  if (model.published) {
    json["parameters"]["published"] = model.published->parameters;
    json["parameters"]["published_source"] = model.published->source;
    json["parameters"]["published_difference"] = published_difference(model);
    if (model.published->buffers > 0) {
      json["parameters"]["buffers"] = model.published->buffers;
      json["parameters"]["buffers_are"] = model.published->buffers_are;
    }
  }
  json["bytes"] = {{"weights_total", stored_bytes(model)},
                   {"weights_read", read_bytes(model)},
                   {"kv_per_token", kv_bytes_per_token(model)},
                   {"state", state_bytes(model)}};
  for (const Component& c : components_of(model)) {
    json["components"].push_back({{"name", c.name},
                                  {"parameters", c.parameters},
                                  {"stored_bytes", c.stored_bytes},
                                  {"read_bytes", c.read_bytes}});
  }
  for (const Extra& extra : model.extras) {
    json["extras"].push_back({{"what", extra.what},
                              {"tensors", extra.tensors > 0 ? Json(extra.tensors) : Json(nullptr)},
                              {"parameters", extra.parameters > 0 ? Json(extra.parameters) : Json(nullptr)},
                              {"bytes", extra.bytes > 0 ? Json(extra.bytes) : Json(nullptr)}});
  }
  if (model.approximate) json["approximate"] = true;
  return json;
}

Json op_figures(const Op& op, const Cost& cost, const OpPrediction* prediction) {
  Json json;
  json["name"] = op.name;
  json["kind"] = std::string(op_kind_name(op.kind()));
  json["layers"] = op.layers;
  json["count"] = op.count();
  std::visit(ShapeFigures{json, cost}, op.work);
  json["bytes"] = number(cost.bytes());
  json["weight_bytes"] = number(cost.weight_bytes);
  json["kv_bytes"] = number(cost.kv_bytes());
  json["state_bytes"] = number(cost.state_bytes);
  json["activation_bytes"] = number(cost.activation_bytes);
  json["flops"] = number(cost.flops);
  json["intensity"] = number(cost.intensity());
  json["fusible"] = op.fusible;
  if (prediction != nullptr) {
    json["bound"] = std::string(bound_name(prediction->bound));
    json["peak"] = std::string(compute_type_name(prediction->peak.type));
    json["ceiling_us"] = number(prediction->ceiling_s * 1e6);
    json["expected_us"] = number(prediction->expected_s * 1e6);
  }
  return json;
}

Json speed_figures(const Speed& speed) {
  return {{"ms_per_step", number(speed.ms_per_step)},
          {"tokens_per_s", number(speed.tokens_per_s)},
          {"tokens_per_s_per_user", number(speed.tokens_per_s_per_user)},
          {"bound", std::string(bound_name(speed.bound))}};
}

Json byte_figures(const Cost& total) {
  return {{"weights", number(total.weight_bytes)},  {"kv", number(total.kv_bytes())},
          {"kv_read", number(total.kv_read_bytes)}, {"kv_write", number(total.kv_write_bytes)},
          {"state", number(total.state_bytes)},     {"activations", number(total.activation_bytes)},
          {"total", number(total.bytes())}};
}

Json ops_figures(const Step& step, const Prediction* prediction) {
  Json ops = Json::array();
  for (std::size_t i = 0; i < step.ops->size(); ++i) {
    ops.push_back(
        op_figures((*step.ops)[i], step.costs[i], prediction != nullptr ? &prediction->ops[i] : nullptr));
  }
  return ops;
}

Json estimate_figures(const Estimate& e, bool with_ops) {
  Json json;
  json["card"] = e.card->name;
  json["model"] = e.model->name;
  json["batch"] = e.step.workload.batch;
  json["context"] = e.step.workload.context;
  json["weights"] = format_name(e.model->weights);
  json["head_weights"] = format_name(e.model->head);
  json["kv"] = std::string(kv_format_name(e.model->kv));
  json["tensor_parallel"] = 1;
  if (e.model->approximate) json["approximate"] = true;
  json["bytes"] = byte_figures(e.step.total);
  json["flops"] = number(e.step.total.flops);
  json["intensity"] = number(e.prediction.intensity);
  json["ridge"] = number(e.prediction.ridge);
  json["peak"] = std::string(compute_type_name(e.prediction.peak.type));
  json["ceiling"] = speed_figures(e.prediction.ceiling);
  Json expected = speed_figures(e.prediction.expected);
  expected["low_tokens_per_s"] = number(e.prediction.expected.low_tokens_per_s);
  expected["high_tokens_per_s"] = number(e.prediction.expected.high_tokens_per_s);
  expected["provisional"] = e.card->achievable.provisional;
  json["expected"] = std::move(expected);
  json["memory"] = {{"required_GiB", number(e.memory.required_bytes / kGiB)},
                    {"capacity_GiB", number(e.memory.capacity_bytes / kGiB)},
                    {"fits", e.memory.fits()}};
  const bool has_experts = std::any_of(e.step.ops->begin(), e.step.ops->end(),
                                       [](const Op& op) { return op.kind() == OpKind::expert; });
  if (has_experts) json["routing"] = "even, independent";
  if (e.prediction.weights_fit_cache) json["weights_fit_cache"] = true;
  if (e.prefill) {
    const double tokens = static_cast<double>(e.prefill_step->workload.rows());
    const double seconds = e.prefill->expected.ms_per_step / 1e3;
    json["prefill"] = {{"prompt", e.prefill_step->workload.context},
                       {"ttft_ms", number(e.prefill->expected.ms_per_step)},
                       {"tokens_per_s", number(tokens / seconds)},
                       {"ceiling_ttft_ms", number(e.prefill->ceiling.ms_per_step)},
                       {"flops", number(e.prefill_step->total.flops)},
                       {"bound", std::string(bound_name(e.prefill->expected.bound))}};
  }
  if (with_ops) json["ops"] = ops_figures(e.step, &e.prediction);
  return json;
}

Json card_figures(const Card& card) {
  Json json;
  json["name"] = card.name;
  json["title"] = card.title;
  json["aliases"] = card.aliases;
  json["vendor"] = card.vendor;
  json["architecture"] = card.architecture;
  json["bandwidth_GBps"] = number(card.bandwidth_GBps);
  json["capacity_GiB"] = number(card.capacity_GiB);
  json["l2_MiB"] = card.l2_MiB > 0 ? number(card.l2_MiB) : Json(nullptr);
  if (card.interconnect) {
    json["interconnect"] = {{"name", card.interconnect->name}, {"GBps", number(card.interconnect->GBps)}};
  }
  Json peaks = Json::object();
  Json ridges = Json::object();
  for (const auto& [type, figure] : card.peaks) {
    const std::string name(compute_type_name(type));
    peaks[name] = number(figure.tflops);
    ridges[name] = number(figure.tflops * 1e12 / card.bytes_per_s());
  }
  json["peaks_TFLOPs"] = std::move(peaks);
  json["ridge"] = std::move(ridges);
  json["achievable"] = {{"class", card.achievable.class_name},
                        {"provisional", card.achievable.provisional},
                        {"bandwidth_share", number(card.achievable.bandwidth_share)},
                        {"compute_share", number(card.achievable.compute_share)},
                        {"kernel_us", number(card.achievable.kernel_us)},
                        {"spread", number(card.achievable.spread)}};
  return json;
}

}  // namespace memwall
