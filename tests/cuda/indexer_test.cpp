// The indexer's kernels and operands on the host executor.
#include "kernels/cpu/indexer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/cpu_data.h"
#include "cuda/operands.h"
#include "kernels/cuda/indexer.cuh"
#include "load/load_model.h"
#include "tests/cuda/fake_gpu.h"
#include "tests/cuda/gpu_vector.h"

namespace memwall::cuda {
namespace {

OpTask task_of(const IndexerWork& work, std::int64_t batch, std::int64_t context) {
  return {work, {Phase::decode, batch, context}, false};
}

TEST(CudaIndexer, OperandsPassTheirCheck) {
  struct Case {
    IndexerState state;
    std::int64_t batch;
    std::int64_t context;
  };
  for (const KvFormat kv : {KvFormat::f16, KvFormat::bf16, KvFormat::f8_e4m3}) {
    for (const Case& test : {Case{{.heads = 5, .width = 128}, 2, 70},
                             {{.heads = 16, .width = 33}, 1, 140},
                             {{.heads = 8, .width = 64, .every = 4}, 1, 5}}) {
      SCOPED_TRACE(testing::Message() << kv_format_name(kv) << " " << test.context);
      FakeGpu gpu;
      gpu.executor().settings().blocks = Order::shuffled;
      gpu.executor().settings().threads = Order::shuffled;
      Context context(gpu);
      const IndexerWork work{.state = test.state, .kv = kv};
      const OpTask task = task_of(work, test.batch, test.context);
      ASSERT_EQ(variants_of(work, task, context).size(), 1U);
      const Footprint footprint = footprint_of(work, task, context);
      const auto operands = place(work, task, context, 2, 5);
      EXPECT_LE(gpu.most_allocated(), 2 * footprint.copy_bytes + footprint.fixed_bytes + 64);
      const Check check = operands->check(0);
      EXPECT_TRUE(check.passed()) << check.worst;
      EXPECT_GT(operands->cold_bytes(0), 0);
      EXPECT_GE(operands->padding_bytes(0), 0);
    }
  }
}

TEST(CudaIndexer, HasNoKernelForPromptsInt8AndF32) {
  FakeGpu gpu;
  Context context(gpu);
  IndexerWork work{.state = {.heads = 2, .width = 16}};
  EXPECT_TRUE(variants_of(work, {work, {Phase::prefill, 1, 8}, false}, context).empty());
  for (const KvFormat kv : {KvFormat::int8, KvFormat::f32}) {
    work.kv = kv;
    EXPECT_TRUE(variants_of(work, task_of(work, 1, 8), context).empty());
  }
}

TEST(CudaIndexerKernel, StreamsEachKeyOnceAndCoalesced) {
  constexpr int kHeads = 3;
  constexpr int kKeys = 300;
  IndexerLaunch launch = indexer_launch({KvElement::f16, 1, kHeads, 128, kKeys, 9}, 1);
  EXPECT_GT(launch.params.parts, 1);
  GpuVector<std::byte> cache(kKeys * 256);
  std::vector<std::byte> q(kHeads * 256);
  std::vector<float> weights(kHeads);
  std::vector<float> scores(kKeys);
  launch.params.cache = cache.data();
  launch.params.q = q.data();
  launch.params.weights = weights.data();
  launch.params.scores = scores.data();
  Executor executor;
  executor.watch(cache.data(), cache.size());
  executor.run<IndexerKernel<KvElement::f16>>(launch.geometry, launch.params);
  EXPECT_EQ(executor.watched().least, 1U);
  EXPECT_EQ(executor.watched().most, 1U);
  EXPECT_EQ(executor.traffic().streamed_sectors, static_cast<std::int64_t>(cache.size()) / 32);
}

// As the CPU chooses, in any order of threads: ties, both zeros, infinities and numbers that are none.
TEST(CudaIndexerKernel, ChoosesAsTheCpuDoes) {
  for (const int keys : {1, 1500}) {
    std::vector<float> scores = random_floats(static_cast<std::size_t>(keys), 3);
    for (std::size_t i = 0; i < scores.size(); i += 3) scores[i] = std::round(scores[i] * 4) / 4;
    for (std::size_t i = 5; i < scores.size(); i += 97) scores[i] = i % 2 == 0 ? -0.0F : 0.0F;
    if (keys > 100) {
      scores[40] = std::nanf("");
      scores[41] = -INFINITY;
      scores[42] = INFINITY;
    }
    for (const int count : {keys / 3 + 1, keys}) {
      IndexerLaunch launch = indexer_launch({KvElement::f16, 1, 1, 16, keys, count}, 1);
      std::vector<std::int32_t> chosen(static_cast<std::size_t>(count), -1);
      launch.params.scores = scores.data();
      launch.params.chosen = chosen.data();
      launch = choose_launch(launch);
      Executor executor;
      executor.settings().threads = Order::shuffled;
      executor.run<ChooseKernel>(launch.geometry, launch.params);
      std::vector<std::int32_t> expected(chosen.size());
      std::vector<std::uint32_t> room(scores.size() * 2);
      cpu::choose_top(scores.data(), keys, count, room.data(), expected.data());
      EXPECT_EQ(chosen, expected) << keys << " " << count;
    }
  }
}

TEST(CudaIndexer, ChoicesSuitEveryModelOfTheZoo) {
  constexpr int kMultiprocessors = 132;
  for (const Model& model : zoo()) {
    for (const Op& op : lower(model)) {
      const auto* work = std::get_if<IndexerWork>(&op.work);
      if (work == nullptr) continue;
      for (const std::int64_t batch : {1, 64}) {
        for (const std::int64_t context : {1, 65536}) {
          const IndexerShape shape{KvElement::bf16,
                                   batch,
                                   work->state.heads,
                                   work->state.width,
                                   entries_kept(work->state, context),
                                   1};
          ASSERT_TRUE(indexer_takes(shape, {.major = 8})) << model.name;
          EXPECT_FALSE(indexer_takes(shape, {.major = 7, .minor = 5}));
          const IndexerLaunch launch = indexer_launch(shape, kMultiprocessors);
          EXPECT_LE(launch.geometry.shared_bytes, 48U << 10);
          const std::int64_t each = std::int64_t{launch.params.tiles_each} * kTileTokens;
          EXPECT_GE(launch.params.parts * each, shape.keys);
          EXPECT_LT((launch.params.parts - 1) * each, shape.keys);
          if (context > 1) {
            EXPECT_GE(launch.geometry.grid_x * launch.geometry.grid_y, kMultiprocessors * 3 / 4);
          }
          EXPECT_EQ(choose_launch(launch).geometry.grid_x, batch);
        }
      }
    }
  }
}

}  // namespace
}  // namespace memwall::cuda
