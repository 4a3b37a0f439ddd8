// What a tensor's module may be called in a checkpoint. Families name the same part differently, and
// quantization_config goes by their names.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/model.h"

namespace memwall {

// The names of a block's tensors, a layer's own path ("model.layers.3.") left out.
struct BlockNames {
  std::vector<std::vector<std::string>> of_tensor;  // by index; empty for what is never quantised
  // Every run of a name's components, "mlp.experts" of "mlp.experts.0.up_proj", and whose it is; and those
  // that a name begins with.
  std::unordered_map<std::string, std::vector<std::uint32_t>> runs;
  std::unordered_map<std::string, std::vector<std::uint32_t>> beginnings;
};

class NameTable {
 public:
  // Of models of that model_type, which decides on what families call the same part.
  explicit NameTable(std::string type) : type_(std::move(type)) {}

  // Blocks whose tensors have the same names share an answer, which lives as long as the table.
  const BlockNames& of(const Block& block);

 private:
  std::string type_;
  std::map<std::string, std::unique_ptr<BlockNames>> known_;
};

// How paths begin in a model of a type: what may stand before the layers ("model.language_model."), the empty
// text included, and what the list of layers is called there.
struct PathRoots {
  std::vector<std::string> prefixes;
  std::vector<std::string> lists;
};

// Of that model_type; `nested`: its language model's configuration sits inside another.
PathRoots path_roots(const std::string& type, bool nested);
// All that a list of layers may be called: "layers", "h", "blocks".
const std::vector<std::string>& layer_lists();
// The path behind any such words: "layers.3.mlp" of "model.language_model.layers.3.mlp". What is left of a
// name that has none of them may stand anywhere in a path.
std::string_view without_prefix(std::string_view path);

}  // namespace memwall
