// Layers that are the same become one list of blocks with the indices of all.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/model.h"

namespace memwall {

class LayerJoiner {
 public:
  // A layer's blocks in the order they run; their own list of layers must be empty.
  void add(std::int32_t index, std::vector<Block> layer);

  // Appends them all, in the order in which each kind of layer first came.
  void finish(std::vector<Block>& blocks);

 private:
  struct Group {
    std::vector<Block> layer;
    std::vector<std::int32_t> indices;
  };
  std::vector<Group> groups_;
  std::unordered_multimap<std::size_t, std::size_t> by_hash_;
};

}  // namespace memwall
