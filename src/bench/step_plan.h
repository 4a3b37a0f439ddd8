// A whole decode step as launches in model order, and how much of the model is held in memory to run it.
// Pure functions of ops and footprints, so that they can be tested without a device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/device.h"
#include "cost/op.h"

namespace memwall {

// Runs one layer's copy of a part.
struct StepLaunch {
  std::size_t part = 0;
  std::int64_t copy = 0;  // which of the part's copies, counted in the order in which the step runs them

  bool operator==(const StepLaunch&) const = default;
};

// What one placement serves and one launch runs: an op, or several that follow one another, fused.
struct StepPart {
  std::vector<Op> ops;
  std::vector<std::size_t> members;  // their places in group_equal(ops)
  std::int64_t count = 1;            // copies: launches a step
  bool in_layers = true;

  bool fused() const { return ops.size() > 1; }
  // The op that reads weights or cache, by which the part is told from others; the first where none does.
  const Op& main() const;
  OpKind kind() const { return main().kind(); }
  std::string name() const;  // "attn_norm + q_proj + k_proj + v_proj"
  // As the device is asked for it. `whole_layers`: of experts.
  Task task(const Workload& workload, bool whole_layers = false) const;
};

struct StepPlan {
  std::vector<StepPart> parts;       // one placement serves all layers of equal ops
  std::vector<StepLaunch> launches;  // every copy of every part once, in model order
  std::int64_t layers = 0;           // distinct ones
};

// `ops` as lower() makes them, block by block. Ops outside the layers run before all layers (the embedding)
// or, where an op of a layer precedes them, after all (the head). A layer runs those of the ops that it is
// listed in, in their order: blocks that share a layer run in the order of Model::blocks.
StepPlan plan_step(const std::vector<Op>& ops);

// The plan with runs of consecutive launches made one, the longest first, where `fuses` says so of their ops'
// places in group_equal(ops) (asked of two at least, in the order of the launches). A norm stays by itself
// where others than the ops right behind it read what it writes, which a fused launch leaves unwritten.
StepPlan fuse_plan(const StepPlan& plan, const std::function<bool(const std::vector<std::size_t>&)>& fuses);

// How many copies of each part are held. A layer's copy of an expert linear is a group of expert matrices:
// all of the layer's, of which a step runs those drawn, or as many as a step may touch.
struct StepHolding {
  std::int64_t layers_held = 0;
  bool all_experts = true;           // of each layer held; else as many as one launch may touch
  std::vector<std::int64_t> copies;  // of each part; 0 where the device has no kernel for it
  std::vector<std::int64_t> matrices_a_copy;
  // All that is allocated: copies, activations and workspaces. At most: parts may share their activations.
  std::int64_t bytes = 0;
  std::int64_t cold_bytes = 0;  // of the layers' weights and caches
};

// Footprint of each part; nothing where the device has no kernel for it.
using StepFootprints = std::vector<std::optional<Footprint>>;

// The holding of `layers_held` layers. Parts that not every layer has are held in proportion, one copy at
// least. Throws std::overflow_error where the bytes cannot be counted.
StepHolding holding_of(const StepPlan& plan, const StepFootprints& footprints, std::int64_t layers_held,
                       bool all_experts);

// The fullest holding within `memory_bytes`: all layers with all experts; all layers with the experts that a
// launch touches; then fewer layers, as long as these take `least_cold_bytes`, so that a layer that comes
// round again finds no cache that still has it. Nothing where none fits.
std::optional<StepHolding> fullest_holding(const StepPlan& plan, const StepFootprints& footprints,
                                           std::int64_t memory_bytes, std::int64_t least_cold_bytes);

// The smallest of those that fullest_holding considers: what a step takes at least.
StepHolding least_holding(const StepPlan& plan, const StepFootprints& footprints,
                          std::int64_t least_cold_bytes);

// The turn (device.h) on which a step's launch runs: turn % copies is the copy, and each step is a round of
// them, so that it draws other experts. The layers held take turns where they are fewer than the model's.
std::int64_t turn_of(const StepHolding& holding, const StepLaunch& launch, std::int64_t step);

}  // namespace memwall
