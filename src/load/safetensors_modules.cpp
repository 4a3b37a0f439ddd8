#include "load/safetensors_modules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace memwall {
namespace {

// Tables whose rows the file decides: vocabularies are padded.
bool is_table(Role role) {
  return role == Role::embedding || role == Role::lm_head || role == Role::positions;
}

Fit fit_of_vector(const StoredModule& module, const Tensor& tensor) {
  const std::int64_t wanted = tensor.elements();
  const std::int64_t elements = elements_in(module, wanted, 0);
  if (elements == wanted) return Fit::exact;
  // A norm of every head's own.
  if (tensor.role == Role::norm && elements == checked_mul(wanted, tensor.rows)) return Fit::exact;
  return tensor.role == Role::parameter ? Fit::loose : Fit::none;
}

Fit fit_of_table(const StoredModule& module, const Tensor& tensor) {
  const std::vector<std::int64_t> shape = read_weight(module.weight(), {tensor.elements(), tensor.in}).shape;
  const std::int64_t elements = elements_in(module, tensor.elements(), tensor.in);
  if (tensor.in < 1 || elements % tensor.in != 0) return Fit::none;
  if (!shape.empty() && shape.back() != tensor.in) return Fit::none;
  return tensor.role == Role::positions || elements / tensor.in >= tensor.out ? Fit::exact : Fit::none;
}

}  // namespace

bool is_matrix(Role role) { return role != Role::norm && role != Role::bias && role != Role::parameter; }

std::int64_t StoredModule::count() const {
  std::int64_t count = 0;
  for (const Variant& variant : variants) count += variant.count;
  return count;
}

std::int64_t StoredModule::bytes() const {
  std::int64_t bytes = 0;
  for (const Variant& variant : variants) bytes = checked_add(bytes, variant.bytes);
  return bytes;
}

std::int64_t StoredModule::elements() const { return elements_in(*this, 0, 0); }

bool StoredModule::may_be(const std::string& name) const {
  return std::find(candidates->names.begin(), candidates->names.end(), name) != candidates->names.end();
}

void StoredModules::add(StoredPath path, const StoredWeight& weight) {
  std::string key = fmt::format("{}{}{}", path.path, weight.bias ? '=' : ':', path.ordinal);
  const auto [at, is_new] = index_.try_emplace(std::move(key), modules_.size());
  if (is_new)
    modules_.push_back({.path = std::move(path.path), .ordinal = path.ordinal, .bias = weight.bias});
  std::vector<StoredModule::Variant>& variants = modules_[at->second].variants;
  // Experts that differ are few kinds; a hostile file's thousands are not compared with each other.
  constexpr std::size_t kMostCompared = 8;
  const std::size_t compared = std::min(variants.size(), kMostCompared);
  for (std::size_t i = 0; i < compared; ++i) {
    if (!stored_alike(*variants[i].weight, weight)) continue;
    ++variants[i].count;
    variants[i].bytes = checked_add(variants[i].bytes, weight.bytes());
    return;
  }
  variants.push_back({.weight = &weight, .count = 1, .bytes = weight.bytes()});
}

std::int64_t elements_in(const StoredModule& module, std::int64_t elements, std::int64_t in) {
  const std::int64_t count = module.count();
  std::int64_t total = 0;
  for (const StoredModule::Variant& variant : module.variants) {
    const WeightReading reading = read_weight(*variant.weight, {elements / count, in});
    total = checked_add(total, checked_mul(reading.elements, variant.count));
  }
  return total;
}

Fit fit_of(const StoredModule& module, const Tensor& tensor) {
  if (!is_matrix(tensor.role)) return fit_of_vector(module, tensor);
  const std::int64_t count = module.count();
  if (count > 1 && tensor.copies > 1 && count != tensor.copies) return Fit::none;
  if (is_table(tensor.role)) return fit_of_table(module, tensor);
  const std::int64_t wanted = tensor.elements();
  if (elements_in(module, wanted, tensor.in) != wanted) return Fit::none;
  const WeightReading reading = read_weight(module.weight(), {wanted / count, tensor.in});
  if (reading.shape.empty()) return Fit::exact;
  const std::int64_t columns = reading.shape.back();
  // Of shared experts stored one by one, down_proj's columns stand side by side.
  if (columns == tensor.in || (tensor.copies == 1 && checked_mul(columns, count) == tensor.in))
    return Fit::exact;
  // Zamba's Mamba keeps one matrix for each of its heads.
  const bool by_head = reading.shape.size() == 3 && checked_mul(reading.shape.front(), columns) == tensor.in;
  return by_head || columns == tensor.out ? Fit::loose : Fit::none;
}

void store_as(Tensor& tensor, const StoredModule& module) {
  const std::int64_t wanted = tensor.elements();
  const bool matrix = is_matrix(tensor.role);
  const std::int64_t elements = elements_in(module, wanted, matrix ? tensor.in : 0);
  if (elements != wanted && is_table(tensor.role)) tensor.out = elements / tensor.in;
  if (elements != wanted && !matrix) {
    tensor.out = elements / tensor.copies;
    tensor.in = 1;
    tensor.rows = 1;
  }
  const auto most = std::max_element(
      module.variants.begin(), module.variants.end(),
      [](const StoredModule::Variant& a, const StoredModule::Variant& b) { return a.bytes < b.bytes; });
  tensor.format =
      read_weight(*most->weight, {tensor.elements() / module.count(), matrix ? tensor.in : 0}).format;
  tensor.stored_bytes = -1;
  const std::int64_t bytes = module.bytes();
  if (tensor.bytes() != bytes) tensor.stored_bytes = bytes;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string shape_text(const Tensor& tensor) {
  std::vector<std::int64_t> shape;
  if (tensor.copies > 1) shape.push_back(tensor.copies);
  shape.push_back(tensor.out);
  if (is_matrix(tensor.role)) shape.push_back(tensor.in);
  return shape_text(shape);
}

}  // namespace memwall
