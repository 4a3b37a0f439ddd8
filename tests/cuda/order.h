// Whether what a launch leaves behind depends on the order in which blocks and threads run.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/cuda/device_memory.h"
#include "tests/cuda/executor.h"

namespace memwall::cuda {

struct ExecutorOrder {
  Order blocks = Order::forward;
  Order threads = Order::forward;
  std::uint64_t seed = 1;
};
inline constexpr ExecutorOrder kExecutorOrders[] = {{Order::forward, Order::forward, 1},
                                                    {Order::backward, Order::backward, 1},
                                                    {Order::forward, Order::backward, 1},
                                                    {Order::shuffled, Order::shuffled, 1},
                                                    {Order::shuffled, Order::shuffled, 2}};

inline void set_order(Executor& executor, const ExecutorOrder& order) {
  executor.settings().blocks = order.blocks;
  executor.settings().threads = order.threads;
  executor.settings().seed = order.seed;
}

// Calls `launch`, which runs on `executor`, in every order, from the same contents of the outputs each time:
// true where the launches leave the same bits. The executor is in forward order afterwards.
inline bool order_independent(Executor& executor, const std::vector<MemoryRange>& outputs,
                              const std::function<void()>& launch) {
  const auto contents = [&] {
    std::vector<std::vector<std::byte>> bytes;
    for (const MemoryRange& o : outputs) {
      const auto* begin = static_cast<const std::byte*>(o.data);
      bytes.emplace_back(begin, begin + o.bytes);
    }
    return bytes;
  };
  const auto before = contents();
  std::vector<std::vector<std::byte>> first;
  bool equal = true;
  for (const ExecutorOrder& order : kExecutorOrders) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      std::memcpy(outputs[i].data, before[i].data(), before[i].size());
    set_order(executor, order);
    launch();
    if (first.empty()) first = contents();
    equal = equal && contents() == first;
  }
  set_order(executor, {});
  return equal;
}

inline void expect_order_independent(Executor& executor, const std::vector<MemoryRange>& outputs,
                                     const std::function<void()>& launch) {
  EXPECT_TRUE(order_independent(executor, outputs, launch))
      << "the launch's results depend on the order of blocks or threads";
}

}  // namespace memwall::cuda
