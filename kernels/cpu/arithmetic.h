// How many multiply-adds a core does with everything in registers, in each type that engines multiply in: the
// arithmetic that no kernel can pass. Operands are set so that every product is the same number, whatever the
// instruction, and every sum is exact: a probe that skips a lane, a chain or a round shows in its result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memwall::cpu {

// What is multiplied. Sums are f32, of f16 in f16 (where a core adds in f16 it is the faster way), of int8 in
// 32 bits.
enum class Multiply : std::uint8_t { f32, f16, bf16, int8 };

struct MultiplyWay {
  std::string name;  // the instruction: "vpdpbusd, AVX-VNNI"
  std::int64_t products_a_round = 0;
  // Runs so many rounds on the calling thread and returns the sum of all accumulators.
  double (*run)(std::int64_t rounds) = nullptr;

  // What run() must return, exactly: products_a_round × rounds × multiply_product(type).
};

// Every way this CPU has for the type, in no order; none where it has none (f16 without f16 arithmetic).
// Throws nothing.
std::vector<MultiplyWay> multiply_ways(Multiply type);

// The value of each product: 1 of floats, 126 of bytes.
double multiply_product(Multiply type);

// Every way's products a round divide this.
inline constexpr std::int64_t kMultiplyGrain = std::int64_t{3} << 20;

}  // namespace memwall::cpu
