// Ops of a step run as one launch, where the device can and it pays.
#include <gmock/gmock.h>

#include "bench/measure.h"
#include "bench/step.h"
#include "load/load_model.h"
#include "step_device.h"
#include "tests/model/support.h"

namespace memwall {
namespace {

using ::testing::ElementsAre;

std::vector<Op> some_layers() {
  return lower(
      read_model(with_layers("  - repeat: 6\n"
                             "    attention: {heads: 4, kv_heads: 2, head_dim: 64}\n"
                             "    mlp: {intermediate: 16384}\n")));
}

std::vector<std::string> part_names(const StepPlan& plan) {
  std::vector<std::string> names;
  for (const StepPart& part : plan.parts) names.push_back(part.name());
  return names;
}

// A norm and the linears behind it; a linear and the residual behind it.
bool linears_fuse(const FusedTask& task) {
  bool linear = false;
  for (const OpTask& op : task.ops) {
    if (std::holds_alternative<LinearWork>(op.work)) {
      linear = true;
      continue;
    }
    const auto* elementwise = std::get_if<ElementwiseWork>(&op.work);
    if (elementwise == nullptr) return false;
    const bool norm = elementwise->function == ElementwiseFunction::rms_norm;
    if (norm != !linear || (!norm && &op != &task.ops.back())) return false;
    if (!norm && elementwise->function != ElementwiseFunction::add) return false;
  }
  return linear;
}

TEST(FusePlan, MakesTheLongestRunsOneLaunch) {
  const std::vector<Op> ops = some_layers();
  const StepPlan plan = plan_step(ops);
  const auto fuses = [&](const std::vector<std::size_t>& members) {
    FusedTask task;
    for (const std::size_t m : members) task.ops.push_back({plan.parts[m].ops.front().work, {}});
    return linears_fuse(task);
  };
  const StepPlan fused = fuse_plan(plan, fuses);
  EXPECT_EQ(fused.layers, plan.layers);
  const std::vector<std::string> names = part_names(fused);
  EXPECT_THAT(names, ::testing::Contains("attn_norm + q_proj + k_proj + v_proj"));
  EXPECT_THAT(names, ::testing::Contains("o_proj + attn_residual"));
  EXPECT_THAT(names, ::testing::Contains("mlp_norm + gate_proj + up_proj"));
  EXPECT_THAT(names, ::testing::Contains("down_proj + mlp_residual"));
  // Every op of every layer once, in the order it had.
  std::vector<std::size_t> before;
  std::vector<std::size_t> after;
  for (const StepLaunch& launch : plan.launches) before.push_back(plan.parts[launch.part].members.front());
  std::vector<std::int64_t> copies(fused.parts.size(), 0);
  for (const StepLaunch& launch : fused.launches) {
    for (const std::size_t member : fused.parts[launch.part].members) after.push_back(member);
    EXPECT_EQ(launch.copy, copies[launch.part]++);
  }
  EXPECT_EQ(before, after);
  for (std::size_t i = 0; i < copies.size(); ++i) EXPECT_EQ(copies[i], fused.parts[i].count);
}

TEST(FusePlan, NothingFusesWhereNothingMay) {
  const StepPlan plan = plan_step(some_layers());
  const StepPlan same = fuse_plan(plan, [](const std::vector<std::size_t>&) { return false; });
  EXPECT_EQ(same.launches, plan.launches);
  EXPECT_EQ(part_names(same), part_names(plan));
}

TEST(FusePlan, APartsKindIsThatOfWhatReadsMemory) {
  const StepPlan plan = plan_step(some_layers());
  const StepPlan fused = fuse_plan(plan, [&](const std::vector<std::size_t>& members) {
    return plan.parts[members[0]].name() == "rotary" && members.size() == 2;
  });
  for (const StepPart& part : fused.parts) {
    if (part.fused()) {
      EXPECT_EQ(part.name(), "rotary + attention");
      EXPECT_EQ(part.kind(), OpKind::attention);
      EXPECT_EQ(std::get<FusedTask>(part.task({Phase::decode, 1, 64})).ops.size(), 2U);
    }
  }
}

// What would fuse if flow allowed it: a norm and linears, whatever the device.
StepPlan with_norms_fused(const std::vector<Op>& ops) {
  const StepPlan plan = plan_step(ops);
  return fuse_plan(plan, [&](const std::vector<std::size_t>& members) {
    FusedTask task;
    for (const std::size_t m : members) task.ops.push_back({plan.parts[m].ops.front().work, {}});
    return linears_fuse(task);
  });
}

TEST(FusePlan, ANormThatOthersReadStaysByItself) {
  // Attention and MLP side by side read one norm; a router and experts read the MLP's.
  for (const char* name :
       {"command-r", "gpt-j-6b", "phi-2", "falcon-7b", "mixtral-8x7b", "qwen1.5-moe-a2.7b"}) {
    SCOPED_TRACE(name);
    for (const StepPart& part : with_norms_fused(lower(find_model(name))).parts) {
      const bool mlp = part.name().find("mlp_norm +") != std::string::npos;
      const bool attention = part.name().find("attn_norm +") != std::string::npos;
      const bool experts = std::string_view(name).substr(0, 3) == "mix" || std::string_view(name)[0] == 'q';
      EXPECT_FALSE(experts ? mlp : attention || mlp) << part.name();
    }
  }
  // And a model with a norm before each still fuses both.
  const std::vector<std::string> names = part_names(with_norms_fused(lower(find_model("llama-3.2-1b"))));
  EXPECT_THAT(names, ::testing::Contains("attn_norm + q_proj + k_proj + v_proj"));
  EXPECT_THAT(names, ::testing::Contains("mlp_norm + gate_proj + up_proj"));
}

TEST(FusePlan, OfTwoNormsInARowNoneIsFused) {
  for (const StepPart& part : with_norms_fused(lower(find_model("deepseek-v2-lite"))).parts) {
    EXPECT_EQ(part.name().find("_a_layernorm + q_b_proj"), std::string::npos) << part.name();
  }
}

MeasureSettings one_step() {
  MeasureSettings settings;
  settings.batches = {1};
  settings.contexts = {64};
  settings.whole_steps = true;
  return settings;
}

TEST(StepFusion, IsTakenWhereItPays) {
  StepDevice device;
  device.fuses = linears_fuse;
  device.launch_seconds = 5e-6;
  Session session(device, std::int64_t{8} << 30, nullptr);
  session.probe();
  const std::vector<Op> ops = some_layers();
  session.run_model({.ops = ops}, one_step());
  ASSERT_TRUE(session.decode().front().whole);
  const WholeStep& whole = *session.decode().front().whole;
  EXPECT_GT(device.fused_launches, 0);
  ASSERT_FALSE(whole.fusions.empty());
  for (const StepFusion& fusion : whole.fusions) {
    EXPECT_LT(fusion.seconds, fusion.parts_seconds) << fusion.ops;
    EXPECT_EQ(fusion.launches, 6) << fusion.ops;
  }
  // Norm, q, k, v: 4 launches become one; o and residual, norm, gate, up, and down and residual likewise.
  const auto unfused = static_cast<std::int64_t>(plan_step(ops).launches.size());
  EXPECT_EQ(whole.launches(), unfused - 6 * (3 + 1 + 2 + 1));
  EXPECT_LT(whole.seconds.median, whole.alone_seconds());
  EXPECT_NEAR(whole.bytes, cost_step(ops, {Phase::decode, 1, 64}).total.compulsory_bytes(),
              1e-6 * whole.bytes);
}

TEST(StepFusion, IsLeftWhereItDoesNotPay) {
  StepDevice device;
  device.fuses =
      linears_fuse;  // and costs what its parts cost, but for elementwise ops, which here take none
  device.mutable_info().costly_launches = true;
  Session session(device, std::int64_t{8} << 30, nullptr);
  session.probe();
  const std::vector<Op> ops =
      lower(read_model(with_layers("  - repeat: 2\n    a_proj: [4096, 64]\n    b_proj: [4096, 64]\n")));
  session.run_model({.ops = ops}, one_step());
  const WholeStep& whole = *session.decode().front().whole;
  EXPECT_TRUE(whole.fusions.empty());
  EXPECT_EQ(whole.launches(), 4);
  EXPECT_NEAR(whole.launch_seconds(), whole.seconds.median, 1e-9);  // kinds timed together add up, too
}

// Gemma-2's windowed and full attentions share a name.
TEST(StepFusion, CountsEachPartsLaunchesOnce) {
  StepDevice device;
  device.launch_seconds = 5e-6;
  device.fuses = [](const FusedTask& task) {
    return task.ops.size() == 2 && std::holds_alternative<AttentionWork>(task.ops[1].work);
  };
  const std::vector<Op> ops = lower(read_model(
      with_layers("  - repeat: 3\n    attention: {heads: 4, kv_heads: 2, head_dim: 64, window: 32}\n"
                  "  - repeat: 4\n    attention: {heads: 4, kv_heads: 2, head_dim: 64}\n")));
  Session session(device, std::int64_t{8} << 30, nullptr);
  session.probe();
  session.run_model({.ops = ops}, one_step());
  const WholeStep& whole = *session.decode().front().whole;
  ASSERT_EQ(whole.fusions.size(), 2U);
  EXPECT_EQ(whole.fusions[0].ops, whole.fusions[1].ops);
  EXPECT_EQ(whole.fusions[0].launches + whole.fusions[1].launches, 7);
  EXPECT_NE(whole.fusions[0].launches, whole.fusions[1].launches);
}

}  // namespace
}  // namespace memwall
