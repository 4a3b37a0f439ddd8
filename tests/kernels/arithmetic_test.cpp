#include "kernels/cpu/arithmetic.h"

#include <gtest/gtest.h>

#include "support.h"

namespace memwall::cpu {
namespace {

class Arithmetic : public OnEverySet {};
MEMWALL_ON_EVERY_SET(Arithmetic);

constexpr Multiply kTypes[] = {Multiply::f32, Multiply::f16, Multiply::bf16, Multiply::int8};

// Every product of every lane, chain and round is in the sum: exact, so a dropped or doubled one shows.
TEST_P(Arithmetic, EveryProductOfEveryRoundIsInTheSum) {
  for (const Multiply type : kTypes) {
    for (const MultiplyWay& way : multiply_ways(type)) {
      for (const std::int64_t rounds : {0, 1, 2, 31, 32, 33, 2049, 4096, 4097, 10'000}) {
        EXPECT_EQ(way.run(rounds), static_cast<double>(way.products_a_round) * static_cast<double>(rounds) *
                                       multiply_product(type))
            << way.name << " " << rounds;
      }
    }
  }
}

TEST_P(Arithmetic, EveryWaysRoundDividesTheGrain) {
  for (const Multiply type : kTypes) {
    for (const MultiplyWay& way : multiply_ways(type)) {
      ASSERT_GT(way.products_a_round, 0) << way.name;
      EXPECT_EQ(kMultiplyGrain % way.products_a_round, 0) << way.name;
    }
  }
}

// On x86 and Arm bytes are multiplied by every set that the kernels are compiled for but the plainest.
TEST_P(Arithmetic, F32IsThereOnEverySetAndBytesWhereASetHasThem) {
  ASSERT_EQ(multiply_ways(Multiply::f32).size(), 1U);
  const std::string set = instruction_set();
  if (set == "AVX3_DL" || set == "AVX3" || set == "AVX2" || set == "SSE4") {
    ASSERT_FALSE(multiply_ways(Multiply::int8).empty());
    EXPECT_NE(multiply_ways(Multiply::int8).front().name.find(set), std::string::npos);
  }
}

}  // namespace
}  // namespace memwall::cpu
