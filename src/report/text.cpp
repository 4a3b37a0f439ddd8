#include "report/text.h"

#include <fmt/format.h>

#include "model/weight_assignment.h"

namespace memwall {

namespace {

struct ShapeText {
  std::string operator()(const LinearWork& w) const { return fmt::format("{}×{}", w.out, w.in); }
  std::string operator()(const RouterWork& w) const { return (*this)(w.linear); }
  std::string operator()(const ExpertWork& w) const {
    return fmt::format("{}×{} ×{}", w.each.out, w.each.in, w.total);
  }
  std::string operator()(const AttentionWork& w) const {
    std::string reach;
    if (w.window > 0) reach = fmt::format(" w{}", w.window);
    if (w.chunk > 0) reach = fmt::format(" chunk {}", w.chunk);
    if (w.top_k > 0) reach += fmt::format(" top {}", w.top_k);
    return fmt::format("{}/{}h×{}{}", w.heads, w.kv_heads, w.d_k, reach);
  }
  std::string operator()(const LatentWork& w) const {
    std::string reach;
    if (w.state.window > 0) reach = fmt::format(" w{}", w.state.window);
    if (w.state.top_k > 0) reach += fmt::format(" top {}", w.state.top_k);
    return fmt::format("{}/1h×{}+{}{}", w.state.heads, w.state.rank, w.state.rope, reach);
  }
  std::string operator()(const IndexerWork& w) const {
    return fmt::format("{}/1h×{}", w.state.heads, w.state.width);
  }
  std::string operator()(const RecurrentWork& w) const {
    return w.state.conv_elements > 0 ? fmt::format("{}+{}", w.state.elements, w.state.conv_elements)
                                     : fmt::format("{}", w.state.elements);
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
  std::string operator()(const LatentWork& w) const { return std::string(kv_format_name(w.kv)); }
  std::string operator()(const IndexerWork& w) const { return std::string(kv_format_name(w.kv)); }
  std::string operator()(const RecurrentWork& w) const { return w.state.element_bytes == 4 ? "f32" : "bf16"; }
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
    table.row({model.name, human_count(static_cast<double>(count.total)),
               human_count(static_cast<double>(count.active)), fmt::format("{}", model.layers),
               stored_formats(model), human_gib(static_cast<double>(stored_bytes(model))),
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
                                      card.capacity_GiB > 0 ? significant(card.capacity_GiB, 3) : "",
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
