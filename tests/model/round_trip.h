// A model written as YAML and read back, compared with itself.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cost/cost.h"
#include "model/yaml_writer.h"
#include "tests/model/support.h"

namespace memwall {

// Each op as text, whatever the order of blocks.
inline std::multiset<std::string> ops_of(const Model& model) {
  std::multiset<std::string> all;
  const Workload workload{.phase = Phase::decode, .batch = 3, .context = 5000};
  for (const Op& op : group_equal(lower(model))) {
    const Cost cost = cost_of(op.work, workload);
    all.insert(fmt::format("{} {} {} {} {} {} {}", op.name, fmt::join(op.layers, ","), cost.weight_bytes,
                           cost.kv_read_bytes, cost.kv_write_bytes, cost.state_bytes, cost.flops));
  }
  return all;
}

inline void expect_round_trip(const Model& model) {
  const std::string text = model_yaml(model);
  const Model back = read_model(text);
  const ParameterCount a = count_parameters(model);
  const ParameterCount b = count_parameters(back);
  EXPECT_EQ(a.total, b.total) << text;
  EXPECT_EQ(a.embedding, b.embedding) << text;
  EXPECT_EQ(a.active, b.active) << text;
  EXPECT_EQ(kv_bytes_per_token(model), kv_bytes_per_token(back)) << text;
  EXPECT_EQ(kv_cache_bytes(model, 100'000), kv_cache_bytes(back, 100'000)) << text;
  EXPECT_EQ(state_bytes(model), state_bytes(back)) << text;
  EXPECT_EQ(stored_bytes(model), stored_bytes(back)) << text;
  EXPECT_EQ(read_bytes(model), read_bytes(back)) << text;
  EXPECT_EQ(model.approximate, back.approximate) << text;
  EXPECT_EQ(model.warnings, back.warnings) << text;
  ASSERT_EQ(model.extras.size(), back.extras.size()) << text;
  for (std::size_t i = 0; i < model.extras.size(); ++i) {
    EXPECT_EQ(model.extras[i].what, back.extras[i].what);
    EXPECT_EQ(model.extras[i].tensors, back.extras[i].tensors);
    EXPECT_EQ(model.extras[i].parameters, back.extras[i].parameters);
    EXPECT_EQ(model.extras[i].bytes, back.extras[i].bytes);
  }
  EXPECT_EQ(model.layers, back.layers) << text;
  EXPECT_EQ(ops_of(model), ops_of(back)) << text;
  EXPECT_EQ(model_yaml(back), text);
}

}  // namespace memwall
