// A GGUF file's tensors on their way into a model's blocks: each is taken once, and what nobody took is
// known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "checkpoint/stored_tensor.h"
#include "load/gguf_source.h"
#include "model/model.h"

namespace memwall {

// The tensors of one layer, or those outside the layers.
class GgufTensors {
 public:
  explicit GgufTensors(const GgufSource& source, std::int32_t layer = -1) : source_(&source), layer_(layer) {}

  const GgufSource& source() const { return *source_; }
  std::int32_t layer() const { return layer_; }

  // `name` is what stands behind "blk.N.".
  void put(const std::string& name, const StoredTensor& tensor) { tensors_[name] = &tensor; }
  bool empty() const { return tensors_.empty(); }
  bool has_any(const std::string& prefix) const;
  const StoredTensor* find(const std::string& name) const;
  const StoredTensor* take(const std::string& name);

  // A weight is STEM.weight, or STEM itself: some have no suffix.
  const StoredTensor* weight(const std::string& stem) const;
  const StoredTensor* take_weight(const std::string& stem);
  bool has(const std::string& stem) const { return weight(stem) != nullptr; }

  const std::map<std::string, const StoredTensor*>& rest() const { return tensors_; }

  // Throws the InputError that the tensor is missing.
  const StoredTensor& need(const std::string& stem) const;
  // Throws InputError where the weight, if there is one, has another number of rows or columns than the
  // metadata make; `reason` says how.
  void expect_rows(const std::string& stem, std::int64_t rows, const std::string& reason) const;
  void expect_columns(const std::string& stem, std::int64_t columns, const std::string& reason) const;

 private:
  const GgufSource* source_;
  std::int32_t layer_;
  std::map<std::string, const StoredTensor*> tensors_;
};

// Of a matrix; a stack of matrices counts the rows of all, and a vector is one row.
std::int64_t rows_of(const StoredTensor& tensor);
std::int64_t columns_of(const StoredTensor& tensor);

// Takes a layer's tensors into a block, in the order of the calls. Each call does nothing where the file has
// no such tensor; and takes its bias and its scales along.
class GgufBlock {
 public:
  GgufBlock(GgufTensors& tensors, Block block) : tensors_(tensors), block_(std::move(block)) {}

  void linear(const std::string& stem, const std::string& name, Role role = Role::linear);
  // `width`: elements a token that the norm is applied to, where it is one of shorter vectors.
  void norm(const std::string& stem, const std::string& name, std::int64_t width = 0);
  // A bias that is stored under a name of its own.
  void bias_of(const std::string& stem, const std::string& owner);
  // Whatever it holds, read by what comes next.
  void parameter(const std::string& stem, const std::string& name);
  // Of many that are not understood: all in one parameter, "others".
  void others(const std::string& name);
  // One matrix for each of `experts`.
  void experts(const std::string& stem, const std::string& name, std::int64_t experts);
  // The same from the files of old: one tensor an expert, STEM.N.weight.
  void separate_experts(const std::string& stem, const std::string& name, std::int64_t experts);

  void place(State state) { block_.place(std::move(state)); }
  // What is taken from here on is stored, but not read by a decode step; or is read again.
  void set_read(Read read) { read_ = read; }
  bool empty() const { return block_.tensors.empty() && block_.states.empty(); }
  Block& block() { return block_; }

 private:
  void add(Tensor tensor, std::int64_t stored);
  void bias(const std::string& stem, const std::string& name, const Tensor& owner);
  std::int64_t scales(const std::string& stem, const std::string& name, std::int64_t copies);

  GgufTensors& tensors_;
  Block block_;
  std::unordered_set<std::string> names_;  // of the block's tensors
  Read read_ = Read::always;
  bool has_others_ = false;
};

// The weight format of a stored tensor: its own, or the one nearest to a type that has none.
Format nearest_format(const StoredTensor& tensor);

}  // namespace memwall
