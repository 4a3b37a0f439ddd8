// The stored modules of one layer, and how they fit the tensors that the configuration makes.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "load/safetensors_names.h"
#include "load/safetensors_paths.h"
#include "load/safetensors_weights.h"
#include "model/model.h"

namespace memwall {

// A weight, or the same weight of every expert.
struct StoredModule {
  // Of those stored alike.
  struct Variant {
    const StoredWeight* weight = nullptr;  // the first
    std::int64_t count = 0;
    std::int64_t bytes = 0;
  };

  std::string path;
  std::int32_t ordinal = -1;
  bool bias = false;
  std::vector<Variant> variants{};
  const Candidates* candidates = nullptr;
  bool used = false;

  const StoredWeight& weight() const { return *variants.front().weight; }
  std::int64_t count() const;
  std::int64_t bytes() const;
  std::int64_t elements() const;  // as read without a hint
  bool may_be(const std::string& name) const;
};

class StoredModules {
 public:
  void add(StoredPath path, const StoredWeight& weight);

  bool empty() const { return modules_.empty(); }
  std::vector<StoredModule>& all() { return modules_; }

 private:
  std::vector<StoredModule> modules_;
  std::unordered_map<std::string, std::size_t> index_;
};

// How a module fits a tensor.
enum class Fit : std::uint8_t {
  none,
  loose,  // rows and columns exchanged, as GPT-2 stores them; or a small parameter of another size
  exact,
};
Fit fit_of(const StoredModule& module, const Tensor& tensor);

// All its values in a tensor of rows of `in`; `elements`: how many are expected, 0 where that is not known.
std::int64_t elements_in(const StoredModule& module, std::int64_t elements, std::int64_t in);

// Stores the tensor as the module does: format, bytes, and the rows of a vocabulary. They must fit.
void store_as(Tensor& tensor, const StoredModule& module);

bool is_matrix(Role role);

// "[4096, 1024]".
std::string shape_text(const std::vector<std::int64_t>& shape);
std::string shape_text(const Tensor& tensor);

}  // namespace memwall
