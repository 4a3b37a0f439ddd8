#include "load/safetensors_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "format/checked.h"
#include "input/error.h"
#include "load/safetensors_binder.h"
#include "load/safetensors_outside.h"
#include "model/join_layers.h"

namespace memwall {
namespace {

class CheckpointModel {
 public:
  CheckpointModel(Model model, const Checkpoint& checkpoint)
      : model_(std::move(model)), checkpoint_(checkpoint), weights_(stored_weights(checkpoint)) {}

  Model run() {
    sort_weights();
    std::vector<Block> blocks;
    bind_layers(blocks);
    bind_ends(blocks);
    model_.blocks = std::move(blocks);
    notes_.finish(model_);
    name_formats();
    check_sum();
    return std::move(model_);
  }

 private:
  void sort_weights() {
    layers_.resize(static_cast<std::size_t>(model_.layers));
    const std::vector<std::int32_t> adapted = layers_with_adapters();
    for (const StoredWeight& weight : weights_) {
      StoredPath path = stored_path(weight.module);
      if (!adapted.empty()) move_adapter(path, adapted);
      if (path.region == Region::layer && path.layer >= model_.layers)
        path.region = announces_next_token() ? Region::next_token : Region::beyond;
      if (path.region == Region::layer) {
        layers_[static_cast<std::size_t>(path.layer)].add(std::move(path), weight);
      } else if (path.region == Region::outside) {
        outside_.add(std::move(path), weight);
      } else {
        notes_.add_extra(path.region, weight);
      }
    }
    for (StoredModules& layer : layers_) name_candidates(layer, false);
    name_candidates(outside_, true);
  }

  // Zamba 2 stores the adapters of all uses of a shared block with the first: "_adapter_list.3.0" is the
  // fourth's.
  std::vector<std::int32_t> layers_with_adapters() const {
    std::vector<std::int32_t> layers;
    for (const Block& block : model_.blocks) {
      if (block.find("gate_up_proj_adapter.0") != nullptr)
        layers.insert(layers.end(), block.layers.begin(), block.layers.end());
    }
    std::sort(layers.begin(), layers.end());
    return layers;
  }

  static void move_adapter(StoredPath& path, const std::vector<std::int32_t>& layers) {
    constexpr std::string_view kList = "_adapter_list.";
    const std::size_t at = path.path.find(kList);
    if (at == std::string::npos) return;
    const std::size_t number = at + kList.size();
    std::size_t use = 0;
    const auto [end, error] =
        std::from_chars(path.path.data() + number, path.path.data() + path.path.size(), use);
    if (error != std::errc{} || use >= layers.size()) return;
    path.layer = layers[use];
    path.path.replace(at, static_cast<std::size_t>(end - path.path.data()) - at, "_adapter");
  }

  bool announces_next_token() const {
    return std::any_of(model_.extras.begin(), model_.extras.end(), [](const Extra& extra) {
      return extra.what.find("multi-token") != std::string::npos;
    });
  }

  void name_candidates(StoredModules& modules, bool outside) {
    for (StoredModule& module : modules.all()) module.candidates = &candidates_.of(module.path, outside);
  }

  void bind_layers(std::vector<Block>& blocks) {
    // What each layer runs, in order.
    std::vector<std::vector<const Block*>> runs(layers_.size());
    for (const Block& block : model_.blocks) {
      for (const std::int32_t layer : block.layers) runs[static_cast<std::size_t>(layer)].push_back(&block);
    }
    LayerJoiner joiner;
    std::vector<Block> layer;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      layer.clear();
      for (const Block* block : runs[i]) layer.push_back(*block);
      Binder binder(checkpoint_.path, fmt::format("layer {}", i), layer, layers_[i], notes_);
      binder.by_name();
      binder.fuse();
      binder.by_shape();
      binder.biases();
      binder.belongings();
      binder.missing();
      std::vector<Block> bound = binder.finish();
      for (Block& block : bound) store_as_earlier(block);
      joiner.add(static_cast<std::int32_t>(i), std::move(bound));
    }
    joiner.finish(blocks);
  }

  // A shared block's later uses read what the first one stores.
  void store_as_earlier(Block& block) {
    for (Tensor& tensor : block.tensors) {
      const bool shares = block.kind == BlockKind::mlp || block.name == "shared_attention";
      if (!shares) continue;
      std::string key = fmt::format("{} {} {} {}", block.name, tensor.name, tensor.out, tensor.in);
      if (!tensor.tied) {
        stored_.insert_or_assign(std::move(key), std::pair(tensor.format, tensor.stored_bytes));
      } else if (const auto found = stored_.find(key); found != stored_.end()) {
        std::tie(tensor.format, tensor.stored_bytes) = found->second;
      }
    }
  }

  void bind_ends(std::vector<Block>& blocks) {
    Block embedding{.kind = BlockKind::embedding};
    Block head{.kind = BlockKind::head};
    for (const Block& block : model_.blocks) {
      if (block.kind == BlockKind::embedding) embedding = block;
      if (block.kind == BlockKind::head) head = block;
    }
    OutsideBlocks ends = bind_outside(checkpoint_.path, embedding, head, outside_, notes_, model_);
    blocks.insert(blocks.begin(), std::move(ends.embedding));
    blocks.push_back(std::move(ends.head));
  }

  void name_formats() {
    for (const Block& block : model_.blocks) {
      for (const Tensor& tensor : block.tensors) {
        if (tensor.role == Role::lm_head) model_.head = tensor.format;
      }
    }
    model_.weights = main_format(model_).value_or(model_.weights);
  }

  void check_sum() const {
    std::int64_t bytes = stored_bytes(model_);
    for (const Extra& extra : model_.extras) bytes = checked_add(bytes, extra.bytes);
    if (bytes == checkpoint_.data_bytes) return;
    throw RunError(
        fmt::format("{}: its tensors take {} bytes, of which memwall placed {}: a defect of memwall",
                    checkpoint_.path, checkpoint_.data_bytes, bytes));
  }

  Model model_;
  const Checkpoint& checkpoint_;
  std::vector<StoredWeight> weights_;
  std::vector<StoredModules> layers_;
  StoredModules outside_;
  CandidateTable candidates_;
  std::unordered_map<std::string, std::pair<Format, std::int64_t>> stored_;  // of blocks that may be shared
  BindingNotes notes_;
};

}  // namespace

Model bind_checkpoint(Model from_config, const Checkpoint& checkpoint) {
  try {
    return CheckpointModel(std::move(from_config), checkpoint).run();
  } catch (const std::overflow_error&) {
    throw InputError(fmt::format("{}: its sizes multiply to more than 2^63 - 1 bytes", checkpoint.path));
  }
}

}  // namespace memwall
