#include "load/gguf_order.h"

#include <fmt/format.h>

namespace memwall {
namespace {

constexpr std::int64_t kMostLayers = 10'000;

// HRM-Text: the low stack l_cycles times, then the high one, all of it h_cycles times. The file's count of
// layers is that of the runs; the low stack's tensors are of its first layers, the high one's of the next
// (src/models/hrm-text.cpp in llama.cpp).
std::vector<std::int32_t> order_of_stacks(const GgufSource& source) {
  const Range counts{1, kMostLayers};
  const std::int64_t stack = source.integer("hrm.layers_per_stack", counts);
  const std::int64_t high_cycles = source.integer("hrm.h_cycles", counts);
  const std::int64_t low_cycles = source.integer("hrm.l_cycles", counts);
  const std::int64_t runs = stack * high_cycles * (low_cycles + 1);
  if (runs != source.layers()) {
    source.fail(
        fmt::format("'{}' is {}, but {} layers a stack, {} cycles of the high one and {} of the low "
                    "one make {}",
                    source.key("block_count"), source.layers(), stack, high_cycles, low_cycles, runs));
  }
  std::vector<std::int32_t> order;
  for (std::int64_t high = 0; high < high_cycles; ++high) {
    for (std::int64_t low = 0; low <= low_cycles; ++low) {
      const std::int64_t first = low == low_cycles ? stack : 0;
      for (std::int64_t layer = 0; layer < stack; ++layer)
        order.push_back(static_cast<std::int32_t>(first + layer));
    }
  }
  return order;
}

}  // namespace

std::vector<std::int32_t> gguf_order(const GgufSource& source) {
  if (source.has("hrm.layers_per_stack")) return order_of_stacks(source);
  const std::int64_t loops = source.integer_or("num_loops", 1, {1, kMostLayers / source.layers()});
  std::vector<std::int32_t> order;
  for (std::int64_t loop = 0; loop < loops; ++loop) {
    for (std::int32_t layer = 0; layer < source.layers(); ++layer) order.push_back(layer);
  }
  return order;
}

}  // namespace memwall
