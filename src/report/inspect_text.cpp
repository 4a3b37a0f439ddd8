#include <fmt/format.h>

#include <algorithm>

#include "model/components.h"
#include "model/weight_assignment.h"
#include "report/rows.h"
#include "report/text.h"

namespace memwall {
namespace {

std::string thousands_of(std::int64_t value) { return thousands(static_cast<double>(value)); }
// What moves is told in GB, as bandwidth is, and what is held in GiB, as capacity is.
std::string bytes_of(std::int64_t value) { return human_bytes(static_cast<double>(value)); }
std::string held_of(std::int64_t value) { return human_binary(static_cast<double>(value)); }

std::string heading(const Model& model, const Style& style) {
  std::string rest = fmt::format("  {}, {} layers", model.architecture, model.layers);
  if (model.hidden_size > 0) rest += fmt::format(", hidden {}", model.hidden_size);
  if (model.vocab_size > 0) rest += fmt::format(", vocabulary {}", model.vocab_size);
  if (model.max_context > 0) rest += fmt::format(", context up to {}", model.max_context);
  if (model.approximate) rest += ", approximate";
  const std::string text = wrapped(model.title + rest);
  if (text.rfind(model.title, 0) != 0) return text + "\n";  // a title so long that it was broken
  return style.apply(Tone::bold, model.title) + text.substr(model.title.size()) + "\n";
}

std::string ops_table(const std::vector<Op>& ops, const Step& step, const Style& style) {
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
  return table.render(style) + "\n";
}

std::string components_table(const Model& model, const Style& style) {
  Table table({{"component", Align::left}, {"parameters"}, {"stored"}, {"read a token"}, {"share"}});
  const double read = static_cast<double>(read_bytes(model));
  for (const Component& c : components_of(model)) {
    table.row(
        {c.name, thousands_of(c.parameters), held_of(c.stored_bytes),
         c.read_bytes > 0 ? bytes_of(c.read_bytes) : "",
         c.read_bytes > 0 ? fmt::format("{:.1f} %", 100 * static_cast<double>(c.read_bytes) / read) : ""});
  }
  for (const Extra& extra : model.extras) {
    table.row({extra.what, extra.parameters > 0 ? thousands_of(extra.parameters) : "",
               extra.bytes > 0 ? held_of(extra.bytes) : "", "not run", ""});
  }
  return table.render(style) + "\n";
}

void published_row(const Model& model, Table& totals) {
  const std::int64_t difference = published_difference(model);
  std::string note = difference != 0            ? fmt::format("differs by {}", thousands_of(difference))
                     : model.published->rounded ? "equal, as far as it is rounded"
                                                : "equal";
  if (model.published->buffers > 0)
    note += fmt::format(", counting {} other values", thousands_of(model.published->buffers));
  totals.row({"  published",
              thousands_of(model.published->parameters),
              {note, difference == 0 ? Tone::good : Tone::bad}});
}

std::string totals_table(const Model& model, std::int64_t context, const Style& style) {
  const ParameterCount count = count_parameters(model);
  Table totals({{"a batch-1 decode step", Align::left}, {""}, {"", Align::left}});
  totals.row({"parameters", thousands_of(count.total), ""});
  if (model.published) published_row(model, totals);
  totals.row({"  in the embedding", thousands_of(count.embedding), "gathered by row, not read"});
  totals.row({"  read a token", thousands_of(count.active), ""});
  totals.row({"weights stored", held_of(stored_bytes(model)),
              fmt::format("{} (lm_head and embedding {})", stored_formats(model), format_name(model.head))});
  totals.row({"weights read a step", bytes_of(read_bytes(model)), ""});
  totals.row(
      {"KV cache a token", bytes_of(kv_bytes_per_token(model)), std::string(kv_format_name(model.kv))});
  totals.row(
      {fmt::format("KV cache at {} tokens", context), held_of(kv_cache_bytes(model, context)), "a sequence"});
  if (state_bytes(model) > 0)
    totals.row({"recurrent state", held_of(state_bytes(model)), "a sequence, of whatever length"});
  return totals.render(style);
}

}  // namespace

std::string inspect_text(const Model& model, const std::vector<Op>& ops, const Step& step,
                         const Style& style) {
  std::string text = heading(model, style) + ops_table(ops, step, style) + components_table(model, style) +
                     totals_table(model, step.workload.context, style);
  if (model.published && model.published->buffers > 0)
    text += wrapped(fmt::format("other values: {}", model.published->buffers_are));
  return text;
}

std::string inspect_pair_text(const Model& a, const Model& b, std::int64_t context, const Style& style) {
  Table table({{"", Align::left}, {a.name}, {b.name}, {"ratio"}});
  // What a model does not have, or does not say, is blank.
  const auto row = [&](const std::string& what, std::int64_t x, std::int64_t y, auto shown) {
    if (x == 0 && y == 0) return;
    const auto text = [&](std::int64_t value) { return value == 0 ? std::string() : shown(value); };
    const std::string ratio =
        x > 0 && y > 0 ? significant(static_cast<double>(y) / static_cast<double>(x), 4) : "";
    table.row({what, text(x), text(y), ratio});
  };
  const ParameterCount pa = count_parameters(a);
  const ParameterCount pb = count_parameters(b);
  row("parameters", pa.total, pb.total, thousands_of);
  row("  in the embedding", pa.embedding, pb.embedding, thousands_of);
  row("  read a token", pa.active, pb.active, thousands_of);
  row("layers", a.layers, b.layers, thousands_of);
  row("hidden size", a.hidden_size, b.hidden_size, thousands_of);
  row("vocabulary", a.vocab_size, b.vocab_size, thousands_of);
  table.row({"weights", stored_formats(a), stored_formats(b), ""});
  table.row({"KV format", std::string(kv_format_name(a.kv)), std::string(kv_format_name(b.kv)), ""});
  row("weights stored", stored_bytes(a), stored_bytes(b), held_of);
  row("weights read a step", read_bytes(a), read_bytes(b), bytes_of);
  row("KV cache a token", kv_bytes_per_token(a), kv_bytes_per_token(b), bytes_of);
  row(fmt::format("KV cache at {} tokens", context), kv_cache_bytes(a, context), kv_cache_bytes(b, context),
      held_of);
  row("recurrent state", state_bytes(a), state_bytes(b), held_of);
  table.rule();
  std::vector<Component> parts = components_of(a);
  const std::vector<Component> others = components_of(b);
  for (const Component& other : others) {
    const auto same = [&](const Component& c) { return c.name == other.name; };
    if (std::none_of(parts.begin(), parts.end(), same)) parts.push_back({.name = other.name});
  }
  for (const Component& part : parts) {
    const auto other =
        std::find_if(others.begin(), others.end(), [&](const Component& c) { return c.name == part.name; });
    row(part.name + ", read", part.read_bytes, other == others.end() ? 0 : other->read_bytes, bytes_of);
  }
  return table.render(style);
}

}  // namespace memwall
