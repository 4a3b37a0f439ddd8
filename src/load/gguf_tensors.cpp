#include "load/gguf_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "checkpoint/gguf_bytes.h"
#include "format/checked.h"

namespace memwall {
namespace {

struct Nearest {
  const char* type;
  FormatKind kind;
};

// Types that are no weight format: what computes most like them. Their bytes are the file's anyway.
constexpr std::array kNearest = {
    Nearest{"NVFP4", FormatKind::nvfp4}, Nearest{"Q8_1", FormatKind::q8_0},
    Nearest{"Q8_K", FormatKind::q8_0},   Nearest{"Q2_0", FormatKind::q2_k},
    Nearest{"Q1_0", FormatKind::iq1_s},  Nearest{"I8", FormatKind::q8_0},
    Nearest{"I16", FormatKind::f16},     Nearest{"F64", FormatKind::f32},
    Nearest{"I32", FormatKind::f32},     Nearest{"I64", FormatKind::f32},
};

// By the bits that a value takes: a fork's types, and those that no table knows.
FormatKind nearest_by_bits(const StoredTensor& tensor) {
  struct Step {
    double most_bits;
    FormatKind kind;
  };
  constexpr std::array kSteps = {
      Step{1.9, FormatKind::iq1_s},    Step{2.25, FormatKind::iq2_xxs}, Step{2.9, FormatKind::q2_k},
      Step{3.25, FormatKind::iq3_xxs}, Step{3.9, FormatKind::q3_k},     Step{4.4, FormatKind::iq4_xs},
      Step{5.0, FormatKind::q4_k},     Step{6.0, FormatKind::q5_k},     Step{7.5, FormatKind::q6_k},
      Step{12.0, FormatKind::q8_0},    Step{24.0, FormatKind::f16},
  };
  const double bits = 8.0 * static_cast<double>(tensor.bytes) / static_cast<double>(tensor.elements());
  const auto* found =
      std::find_if(kSteps.begin(), kSteps.end(), [&](const Step& step) { return bits <= step.most_bits; });
  return found != kSteps.end() ? found->kind : FormatKind::f32;
}

Tensor vector_tensor(const StoredTensor& stored, const std::string& name, Role role) {
  return {.name = name, .role = role, .out = stored.elements(), .format = nearest_format(stored)};
}

}  // namespace

Format nearest_format(const StoredTensor& tensor) {
  if (tensor.format) return *tensor.format;
  const auto found =
      std::find_if(kNearest.begin(), kNearest.end(), [&](const Nearest& n) { return tensor.type == n.type; });
  return {found != kNearest.end() ? found->kind : nearest_by_bits(tensor), 0, false};
}

std::int64_t columns_of(const StoredTensor& tensor) { return tensor.shape.back(); }
std::int64_t rows_of(const StoredTensor& tensor) { return tensor.elements() / columns_of(tensor); }

bool GgufTensors::has_any(const std::string& prefix) const {
  const auto found = tensors_.lower_bound(prefix);
  return found != tensors_.end() && found->first.compare(0, prefix.size(), prefix) == 0;
}

const StoredTensor* GgufTensors::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

const StoredTensor* GgufTensors::take(const std::string& name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return nullptr;
  const StoredTensor* tensor = found->second;
  tensors_.erase(found);
  return tensor;
}

const StoredTensor* GgufTensors::weight(const std::string& stem) const {
  const StoredTensor* tensor = find(stem + ".weight");
  return tensor != nullptr ? tensor : find(stem);
}

const StoredTensor* GgufTensors::take_weight(const std::string& stem) {
  const StoredTensor* tensor = take(stem + ".weight");
  return tensor != nullptr ? tensor : take(stem);
}

const StoredTensor& GgufTensors::need(const std::string& stem) const {
  const StoredTensor* tensor = weight(stem);
  if (tensor != nullptr) return *tensor;
  source_->fail(layer_ < 0 ? fmt::format("the tensor '{}.weight' is missing", stem)
                           : fmt::format("the tensor 'blk.{}.{}.weight' is missing", layer_, stem));
}

void GgufTensors::expect_rows(const std::string& stem, std::int64_t rows, const std::string& reason) const {
  const StoredTensor* tensor = weight(stem);
  if (tensor == nullptr || rows_of(*tensor) == rows) return;
  source_->fail(fmt::format("tensor '{}' has {} rows, but {} make {}", excerpt(tensor->name),
                            rows_of(*tensor), reason, rows));
}

void GgufTensors::expect_columns(const std::string& stem, std::int64_t columns,
                                 const std::string& reason) const {
  const StoredTensor* tensor = weight(stem);
  if (tensor == nullptr || columns_of(*tensor) == columns) return;
  source_->fail(fmt::format("tensor '{}' has rows of {} elements, but {} make {}", excerpt(tensor->name),
                            columns_of(*tensor), reason, columns));
}

// `stored`: bytes of the tensor and its scales in the file.
void GgufBlock::add(Tensor tensor, std::int64_t stored) {
  while (!names_.insert(tensor.name).second) tensor.name += "_2";
  if (read_ != Read::always) tensor.read = read_;
  if (tensor.bytes() != stored) tensor.stored_bytes = stored;
  block_.tensors.push_back(std::move(tensor));
}

// NVFP4 and BitNet keep a tensor's outer scale beside it; so are experts weighted in Gemma 4. What is larger
// is a vector of its own. Returns the bytes of the small ones.
std::int64_t GgufBlock::scales(const std::string& stem, const std::string& name, std::int64_t copies) {
  std::int64_t bytes = 0;
  for (const char* suffix : {".scale", ".input_scale"}) {
    const StoredTensor* scale = tensors_.take(stem + suffix);
    if (scale == nullptr) continue;
    if (scale->elements() <= copies) {
      bytes = checked_add(bytes, scale->bytes);
    } else {
      add(vector_tensor(*scale, name + suffix, Role::parameter), scale->bytes);
    }
  }
  return bytes;
}

void GgufBlock::bias(const std::string& stem, const std::string& name, const Tensor& owner) {
  const StoredTensor* stored = tensors_.take(stem + ".bias");
  if (stored == nullptr) return;
  Tensor tensor = vector_tensor(*stored, name + ".bias", Role::bias);
  tensor.copies = owner.copies;
  tensor.out /= owner.copies;
  tensor.read = owner.read;
  if (checked_mul(owner.out, owner.copies) != stored->elements()) {
    tensors_.source().fail(fmt::format("tensor '{}' has {} elements, but its weight has {} rows",
                                       excerpt(stored->name), stored->elements(),
                                       checked_mul(owner.out, owner.copies)));
  }
  add(tensor, stored->bytes);
}

void GgufBlock::linear(const std::string& stem, const std::string& name, Role role) {
  const StoredTensor* stored = tensors_.take_weight(stem);
  if (stored == nullptr) return parameter(stem, name);  // a bias that stands alone
  const std::int64_t scale_bytes = scales(stem, name, 1);
  const Tensor tensor{.name = name,
                      .role = role,
                      .out = rows_of(*stored),
                      .in = columns_of(*stored),
                      .format = nearest_format(*stored)};
  add(tensor, checked_add(stored->bytes, scale_bytes));
  bias(stem, name, tensor);
}

void GgufBlock::norm(const std::string& stem, const std::string& name, std::int64_t width) {
  const StoredTensor* stored = tensors_.take_weight(stem);
  if (stored == nullptr) return parameter(stem, name);
  Tensor tensor = vector_tensor(*stored, name, Role::norm);
  if (width > 0 && width % tensor.out == 0) tensor.rows = width / tensor.out;
  tensor.norm = tensors_.source().norm();
  if (tensors_.find(stem + ".bias") != nullptr) {
    tensor.norm = NormKind::layer;
  } else if (tensor.norm == NormKind::layer) {
    tensor.norm = NormKind::layer_no_bias;
  }
  add(tensor, stored->bytes);
  bias(stem, name, tensor);
}

void GgufBlock::bias_of(const std::string& stem, const std::string& owner) {
  const Tensor* weight = block_.find(owner);
  if (weight == nullptr || block_.find(owner + ".bias") != nullptr ||
      tensors_.find(stem + ".bias") == nullptr)
    return parameter(stem, owner + "." + stem);
  bias(stem, owner, Tensor(*weight));  // a copy: the block's tensors move
}

void GgufBlock::parameter(const std::string& stem, const std::string& name) {
  if (const StoredTensor* stored = tensors_.take_weight(stem))
    add(vector_tensor(*stored, name, Role::parameter), stored->bytes);
  if (const StoredTensor* stored = tensors_.take(stem + ".bias"))
    add(vector_tensor(*stored, name + "_bias", Role::parameter), stored->bytes);
}

void GgufBlock::others(const std::string& name) {
  const StoredTensor& stored = *tensors_.take(name);
  if (!has_others_) {
    add({.name = "others", .role = Role::parameter, .format = {}}, 0);
    has_others_ = true;
  }
  Tensor& others = block_.tensors.back();
  others.out = checked_add(others.out, stored.elements());
  others.stored_bytes = checked_add(std::max<std::int64_t>(others.stored_bytes, 0), stored.bytes);
}

void GgufBlock::experts(const std::string& stem, const std::string& name, std::int64_t experts) {
  const StoredTensor* stored = tensors_.take_weight(stem);
  if (stored == nullptr) return;
  if (stored->shape.size() != 3 || stored->shape.front() != experts) {
    tensors_.source().fail(
        fmt::format("tensor '{}' must hold a matrix for each of {} experts; its shape is {}",
                    excerpt(stored->name), experts, fmt::join(stored->shape, " x ")));
  }
  const std::int64_t scale_bytes = scales(stem, name, experts);
  const Tensor tensor{.name = name,
                      .role = Role::expert,
                      .out = stored->shape[1],
                      .in = stored->shape[2],
                      .copies = experts,
                      .format = nearest_format(*stored),
                      .read = Read::per_expert};
  add(tensor, checked_add(stored->bytes, scale_bytes));
  bias(stem, name, tensor);
}

void GgufBlock::separate_experts(const std::string& stem, const std::string& name, std::int64_t experts) {
  const StoredTensor* first = tensors_.weight(stem + ".0");
  if (first == nullptr) return;
  std::int64_t bytes = 0;
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    const std::string numbered = fmt::format("{}.{}", stem, expert);
    const StoredTensor& stored = tensors_.need(numbered);
    if (stored.shape != first->shape) {
      tensors_.source().fail(
          fmt::format("tensor '{}' has another shape than '{}'", excerpt(stored.name), excerpt(first->name)));
    }
    bytes = checked_add(bytes, stored.bytes);
    tensors_.take_weight(numbered);
  }
  const Tensor tensor{.name = name,
                      .role = Role::expert,
                      .out = rows_of(*first),
                      .in = columns_of(*first),
                      .copies = experts,
                      .format = nearest_format(*first),
                      .read = Read::per_expert};
  add(tensor, bytes);
}

}  // namespace memwall
