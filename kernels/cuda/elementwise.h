// The small operations between the linears, on activations. They stay in the L2 from one op to the next, so
// that what counts is latency: few instructions between launch and store, and no more reads than needed.
// Semantics as kernels/cpu/elementwise.h; sums and functions in f32, outputs rounded to nearest even.
#pragma once

#include <cstdint>
#include <variant>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

// Of the activations. f32 is for add alone.
enum class ElementwiseType : std::uint8_t { f32, f16, bf16 };

// y = x / rms(x) * weight (epsilon 1e-6), or, where `layer`, y = (x - mean) / sqrt(variance + 1e-5) * weight
// + bias; x and y are [rows, width]. weight and bias are bf16; bias may be null. `vectors`: rows and weights
// are 16-byte aligned, and read so; set by the launch's maker.
struct NormParams {
  const void* x = nullptr;
  const std::uint16_t* weight = nullptr;
  const std::uint16_t* bias = nullptr;
  void* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  bool layer = false;
  bool vectors = false;
};

// Rotates pairs (i, i + width/2) of each row of x [rows, width] in place, by the angles whose cosines and
// sines are given ([width/2] each, one position for all rows).
struct RotaryParams {
  void* x = nullptr;
  const float* cosines = nullptr;
  const float* sines = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  bool vectors = false;
};

// gelu in the tanh form.
enum class ElementwiseActivation : std::uint8_t { silu, gelu, relu };
// y = activation(gate) * up, or activation(gate) where up is null, over `elements`. `vectors` of 16 bytes
// come first, single elements after them.
struct ActivateParams {
  const void* gate = nullptr;
  const void* up = nullptr;
  void* y = nullptr;
  std::int64_t elements = 0;
  ElementwiseActivation activation = ElementwiseActivation::silu;
  std::int64_t vectors = 0;
};

// y = a + b.
struct AddParams {
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  std::int64_t elements = 0;
  std::int64_t vectors = 0;
};

// y[r] = the sum over i of shares[r, i] * x[r * inputs + i]: a token's expert outputs, weighted. x is
// [rows, inputs, width]; shares are f32, `share_pitch` from a row's to the next row's (0: all rows share).
struct CombineParams {
  const void* x = nullptr;
  const float* shares = nullptr;
  void* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::int64_t width = 0;
  std::int64_t share_pitch = 0;
  bool vectors = false;
};

struct ElementwiseLaunch {
  ElementwiseType type = ElementwiseType::bf16;
  std::variant<NormParams, RotaryParams, ActivateParams, AddParams, CombineParams> params;
  Geometry geometry{};
};

constexpr unsigned kFlatThreads = 128;      // of all but the norms: small blocks reach more multiprocessors
constexpr unsigned kNormWarpThreads = 128;  // four rows, a warp each
constexpr unsigned kNormBlockThreads = 512;
constexpr int kNormHeld = 4;  // vectors of a row that a thread keeps from pass to pass

// Whether a warp takes a row of that width rather than a block: where its registers hold the row.
inline bool norm_by_warp(std::int64_t width) { return width <= kWarp * 8 * kNormHeld; }

// Launches with their geometry, and with `vectors` set where shapes and pointers allow 16-byte accesses.
// type is f16 or bf16, of add f32 too.
ElementwiseLaunch elementwise_launch(ElementwiseType type, NormParams params);
ElementwiseLaunch elementwise_launch(ElementwiseType type, RotaryParams params);
ElementwiseLaunch elementwise_launch(ElementwiseType type, ActivateParams params);
ElementwiseLaunch elementwise_launch(ElementwiseType type, AddParams params);
ElementwiseLaunch elementwise_launch(ElementwiseType type, CombineParams params);

}  // namespace memwall::cuda
