#include "kernels/cuda/router.cuh"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/cpu/elementwise.h"
#include "load/load_model.h"
#include "tests/cuda/element_support.h"
#include "tests/support.h"

namespace memwall::cuda {
namespace {

template <class T>
constexpr LogitType kType = std::is_same_v<T, float>  ? LogitType::f32
                            : std::is_same_v<T, Half> ? LogitType::f16
                                                      : LogitType::bf16;

template <class T>
void routes_as_the_cpu(Executor& executor, const GpuVector<T>& logits, std::int64_t rows,
                       std::int64_t experts, std::int64_t per_token) {
  SCOPED_TRACE(std::to_string(per_token) + " of " + std::to_string(experts));
  const auto count = static_cast<std::size_t>(rows * per_token);
  std::vector<std::int32_t> indices(count, -1);
  GpuVector<float> weights = nan_elements<float>(rows * per_token);
  RouterParams params;
  params.logits = logits.data();
  params.indices = indices.data();
  params.weights = weights.data();
  params.rows = rows;
  params.experts = static_cast<std::int32_t>(experts);
  params.per_token = static_cast<std::int32_t>(per_token);
  ASSERT_TRUE(can_route(experts, per_token));
  run_on(executor, router_launch(kType<T>, params));

  std::vector<float> wide;
  for (const T& logit : logits) wide.push_back(widen(logit));
  std::vector<std::int32_t> expected(count);
  std::vector<float> shares(count);
  cpu::top_k_softmax(wide.data(), experts, per_token, expected.data(), shares.data(), 0, rows);
  EXPECT_EQ(indices, expected);
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    const auto logit = [&](std::int64_t rank) {
      const auto at = static_cast<std::size_t>(row * per_token + rank);
      return static_cast<double>(wide[static_cast<std::size_t>(row * experts + expected[at])]);
    };
    for (std::int64_t rank = 0; rank < per_token; ++rank) sum += std::exp(logit(rank) - logit(0));
    for (std::int64_t rank = 0; rank < per_token; ++rank) {
      const double share = std::exp(logit(rank) - logit(0)) / sum;
      const auto at = static_cast<std::size_t>(row * per_token + rank);
      const auto weight = static_cast<double>(weights[at]);
      EXPECT_TRUE(std::isnan(share) ? std::isnan(weight) : std::abs(weight - share) <= 2e-6) << share;
    }
  }
}

TEST(CudaRouter, ChoosesAsTheCpuDoes) {
  in_all_orders([](Executor& executor) {
    for (const auto& [experts, per_token] :
         {std::pair{1, 1}, {8, 2}, {31, 4}, {64, 64}, {160, 6}, {257, 40}}) {
      routes_as_the_cpu(executor, random_elements<BFloat16>(2 * experts, 1), 2, experts, per_token);
      routes_as_the_cpu(executor, random_elements<float>(experts, 2), 1, experts, per_token);
      routes_as_the_cpu(executor, random_elements<Half>(experts, 3), 1, experts, per_token);
    }
  });
  Executor executor;
  routes_as_the_cpu(executor, random_elements<BFloat16>(512, 5), 1, 512, 10);
  routes_as_the_cpu(executor, random_elements<BFloat16>(5000, 4), 1, 5000, 70);
}

TEST(CudaRouter, TiesInfinitiesAndNan) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  in_all_orders([&](Executor& executor) {
    routes_as_the_cpu<float>(executor, GpuVector<float>(70, 0.5F), 1, 70, 5);
    routes_as_the_cpu<float>(executor, {-0.0F, 0.0F, -0.0F, -1.0F, 0.0F}, 1, 5, 5);
    routes_as_the_cpu<float>(executor, {1, nan, -inf, 3, nan, 2, -3e38F, 3e38F}, 1, 8, 6);
    routes_as_the_cpu<float>(executor, {1, nan, -inf, 3, nan, 2, -3e38F, 3e38F}, 1, 8, 8);
    routes_as_the_cpu<float>(executor, {nan, nan, nan}, 1, 3, 2);
    routes_as_the_cpu<float>(executor, {1, inf, 2, inf}, 1, 4, 3);
    routes_as_the_cpu<float>(executor, {-nan, 1, -5, -4}, 1, 4, 4);
  });
}

TEST(CudaRouter, RoutersOfTheZooFit) {
  const DataVariable data;
  int routers = 0;
  for (const Model& model : zoo()) {
    for (const Op& op : lower(model)) {
      const auto* work = std::get_if<RouterWork>(&op.work);
      if (work == nullptr) continue;
      ++routers;
      EXPECT_TRUE(can_route(work->linear.out, work->per_token)) << model.name;
    }
  }
  EXPECT_GT(routers, 20);
  EXPECT_FALSE(can_route(8, 9));
  EXPECT_FALSE(can_route(8, 0));
  EXPECT_FALSE(can_route(12288, 1));
  EXPECT_TRUE(can_route(12287, 1));
}

}  // namespace
}  // namespace memwall::cuda
