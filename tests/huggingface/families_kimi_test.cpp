// Kimi Linear and Kimi K3.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "families_support.h"
#include "paths.h"

namespace memwall {
namespace {

const std::string kKimi =
    R"("num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 6, "kv_lora_rank": 4,
       "qk_nope_head_dim": 2, "qk_rope_head_dim": 2, "v_head_dim": 2, "num_experts": 4,
       "num_experts_per_token": 1, "moe_intermediate_size": 3, "num_shared_experts": 2,
       "first_k_dense_replace": 1, "moe_layer_freq": 1)";

std::string linear(const std::string& more) {
  return R"(, "linear_attn_config": {"full_attn_layers": [2], "kda_layers": [1], "num_heads": 2, "head_dim": 4,
      "short_conv_kernel_size": 4)" +
         more + "}";
}

TEST(KimiLinear, HasNoGateOnItsLatentAttention) {
  // Delta: norm, q, k, v, b, the decay's and the gate's two linears, convolution, two parameters, norm, o.
  const std::int64_t delta = 8 + 3 * 64 + 16 + 2 * (32 + 32) + 96 + 8 + 2 + 4 + 64;
  const std::int64_t dense = 8 + 3 * 8 * 6;
  const std::int64_t latent = 8 + 64 + 48 + 4 + 32 + 32;
  const std::int64_t experts = 8 + 4 * 3 * 8 * 3 + 3 * 8 * 6 + 4 * 8 + 4;
  EXPECT_EQ(total(read_small("kimi_linear", kKimi + linear(""))),
            delta + dense + latent + experts + 2 * 80 + 8);
}

TEST(KimiK3, GatesNarrowsItsExpertsAndAttendsOverDepth) {
  const std::int64_t depth = 2 * 8;  // a norm and a query, before each block and at the end
  const std::int64_t delta = 8 + 3 * 64 + 16 + (32 + 32) + 64 + 96 + 8 + 2 + 4 + 64 + depth;
  const std::int64_t dense = 8 + 3 * 8 * 6 + depth;
  const std::int64_t latent = 8 + 64 + 48 + 4 + 32 + 32 + 4 * 8 + depth;
  const std::int64_t experts = 8 + 4 * 3 * 4 * 3 + 2 * 4 * 8 + 4 + 3 * 8 * 6 + 4 * 8 + 4 + depth;
  const Model model = read_small("kimi_linear", kKimi + linear(R"(, "use_full_rank_gate": true)") +
                                                    R"(, "routed_expert_hidden_size": 4,
      "latent_moe_use_norm": true, "mla_use_output_gate": true, "attn_res_block_size": 1)");
  const std::int64_t whole = delta + dense + latent + experts + 2 * 80 + 8 + depth;
  EXPECT_EQ(total(model), whole);
  EXPECT_EQ(active(model), whole - 80 - 3 * 3 * 4 * 3);
  EXPECT_FALSE(model.approximate);
}

// Published: 2.8T parameters, 104B active; the sum of its checkpoint's tensors.
TEST(KimiK3, ThePublishedOne) {
  const std::string file = MEMWALL_SOURCE_DIR "/../shared/data/trials/configs/01-kimi-k3.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  const Model model = load_config(file);
  EXPECT_EQ(total(model), 2'779'484'476'000);
  EXPECT_EQ(active(model), 104'189'612'640);
  EXPECT_TRUE(model.warnings.empty());
}

}  // namespace
}  // namespace memwall
