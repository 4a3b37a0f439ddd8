// Attention's operands on a GPU that is the host executor, and the choices for the zoo's shapes.
#include <gtest/gtest.h>

#include "cuda/fused_attention.h"
#include "cuda/operands.h"
#include "kernels/cuda/latent.h"
#include "load/load_model.h"
#include "tests/cuda/fake_gpu.h"

namespace memwall::cuda {
namespace {

struct Case {
  AttentionWork work;
  std::int64_t batch = 1;
  std::int64_t context = 1;
};

OpTask task_of(const Case& test) { return {test.work, {Phase::decode, test.batch, test.context}, false}; }

TEST(CudaAttention, OperandsPassTheirCheck) {
  AttentionWork grouped{.heads = 6, .kv_heads = 2, .d_k = 40, .d_v = 24};
  AttentionWork windowed = grouped;
  windowed.window = 32;
  AttentionWork chunked = grouped;
  chunked.chunk = 16;
  AttentionWork sparse = grouped;
  sparse.top_k = 17;
  AttentionWork many{.heads = 18, .kv_heads = 1, .d_k = 32, .d_v = 16};
  AttentionWork borrowed = grouped;
  borrowed.shared = true;
  for (const KvFormat kv : {KvFormat::f32, KvFormat::f16, KvFormat::bf16, KvFormat::f8_e4m3}) {
    for (Case test : {Case{grouped, 2, 1},
                      {grouped, 1, 140},
                      {windowed, 1, 70},
                      {chunked, 1, 32},
                      {chunked, 1, 37},
                      {sparse, 2, 40},
                      {many, 1, 40},
                      {borrowed, 1, 20}}) {
      test.work.kv = kv;
      SCOPED_TRACE(testing::Message() << kv_format_name(kv) << " heads " << test.work.heads << " window "
                                      << test.work.window << " chunk " << test.work.chunk << " top "
                                      << test.work.top_k << " context " << test.context);
      FakeGpu gpu;
      Context context(gpu);
      const OpTask task = task_of(test);
      ASSERT_EQ(variants_of(test.work, task, context).size(), 1U);
      const Footprint footprint = footprint_of(test.work, task, context);
      const std::int64_t copies = 2;
      const auto operands = place(test.work, task, context, copies, 5);
      EXPECT_LE(gpu.most_allocated(), copies * footprint.copy_bytes + footprint.fixed_bytes + 64);
      const Check check = operands->check(0);
      EXPECT_TRUE(check.passed()) << check.worst;
      EXPECT_GT(operands->cold_bytes(0), 0);
      EXPECT_GE(operands->padding_bytes(0), 0);
    }
  }
}

// Of a launch that leaves a sequence out.
class ForgetfulGpu : public Gpu {
 public:
  const GpuProperties& properties() const override { return gpu_.properties(); }
  std::int64_t free_bytes() override { return gpu_.free_bytes(); }
  void* allocate(std::int64_t bytes) override { return gpu_.allocate(bytes); }
  void release(void* memory) noexcept override { gpu_.release(memory); }
  void upload(void* to, const void* from, std::int64_t bytes) override { gpu_.upload(to, from, bytes); }
  void download(void* to, const void* from, std::int64_t bytes) override { gpu_.download(to, from, bytes); }
  void zero(void* memory, std::int64_t bytes) override { gpu_.zero(memory, bytes); }
  void launch(const Launch& launch) override {
    Launch changed = launch;
    if (auto* attention = std::get_if<AttentionLaunch>(&changed)) attention->params.scale *= 1.2F;
    if (auto* latent = std::get_if<LatentLaunch>(&changed)) latent->params.scale *= 1.2F;
    gpu_.launch(changed);
  }
  std::vector<GemmArm> gemm_arms(const GemmProblem&) override { return {}; }
  void gemm(const GemmProblem&, int, const GemmOperands&) override {}
  void synchronize() override {}
  double time(const std::function<void()>&, Timing) override { return 0; }
  Clocks clocks() override { return {}; }

 private:
  FakeGpu gpu_;
};

TEST(CudaAttention, WrongOutputsFailTheCheck) {
  ForgetfulGpu gpu;
  Context context(gpu);
  const AttentionWork work{.heads = 2, .kv_heads = 1, .d_k = 32, .d_v = 16, .kv = KvFormat::f16};
  EXPECT_FALSE(place(work, task_of({work, 1, 40}), context, 1, 5)->check(0).passed());
  const LatentWork latent{.state = {.heads = 2, .rank = 16, .rope = 16}, .kv = KvFormat::f16};
  const OpTask task{latent, {Phase::decode, 1, 40}, false};
  EXPECT_FALSE(place(latent, task, context, 1, 5)->check(0).passed());
}

TEST(CudaAttention, HasNoKernelForPromptsAndInt8) {
  FakeGpu gpu;
  Context context(gpu);
  AttentionWork work{.heads = 2, .kv_heads = 1, .d_k = 32, .d_v = 16};
  EXPECT_TRUE(variants_of(work, {work, {Phase::prefill, 1, 8}, false}, context).empty());
  work.kv = KvFormat::int8;
  EXPECT_TRUE(variants_of(work, task_of({work, 1, 8}), context).empty());
}

TEST(CudaAttention, RotaryInTheSameLaunch) {
  FakeGpu gpu;
  Context context(gpu);
  AttentionWork work{.heads = 6, .kv_heads = 2, .d_k = 40, .d_v = 24};
  const ElementwiseWork rotary{
      .function = ElementwiseFunction::rotary, .width = 40, .rows_per_token = 8, .flops_per_element = 3};
  const Workload workload{Phase::decode, 2, 50};
  for (const KvFormat kv : {KvFormat::f32, KvFormat::f16, KvFormat::bf16, KvFormat::f8_e4m3}) {
    work.kv = kv;
    const FusedTask task{{{rotary, workload, false}, {work, workload, false}}};
    ASSERT_TRUE(is_fused_attention(task));
    EXPECT_EQ(fused_attention_variants(task, context).size(), 1U);
    EXPECT_GT(fused_attention_footprint(task, context).copy_bytes, 0);
    const auto operands = place_fused_attention(task, context, 2, 3);
    const std::int64_t before = gpu.launches();
    operands->launch(0, 0);
    EXPECT_EQ(gpu.launches(), before + 1);
    const Check check = operands->check(0);
    EXPECT_TRUE(check.passed()) << check.worst;
  }
  const FusedTask reversed{{{work, workload, false}, {rotary, workload, false}}};
  EXPECT_FALSE(is_fused_attention(reversed));
  ElementwiseWork narrower = rotary;
  narrower.width = 32;
  EXPECT_FALSE(is_fused_attention({{{narrower, workload, false}, {work, workload, false}}}));
}

// Whatever the zoo's models ask for, the launch keeps the limits, covers all tokens once and, where there is
// enough to read, fills the card.
TEST(CudaAttention, ChoicesSuitEveryModelOfTheZoo) {
  constexpr int kMultiprocessors = 132;
  const auto expect_sane = [&](const AttentionShape& shape, const AttentionParams& p,
                               const Geometry& geometry, std::int64_t blocks_a_part) {
    SCOPED_TRACE(testing::Message() << shape.heads << "/" << shape.kv_heads << " d " << shape.d_k << "/"
                                    << shape.d_v << " seqs " << shape.seqs << " tokens " << shape.read);
    EXPECT_LE(geometry.shared_bytes, 48U << 10);
    EXPECT_LE(p.parts, kMostParts);
    const std::int64_t each = std::int64_t{p.tiles_each} * kTileTokens;
    EXPECT_GE(p.parts * each, shape.read);
    EXPECT_LT((p.parts - 1) * each, std::max<std::int64_t>(shape.read, 1));
    EXPECT_EQ(geometry.grid_x, shape.seqs * shape.kv_heads * blocks_a_part);
    EXPECT_EQ(geometry.grid_y, p.parts);
    const std::int64_t parts_possible = shape.read / (8 * kTileTokens);
    if (shape.seqs * shape.kv_heads * blocks_a_part * std::min<std::int64_t>(parts_possible, kMostParts) >=
        4 * kMultiprocessors) {
      EXPECT_GE(geometry.grid_x * geometry.grid_y, kMultiprocessors * 3 / 4);
    }
  };
  for (const ArchLimits& arch : {ArchLimits{.major = 7, .minor = 5}, ArchLimits{.major = 9}}) {
    for (const Model& model : zoo()) {
      for (const Op& op : lower(model)) {
        for (const std::int64_t batch : {1, 8, 64}) {
          for (const std::int64_t context : {1, 1024, 65536}) {
            if (const auto* work = std::get_if<AttentionWork>(&op.work)) {
              const AttentionShape shape{KvElement::bf16,
                                         batch,
                                         work->heads,
                                         work->kv_heads,
                                         work->d_k,
                                         work->d_v,
                                         tokens_kept(*work, context),
                                         effective_context(*work, context)};
              const AttentionWay way = attention_way(shape, arch);
              ASSERT_NE(way, AttentionWay::none) << model.name;
              if (way == AttentionWay::staged) {
                const LatentLaunch launch = staged_launch(shape, false, kMultiprocessors);
                expect_sane(shape, launch.params, launch.geometry, staged_reads(shape));
                EXPECT_EQ(staged_reads(shape), 1) << model.name;
              } else {
                const AttentionLaunch launch = attention_launch(shape, arch, kMultiprocessors);
                expect_sane(shape, launch.params, launch.geometry, launch.plain ? plain_reads(shape) : 1);
                EXPECT_EQ(launch.plain, arch.major < 8);
              }
            }
            if (const auto* work = std::get_if<LatentWork>(&op.work)) {
              const std::int64_t held = entries_kept(work->state, context);
              const std::int64_t read = work->state.top_k > 0 ? std::min(held, work->state.top_k) : held;
              const AttentionShape shape{KvElement::bf16,
                                         batch,
                                         work->state.heads,
                                         1,
                                         work->state.rank + work->state.rope,
                                         work->state.rank,
                                         held,
                                         read};
              ASSERT_TRUE(staged_takes(KvElement::bf16, shape.d_k, shape.d_v, true)) << model.name;
              ASSERT_TRUE(staged_takes(KvElement::f8_e4m3, shape.d_k, shape.d_v, true)) << model.name;
              const LatentLaunch launch = staged_launch(shape, true, kMultiprocessors);
              expect_sane(shape, launch.params, launch.geometry, staged_reads(shape));
              const LatentLaunch merge = merge_launch(launch);
              EXPECT_EQ(merge.geometry.grid_x, shape.seqs * shape.heads);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace memwall::cuda
