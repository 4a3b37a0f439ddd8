#include "report/checkpoint_text.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <vector>

namespace memwall {
namespace {

// "model.layers.7.mlp.gate" as "model.layers.*.mlp.gate".
std::string without_numbers(const std::string& name) {
  std::string out;
  std::size_t start = 0;
  while (start <= name.size()) {
    const std::size_t end = std::min(name.find('.', start), name.size());
    const std::string part = name.substr(start, end - start);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    out += (start > 0 ? "." : "") + (number ? std::string("*") : part);
    start = end + 1;
  }
  return out;
}

// Rows of a table that somebody may still read; every checkpoint that was published has fewer.
constexpr std::size_t kMostRows = 5000;

std::string shape_of(const std::vector<std::int64_t>& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "×"));
}

}  // namespace

std::string tensors_text(const Checkpoint& checkpoint, const Style& style) {
  struct Sum {
    std::int64_t count = 0;
    std::int64_t parameters = 0;
    std::int64_t bytes = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Sum> sums;
  Sum all;
  for (const StoredTensor& tensor : checkpoint.tensors) {
    Sum& sum = sums[{without_numbers(tensor.name), shape_of(tensor.shape), tensor.type}];
    for (Sum* s : {&sum, &all}) {
      ++s->count;
      s->parameters += tensor.elements();
      s->bytes += tensor.bytes;
    }
  }
  Table table({{"tensor", Align::left}, {"count"}, {"shape"}, {"type", Align::left}, {"values"}, {"bytes"}});
  std::size_t rows = 0;
  Sum rest;
  for (const auto& [key, sum] : sums) {
    const auto& [name, shape, type] = key;
    if (++rows > kMostRows) {
      rest.count += sum.count;
      rest.parameters += sum.parameters;
      rest.bytes += sum.bytes;
      continue;
    }
    table.row({name, fmt::format("{}", sum.count), shape, type,
               thousands(static_cast<double>(sum.parameters)), human_bytes(static_cast<double>(sum.bytes))});
  }
  if (rest.count > 0) {
    table.row({fmt::format("{} further rows (--format csv lists all)",
                           thousands(static_cast<double>(rows - kMostRows))),
               fmt::format("{}", rest.count), "", "", thousands(static_cast<double>(rest.parameters)),
               human_bytes(static_cast<double>(rest.bytes))});
  }
  table.rule();
  table.row({"all", fmt::format("{}", all.count), "", "", thousands(static_cast<double>(all.parameters)),
             human_bytes(static_cast<double>(all.bytes))});
  return table.render(style);
}

Json tensor_figures(const StoredTensor& tensor) {
  return {{"name", tensor.name}, {"shape", tensor.shape}, {"type", tensor.type}, {"bytes", tensor.bytes}};
}

}  // namespace memwall
