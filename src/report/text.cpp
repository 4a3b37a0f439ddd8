#include "report/text.h"

#include <fmt/format.h>

namespace memwall {

namespace {

struct ShapeText {
  std::string operator()(const LinearWork& w) const { return fmt::format("{}×{}", w.out, w.in); }
  std::string operator()(const RouterWork& w) const { return (*this)(w.linear); }
  std::string operator()(const ExpertWork& w) const {
    return fmt::format("{}×{} ×{}", w.each.out, w.each.in, w.total);
  }
  std::string operator()(const AttentionWork& w) const {
    const std::string window = w.window > 0 ? fmt::format(" w{}", w.window) : "";
    return fmt::format("{}/{}h×{}{}", w.heads, w.kv_heads, w.d_k, window);
  }
  std::string operator()(const ElementwiseWork& w) const {
    return w.rows_per_token == 1 ? fmt::format("{}", w.width)
                                 : fmt::format("{}×{}", w.rows_per_token, w.width);
  }
  std::string operator()(const EmbeddingWork& w) const { return fmt::format("{}×{}", w.rows, w.width); }
};

struct FormatText {
  std::string operator()(const LinearWork& w) const { return format_name(w.format); }
  std::string operator()(const RouterWork& w) const { return format_name(w.linear.format); }
  std::string operator()(const ExpertWork& w) const { return format_name(w.each.format); }
  std::string operator()(const AttentionWork& w) const { return std::string(kv_format_name(w.kv)); }
  std::string operator()(const ElementwiseWork& w) const {
    return w.weights > 0 ? format_name(w.weight_format) : "";
  }
  std::string operator()(const EmbeddingWork& w) const { return format_name(w.format); }
};

}  // namespace

std::string shape_text(const Op& op) { return std::visit(ShapeText{}, op.work); }

std::string format_text(const Op& op) { return std::visit(FormatText{}, op.work); }

Table::Cell bound_cell(Bound bound) {
  const Tone tone = bound == Bound::memory ? Tone::warn : bound == Bound::compute ? Tone::good : Tone::bad;
  return {std::string(bound_name(bound)), tone};
}

std::string inspect_text(const Model& model, const std::vector<Op>& ops, const Step& step,
                         const Style& style) {
  const ParameterCount count = count_parameters(model);
  std::string text =
      style.apply(Tone::bold, model.title) + fmt::format("  {}, {} layers", model.architecture, model.layers);
  if (model.hidden_size > 0) text += fmt::format(", hidden {}", model.hidden_size);
  if (model.vocab_size > 0) text += fmt::format(", vocabulary {}", model.vocab_size);
  if (model.max_context > 0) text += fmt::format(", context up to {}", model.max_context);
  text += "\n\n";

  Table table({{"op", Align::left},
               {"count"},
               {"shape"},
               {"format", Align::left},
               {"weights"},
               {"KV a token"},
               {"share"}});
  const double read = step.total.weight_bytes;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Cost& cost = step.costs[i];
    const bool weights = cost.weight_bytes > 0;
    table.row({ops[i].name, fmt::format("{}", ops[i].count()), shape_text(ops[i]), format_text(ops[i]),
               weights ? human_bytes(cost.weight_bytes) : "",
               cost.kv_write_bytes > 0 ? human_bytes(cost.kv_write_bytes) : "",
               weights && read > 0 ? fmt::format("{:.1f} %", 100 * cost.weight_bytes / read) : ""});
  }
  text += table.render(style) + "\n";

  Table totals({{"a batch-1 decode step", Align::left}, {""}, {"", Align::left}});
  totals.row({"parameters", thousands(static_cast<double>(count.total)), ""});
  if (model.published) {
    const std::int64_t difference = count.total + model.published->buffers - model.published->parameters;
    std::string note =
        difference == 0 ? "equal" : fmt::format("differs by {}", thousands(static_cast<double>(difference)));
    if (model.published->buffers > 0) {
      note += fmt::format(", counting {} buffer values",
                          thousands(static_cast<double>(model.published->buffers)));
    }
    totals.row({"  published",
                thousands(static_cast<double>(model.published->parameters)),
                {note, difference == 0 ? Tone::good : Tone::bad}});
  }
  totals.row(
      {"  in the embedding", thousands(static_cast<double>(count.embedding)), "gathered by row, not read"});
  totals.row({"  read a token", thousands(static_cast<double>(count.active)), ""});
  totals.row(
      {"weights stored", human_gib(static_cast<double>(stored_bytes(model))),
       fmt::format("{} (lm_head and embedding {})", format_name(model.weights), format_name(model.head))});
  totals.row({"weights read a step", human_bytes(static_cast<double>(read_bytes(model))), ""});
  totals.row({"KV cache a token", human_bytes(static_cast<double>(kv_bytes_per_token(model))),
              std::string(kv_format_name(model.kv))});
  const std::int64_t context = step.workload.context;
  totals.row({fmt::format("KV cache at {} tokens", context),
              human_bytes(static_cast<double>(kv_cache_bytes(model, context))), "a sequence"});
  text += totals.render(style);
  if (model.published && model.published->buffers > 0)
    text += fmt::format("buffers: {}\n", model.published->buffers_are);
  return text;
}

std::string models_text(const std::vector<Model>& models, const Style& style) {
  Table table({{"model", Align::left},
               {"parameters"},
               {"read a token"},
               {"layers"},
               {"weights", Align::left},
               {"stored"},
               {"KV a token"},
               {"context"}});
  for (const Model& model : models) {
    const ParameterCount count = count_parameters(model);
    table.row({model.name, thousands(static_cast<double>(count.total)),
               thousands(static_cast<double>(count.active)), fmt::format("{}", model.layers),
               format_name(model.weights), human_gib(static_cast<double>(stored_bytes(model))),
               human_bytes(static_cast<double>(kv_bytes_per_token(model))),
               model.max_context > 0 ? fmt::format("{}", model.max_context) : ""});
  }
  return table.render(style);
}

std::string cards_text(const std::vector<Card>& cards, const Style& style) {
  const auto types = {ComputeType::f32, ComputeType::f16, ComputeType::bf16, ComputeType::f8,
                      ComputeType::int8};
  std::vector<Table::Column> columns = {{"card", Align::left}, {"GB/s"}, {"GiB"}, {"L2 MiB"}};
  for (const ComputeType type : types) columns.push_back({std::string(compute_type_name(type))});
  Table peaks(columns);
  Table ridges(columns);
  for (const Card& card : cards) {
    std::vector<Table::Cell> cells = {card.name, significant(card.bandwidth_GBps, 4),
                                      significant(card.capacity_GiB, 3),
                                      card.l2_MiB > 0 ? significant(card.l2_MiB, 3) : ""};
    std::vector<Table::Cell> ridge_cells = cells;
    for (const ComputeType type : types) {
      const auto it = card.peaks.find(type);
      const bool has = it != card.peaks.end();
      cells.emplace_back(has ? significant(it->second.tflops, 4) : "");
      ridge_cells.emplace_back(has ? significant(it->second.tflops * 1e12 / card.bytes_per_s(), 3) : "");
    }
    peaks.row(std::move(cells));
    ridges.row(std::move(ridge_cells));
  }
  return style.apply(Tone::bold, "Dense peaks, TFLOP/s by operand type") + "\n\n" + peaks.render(style) +
         "\n" +
         style.apply(Tone::bold, "Ridge points, FLOP/byte: below it memory bounds, above it arithmetic") +
         "\n\n" + ridges.render(style);
}

}  // namespace memwall
