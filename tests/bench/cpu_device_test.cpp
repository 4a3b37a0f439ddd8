// The CPU device on small tasks of every kind: each variant's outputs against float64.
#include <gtest/gtest.h>

#include <csignal>

#include "bench/device.h"
#include "bench/interrupt.h"
#include "input/error.h"

namespace memwall {
namespace {

class CpuDeviceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { device_ = make_cpu_device().release(); }
  static void TearDownTestSuite() {
    delete device_;
    device_ = nullptr;
  }

  // Every variant of the task passes its check.
  static void expect_right(const Task& task, std::int64_t copies = 3) {
    const std::vector<Variant> variants = device_->variants(task);
    ASSERT_FALSE(variants.empty());
    const auto operands = device_->place(task, copies, 42);
    for (std::size_t v = 0; v < variants.size(); ++v) {
      const Check check = operands->check(v);
      EXPECT_TRUE(check.passed()) << variants[v].name << ": " << check.worst << " of " << check.outputs;
      operands->launch(v, 5);  // a turn past the copies wraps
    }
  }

  static Device* device_;
};
Device* CpuDeviceTest::device_ = nullptr;

Format format(const char* name) { return *find_format(name); }

TEST_F(CpuDeviceTest, LinearsInEveryFormatAndManyShapes) {
  for (const char* name : {"f32", "f16", "bf16", "f8_e4m3", "f8_e4m3-c", "f8_e4m3-b128", "q8_0", "q4_0",
                           "int4-g32", "int4-g64", "int4-g128", "int4-g128-zp", "int4-g64-zp16", "int4-c"}) {
    for (const auto& [out, in] : {std::pair{1, 1}, {3, 5}, {4097, 129}, {33, 100}}) {
      for (const std::int64_t rows : {1, 2, 7, 16, 70}) {
        SCOPED_TRACE(testing::Message() << name << " " << out << "x" << in << " rows " << rows);
        expect_right(OpTask{LinearWork{.out = out,
                                       .in = in,
                                       .format = format(name),
                                       .bias = rows == 2,
                                       .bias_format = format("bf16")},
                            {.batch = rows}});
      }
    }
  }
}

TEST_F(CpuDeviceTest, ArithmeticOfEveryTypeThatItHas) {
  for (const ComputeType type : {ComputeType::f32, ComputeType::f16, ComputeType::bf16, ComputeType::int8}) {
    const Task task = ArithmeticTask{type};
    const std::vector<Variant> ways = device_->variants(task);
    if (ways.empty()) continue;
    const auto operands = device_->place(task, 1, 1);
    for (std::size_t v = 0; v < ways.size(); ++v) EXPECT_TRUE(operands->check(v).passed()) << ways[v].name;
    EXPECT_EQ(operands->cold_bytes(0), 0);
    EXPECT_GT(operands->flops(0), 0);
  }
  EXPECT_FALSE(device_->variants(ArithmeticTask{ComputeType::f32}).empty());
  EXPECT_TRUE(device_->variants(ArithmeticTask{ComputeType::f8}).empty());
}

// A router of 8 experts fills half a panel of 16 rows.
TEST_F(CpuDeviceTest, PaddingIsToldApart) {
  const auto padding = [&](std::int64_t out) {
    const Task task = OpTask{LinearWork{.out = out, .in = 100, .format = format("f16")}, {.batch = 1}};
    const std::unique_ptr<Operands> operands = device_->place(task, 1, 1);
    EXPECT_EQ(operands->cold_bytes(0), static_cast<double>(out * 200));
    return operands->padding_bytes(0);
  };
  EXPECT_EQ(padding(8), 8 * 200);
  EXPECT_EQ(padding(32), 0);
  EXPECT_EQ(padding(33), 15 * 200);
}

TEST_F(CpuDeviceTest, FormatsWithoutAKernelHaveNoVariant) {
  for (const char* name : {"int4-g16", "int8-g128", "nf4", "q4_k"}) {
    EXPECT_TRUE(
        device_->variants(OpTask{LinearWork{.out = 64, .in = 64, .format = format(name)}, {}}).empty());
  }
}

constexpr KvFormat kCaches[] = {KvFormat::f32, KvFormat::f16, KvFormat::bf16, KvFormat::f8_e4m3,
                                KvFormat::int8};

TEST_F(CpuDeviceTest, AttentionInDecodeAndPrefill) {
  for (const KvFormat kv : kCaches) {
    for (const Phase phase : {Phase::decode, Phase::prefill}) {
      for (const AttentionWork& work :
           {AttentionWork{6, 2, 40, 24, 0, kv}, AttentionWork{6, 2, 40, 24, 5, kv},
            AttentionWork{6, 2, 40, 24, 0, kv, 16}, AttentionWork{6, 2, 40, 24, 0, kv, 37},
            AttentionWork{.heads = 4, .kv_heads = 1, .d_k = 64, .d_v = 64, .kv = kv, .shared = true}}) {
        SCOPED_TRACE(testing::Message()
                     << kv_format_name(kv) << " window " << work.window << " chunk " << work.chunk);
        expect_right(OpTask{work, {.phase = phase, .batch = 2, .context = 37}});
      }
    }
  }
}

// Counted, but run by no kernel here: never by one of another format.
TEST_F(CpuDeviceTest, OtherCachesHaveNoKernel) {
  for (const std::string& name : kv_format_names()) {
    const KvFormat kv = *find_kv_format(name);
    const bool has = std::find(std::begin(kCaches), std::end(kCaches), kv) != std::end(kCaches);
    const LatentState latent{.heads = 8, .rank = 64, .rope = 16, .d_nope = 32, .d_v = 32};
    for (const Phase phase : {Phase::decode, Phase::prefill}) {
      const Workload workload{.phase = phase, .batch = 1, .context = 37};
      EXPECT_EQ(!device_->variants(OpTask{AttentionWork{6, 2, 64, 64, 0, kv}, workload}).empty(), has)
          << name;
      EXPECT_EQ(!device_->variants(OpTask{LatentWork{latent, kv}, workload}).empty(), has) << name;
    }
    EXPECT_EQ(!device_->variants(OpTask{IndexerWork{{.heads = 4, .width = 64}, kv}, {.context = 37}}).empty(),
              has)
        << name;
  }
}

TEST_F(CpuDeviceTest, SparseAttentionGathersInDecode) {
  const AttentionWork work{.heads = 4, .kv_heads = 2, .d_k = 32, .d_v = 32, .kv = KvFormat::f16, .top_k = 20};
  expect_right(OpTask{work, {.batch = 2, .context = 90}});
  expect_right(OpTask{work, {.batch = 2, .context = 10}});
  EXPECT_TRUE(device_->variants(OpTask{work, {.phase = Phase::prefill, .context = 90}}).empty());
}

TEST_F(CpuDeviceTest, LongContextsAreCutAndMerged) {
  for (const KvFormat kv : {KvFormat::f16, KvFormat::int8}) {
    expect_right(OpTask{AttentionWork{4, 1, 32, 32, 0, kv}, {.batch = 1, .context = 2000}});
    expect_right(OpTask{LatentWork{{.heads = 4, .rank = 32, .rope = 8}, kv}, {.batch = 1, .context = 1000}});
  }
}

TEST_F(CpuDeviceTest, LatentAttentionAndTheIndexer) {
  for (const KvFormat kv : kCaches) {
    for (const LatentState& state :
         {LatentState{.heads = 8, .rank = 64, .rope = 16, .d_nope = 32, .d_v = 32},
          LatentState{.heads = 3, .rank = 20, .rope = 4, .window = 10},
          LatentState{.heads = 4, .rank = 32, .rope = 0, .top_k = 12},
          LatentState{.heads = 4, .rank = 32, .rope = 0, .top_k = 7, .every = 4}}) {
      SCOPED_TRACE(testing::Message() << kv_format_name(kv) << " rank " << state.rank);
      expect_right(OpTask{LatentWork{state, kv}, {.batch = 2, .context = 50}});
    }
    expect_right(OpTask{IndexerWork{{.heads = 8, .width = 32}, kv}, {.batch = 2, .context = 3000}});
    expect_right(OpTask{IndexerWork{{.heads = 4, .width = 20, .every = 4}, kv}, {.batch = 1, .context = 50}});
  }
  const Workload prompt{.phase = Phase::prefill, .context = 50};
  EXPECT_TRUE(device_->variants(OpTask{LatentWork{{.heads = 8, .rank = 64}}, prompt}).empty());
  LatentState state{.heads = 3, .rank = 32, .rope = 8, .d_nope = 16, .d_v = 24};
  expect_right(
      OpTask{LatentWork{state, KvFormat::int8}, {.phase = Phase::prefill, .batch = 2, .context = 70}});
  state.window = 20;
  expect_right(OpTask{LatentWork{state, KvFormat::bf16}, prompt});
  state.top_k = 20;
  EXPECT_TRUE(device_->variants(OpTask{LatentWork{state, KvFormat::bf16}, prompt}).empty());
  EXPECT_TRUE(device_->variants(OpTask{IndexerWork{{.heads = 8, .width = 64}}, prompt}).empty());
}

// What later steps cannot reach is not held.
TEST_F(CpuDeviceTest, AWindowBoundsTheCache) {
  const Workload workload{.batch = 1, .context = 4096};
  const AttentionWork all{8, 2, 64, 64, 0, KvFormat::f16};
  const AttentionWork windowed{8, 2, 64, 64, 512, KvFormat::f16};
  EXPECT_EQ(device_->footprint(OpTask{all, workload}).copy_bytes, 4096 * 2 * 128 * 2);
  EXPECT_EQ(device_->footprint(OpTask{windowed, workload}).copy_bytes, 512 * 2 * 128 * 2);
}

TEST_F(CpuDeviceTest, RoutersAndExperts) {
  const LinearWork router{.out = 8, .in = 64, .format = format("bf16")};
  expect_right(OpTask{RouterWork{router, 2}, {.batch = 5}});
  for (const char* name : {"f16", "q4_0"}) {
    for (const std::int64_t tokens : {1, 3, 40}) {
      const ExpertWork experts{
          .each = {.out = 48, .in = 65, .format = format(name)}, .total = 8, .per_token = 2};
      const Task task = OpTask{experts, {.batch = tokens}};
      EXPECT_EQ(device_->footprint(task).least_copies, std::min<std::int64_t>(8, 2 * tokens));
      expect_right(task, 16);
      OpTask whole{experts, {.batch = tokens}};
      whole.whole_layers = true;
      EXPECT_EQ(device_->footprint(whole).least_copies, 8);
      expect_right(whole, 16);
    }
  }
}

TEST_F(CpuDeviceTest, ExpertsMoveWhatTheirRoutingTouches) {
  const ExpertWork experts{
      .each = {.out = 16, .in = 32, .format = format("f16")}, .total = 8, .per_token = 2};
  const double each = 16 * 32 * 2;
  const auto one_token = device_->place(OpTask{experts, {.batch = 1}}, 16, 1);
  for (std::int64_t turn = 0; turn < 10; ++turn) EXPECT_EQ(one_token->cold_bytes(turn), 2 * each);
  // Eight tokens touch 7.2 in expectation; the mean over the draws is near, and none touches over eight.
  const auto eight_tokens = device_->place(OpTask{experts, {.batch = 8}}, 16, 1);
  double sum = 0;
  for (std::int64_t turn = 0; turn < 32; ++turn) {
    const double touched = eight_tokens->cold_bytes(turn) / each;
    EXPECT_GE(touched, 2);
    EXPECT_LE(touched, 8);
    sum += touched;
  }
  EXPECT_NEAR(sum / 32, experts_touched(8, 2, 8), 0.5);
}

TEST_F(CpuDeviceTest, ElementwiseOpsAndTheEmbedding) {
  using enum ElementwiseFunction;
  for (const ElementwiseWork& work :
       {ElementwiseWork{.function = rms_norm, .width = 100, .weights = 100},
        ElementwiseWork{.function = layer_norm, .width = 100, .weights = 200},
        ElementwiseWork{.function = layer_norm, .width = 100, .weights = 100},
        ElementwiseWork{.function = rotary, .width = 64, .rows_per_token = 5},
        ElementwiseWork{.function = activate, .width = 33, .inputs = 2, .activation = ActivationKind::silu},
        ElementwiseWork{.function = activate, .width = 33, .inputs = 2, .activation = ActivationKind::gelu},
        ElementwiseWork{.function = activate, .width = 33, .inputs = 1, .activation = ActivationKind::relu},
        ElementwiseWork{.function = add, .width = 40000, .inputs = 2},
        ElementwiseWork{.function = combine, .width = 33, .inputs = 3}}) {
    SCOPED_TRACE(static_cast<int>(work.function));
    expect_right(OpTask{work, {.batch = 3}}, 1);
  }
  for (const char* name : {"f32", "f16", "bf16", "q8_0", "q4_0"}) {
    expect_right(OpTask{EmbeddingWork{.rows = 50, .width = 96, .format = format(name)}, {.batch = 4}}, 1);
  }
}

TEST_F(CpuDeviceTest, ProbesAndBaselines) {
  for (const StreamPattern pattern : {StreamPattern::read, StreamPattern::copy, StreamPattern::scale,
                                      StreamPattern::add, StreamPattern::triad}) {
    expect_right(StreamTask{.pattern = pattern, .bytes = 1 << 20});
    const StreamTask bypassing{.pattern = pattern, .nontemporal = true, .bytes = 1 << 20};
    if (!device_->variants(bypassing).empty()) expect_right(bypassing);
  }
  for (const char* name : {"f32", "f16"}) {
    for (const std::int64_t n : {1, 16, 17, 100, 130, 200}) {
      SCOPED_TRACE(testing::Message() << name << " " << n);
      expect_right(AddTask{.n = n, .format = format(name)});
      expect_right(MatmulTask{.n = n, .format = format(name)});
    }
  }
}

TEST_F(CpuDeviceTest, WhatTakesLongIsLeftUndoneByAnInterrupt) {
  const Workload prompt{.phase = Phase::prefill, .batch = 1, .context = 100};
  const Task long_ones[] = {
      MatmulTask{.n = 256, .format = format("f32")},
      OpTask{LinearWork{.out = 64, .in = 64, .format = format("q8_0")}, prompt},
      OpTask{AttentionWork{.heads = 4, .kv_heads = 2, .d_k = 16, .d_v = 16}, prompt},
      OpTask{LatentWork{{.heads = 4, .rank = 32, .rope = 8, .d_nope = 16, .d_v = 16}, KvFormat::f16},
             prompt}};
  for (const Task& task : long_ones) {
    const auto operands = device_->place(task, 1, 1);
    for (std::size_t v = 0; v < device_->variants(task).size(); ++v) {
      {
        const InterruptGuard guard;
        std::raise(SIGINT);
        EXPECT_FALSE(operands->check(v).passed());
      }
      const InterruptGuard anew;
      EXPECT_TRUE(operands->check(v).passed());
    }
  }
}

TEST_F(CpuDeviceTest, AMatmulIsTheLibrarysAndOurs) {
  const std::vector<Variant> variants = device_->variants(MatmulTask{.n = 64, .format = format("f32")});
  ASSERT_EQ(variants.size(), 2U);
  EXPECT_EQ(variants[0].name, "blas");
  EXPECT_EQ(variants[1].name, "gemm");
  EXPECT_TRUE(device_->variants(MatmulTask{.n = 64, .format = format("q8_0")}).empty());
}

// What both ways need beside the tensors is counted: packed factors, and f16 ones widened.
TEST_F(CpuDeviceTest, AMatmulsFootprintHoldsWhatItPacks) {
  constexpr std::int64_t kN = 1000;
  constexpr std::int64_t kSquare = kN * kN * 4;
  const auto fixed = [&](const char* name) {
    return device_->footprint(MatmulTask{.n = kN, .format = format(name)}).fixed_bytes;
  };
  EXPECT_GE(fixed("f32"), 2 * kSquare);
  EXPECT_GE(fixed("f16") - fixed("f32"), 2 * kSquare);
}

// Blocks that an interrupt may fall between: a few a thread on machines of few cores.
TEST_F(CpuDeviceTest, ALargeMatmulIsRightAcrossItsBlocks) {
  const MatmulTask task{.n = 3500, .format = format("f32")};
  const auto operands = device_->place(task, 1, 42);
  for (std::size_t v = 0; v < device_->variants(task).size(); ++v)
    EXPECT_TRUE(operands->check(v).passed()) << device_->variants(task)[v].name;
}

TEST_F(CpuDeviceTest, RunsOnTheThreadsAskedFor) {
  const std::vector<int> allowed = allowed_cpus();
  const auto one = make_cpu_device({.choice = {.threads = 1, .cpus = {}}, .numa = NumaPolicy::interleave});
  EXPECT_EQ(one->info().threads, 1);
  EXPECT_EQ(one->info().cores, 1);
  EXPECT_EQ(one->info().cpus.size(), 1U);
  const auto last = make_cpu_device({.choice = {.cpus = {allowed.back()}}});
  EXPECT_EQ(last->info().cpus, std::vector<int>{allowed.back()});
  EXPECT_EQ(last->info().numa, NumaPolicy::local);
  const int too_many = static_cast<int>(allowed.size()) + 1;
  EXPECT_THROW(make_cpu_device({.choice = {.threads = too_many, .cpus = {}}}), InputError);
}

TEST_F(CpuDeviceTest, TellsWhatItIs) {
  EXPECT_EQ(device_->info().kind, "cpu");
  EXPECT_GE(device_->info().threads, 1);
  EXPECT_FALSE(device_->info().name.empty());
  EXPECT_GT(device_->info().available_bytes, 0);
}

}  // namespace
}  // namespace memwall
