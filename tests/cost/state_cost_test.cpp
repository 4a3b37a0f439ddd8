// What latents, indexers, recurrences and chunks cost: small shapes, worked by hand.
#include <gtest/gtest.h>

#include "cost/cost.h"

namespace memwall {
namespace {

Workload decode(std::int64_t batch, std::int64_t context) {
  return {.phase = Phase::decode, .batch = batch, .context = context};
}
Workload prefill(std::int64_t batch, std::int64_t context) {
  return {.phase = Phase::prefill, .batch = batch, .context = context};
}

const LatentState kLatent{.heads = 4, .rank = 6, .rope = 2, .d_nope = 3, .d_v = 5};

TEST(LatentCost, EveryHeadReadsTheSameEntry) {
  const Cost cost = cost_of(LatentWork{.state = kLatent}, decode(3, 10));
  EXPECT_EQ(cost.kv_read_bytes, 3 * 10 * 8 * 2);
  EXPECT_EQ(cost.kv_write_bytes, 3 * 8 * 2);
  EXPECT_EQ(cost.flops, 2 * 3 * 4 * 10 * (2 * 6 + 2));
  EXPECT_EQ(cost.weight_bytes, 0);
}

TEST(LatentCost, AnIndexersChoiceBoundsWhatIsRead) {
  LatentState chosen = kLatent;
  chosen.top_k = 4;
  const Cost cost = cost_of(LatentWork{.state = chosen}, decode(1, 10));
  EXPECT_EQ(cost.kv_read_bytes, 4 * 16);
  EXPECT_EQ(cost.flops, 2 * 4 * 4 * 14);
  EXPECT_EQ(cost_of(LatentWork{.state = chosen}, decode(1, 3)).kv_read_bytes, 3 * 16);
}

TEST(LatentCost, ACompressedEntryStandsForSeveralTokens) {
  LatentState compressed = kLatent;
  compressed.every = 4;
  const Cost cost = cost_of(LatentWork{.state = compressed}, decode(2, 10));
  EXPECT_EQ(cost.kv_read_bytes, 2 * 3 * 16);   // 10 tokens are 3 entries
  EXPECT_EQ(cost.kv_write_bytes, 2 * 16 / 4);  // a token writes a quarter of one
}

TEST(LatentCost, PrefillExpandsTheLatents) {
  const Cost cost = cost_of(LatentWork{.state = kLatent}, prefill(2, 7));
  EXPECT_EQ(cost.flops, 2 * 2 * 4 * (3 + 2 + 5) * 28);  // 28 pairs of 7 tokens
  EXPECT_EQ(cost.kv_write_bytes, 2 * 7 * 16);
  EXPECT_EQ(cost.kv_read_bytes, 0);
}

TEST(LatentCost, DeepSeekV3sIntensityPassesTheRidgeOfAnH200) {
  const LatentState v3{.heads = 128, .rank = 512, .rope = 64};
  const Cost cost = cost_of(LatentWork{.state = v3}, decode(1, 4096));
  EXPECT_NEAR(cost.flops / cost.kv_read_bytes, 241.8, 0.1);
}

TEST(LatentCost, Int8HasOneScaleAnEntry) {
  EXPECT_EQ(cost_of(LatentWork{.state = kLatent, .kv = KvFormat::int8}, decode(1, 10)).kv_read_bytes,
            10 * (8 + 2));
}

TEST(IndexerCost, ScoresEveryKey) {
  const Cost cost = cost_of(IndexerWork{.state = {.heads = 3, .width = 8}}, decode(2, 10));
  EXPECT_EQ(cost.kv_read_bytes, 2 * 10 * 16);
  EXPECT_EQ(cost.kv_write_bytes, 2 * 16);
  EXPECT_EQ(cost.flops, 2 * 2 * 3 * 8 * 10);
}

TEST(RecurrentCost, DoesNotGrowWithTheContext) {
  const RecurrentWork work{.state = {.elements = 100, .conv_elements = 30, .flops = 700}, .weight_bytes = 12};
  const Cost cost = cost_of(work, decode(3, 10));
  EXPECT_EQ(cost.state_bytes, 2 * 3 * (100 * 4 + 30 * 2));
  EXPECT_EQ(cost.weight_bytes, 12);
  EXPECT_EQ(cost.flops, 3 * 700);
  EXPECT_EQ(cost_of(work, decode(3, 100'000)).bytes(), cost.bytes());
  EXPECT_EQ(cost.compulsory_bytes(), cost.state_bytes + 12);
}

TEST(RecurrentCost, APromptWritesItOnce) {
  const RecurrentWork work{.state = {.elements = 100, .element_bytes = 2, .flops = 700}};
  const Cost cost = cost_of(work, prefill(3, 50));
  EXPECT_EQ(cost.state_bytes, 3 * 200);
  EXPECT_EQ(cost.flops, 3 * 50 * 700);
}

AttentionWork plain() { return {.heads = 4, .kv_heads = 2, .d_k = 8, .d_v = 6}; }

TEST(ChunkedAttention, SeesItsOwnChunk) {
  AttentionWork chunked = plain();
  chunked.chunk = 8;
  EXPECT_EQ(effective_context(chunked, 7), 7);
  EXPECT_EQ(effective_context(chunked, 8), 0);  // the new token opens a chunk
  EXPECT_EQ(effective_context(chunked, 19), 3);
  EXPECT_EQ(tokens_kept(chunked, 8), 8);
  EXPECT_EQ(tokens_kept(chunked, 19), 3);
  EXPECT_EQ(cost_of(chunked, decode(1, 19)).kv_read_bytes, 3 * 2 * 14 * 2);
  EXPECT_EQ(attention_pairs(chunked, 19), 2 * 36 + 6);  // 8·9/2 twice, 3·4/2
}

TEST(SparseAttention, KeepsAllAndReadsTheChosen) {
  AttentionWork sparse = plain();
  sparse.top_k = 5;
  EXPECT_EQ(effective_context(sparse, 19), 5);
  EXPECT_EQ(tokens_kept(sparse, 19), 19);
  EXPECT_EQ(cost_of(sparse, prefill(1, 19)).kv_write_bytes, 19 * 56);
}

TEST(SharedAttention, ReadsAnotherLayersCacheAndWritesNone) {
  AttentionWork shared = plain();
  shared.shared = true;
  const Cost cost = cost_of(shared, decode(2, 10));
  EXPECT_EQ(cost.kv_read_bytes, 2 * 10 * 56);
  EXPECT_EQ(cost.kv_write_bytes, 0);
}

TEST(Sinks, AreWeightsOfTheAttention) {
  AttentionWork sinks = plain();
  sinks.weight_bytes = 8;
  EXPECT_EQ(cost_of(sinks, decode(2, 10)).weight_bytes, 8);
}

TEST(StoredBytes, AFilesCountsWin) {
  LinearWork linear{.out = 3, .in = 5};
  linear.stored_bytes = 77;
  EXPECT_EQ(cost_of(linear, decode(1, 1)).weight_bytes, 77);
  const ExpertWork experts{.each = linear, .total = 8, .per_token = 2};
  EXPECT_EQ(cost_of(experts, decode(1, 1)).weight_bytes, 2 * 77);
}

}  // namespace
}  // namespace memwall
