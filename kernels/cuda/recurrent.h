// A step of a recurrent layer: its matrix state updated and read out, and its short convolution, as
// kernels/cpu/recurrent.h defines them. A state is read once and written once, however many tokens a launch
// runs: they follow one another over rows that stay in registers.
#pragma once

#include <cstdint>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

enum class RecurrentKind : std::uint8_t { decay, delta, selective, convolution };

// Elements from a row of the state to the next. Rows are filled up to it: the last one, or the only one.
constexpr int recurrent_width(RecurrentKind kind) { return kind == RecurrentKind::selective ? 16 : 128; }

constexpr unsigned kRecurrentThreads = 128;
// Rows that share a key and a query, a multiple of any warp's rows.
constexpr int kRecurrentHeadRows = 64;

// Activations are bf16, but for decays and steps. Those of token t of sequence s are set
// (s * tokens + t) % sets of the inputs. All arrays are 16-byte aligned. Fewer than 2^30 tokens and channels,
// those of a convolution's state included.
struct StateUpdateParams {
  void* state = nullptr;          // [sequences, rows, width], f32 or bf16, 16-byte aligned rows
  const void* rates = nullptr;    // A, bf16 and at most 0, [rows, width]; of selective only
  const float* decay = nullptr;   // a, [sets, heads]; of selective: the step, [sets, rows]
  const float* beta = nullptr;    // [sets, heads]; of delta only
  const void* k = nullptr;        // [sets, heads, width]
  const void* q = nullptr;        // [sets, heads, width]
  const void* v = nullptr;        // [sets, rows]
  void* y = nullptr;              // [sequences, tokens, rows]
  std::int64_t elements = 0;      // of a sequence, without what fills up the last row
  std::int64_t state_stride = 0;  // bytes from a sequence's state to the next
  int rows = 0;
  int heads = 0;  // of kRecurrentHeadRows rows; of selective 1, of all rows
  int sequences = 0;
  int tokens = 1;
  int sets = 1;
};

// y[c] = the sum over t of weights[t][c] * input[t][c], oldest first.
struct ShortConvParams {
  void* state = nullptr;          // [sequences, taps - 1, channels] bf16, oldest first; shifted
  const void* weights = nullptr;  // [taps, channels] bf16
  const void* x = nullptr;        // [sets, channels] bf16
  void* y = nullptr;              // [sequences, tokens, channels] bf16
  std::int64_t state_stride = 0;  // bytes
  int channels = 0;               // may be 0
  int taps = 2;                   // 2 to 4
  int sequences = 0;
  int tokens = 1;
  int sets = 1;
  // The layer's other parameters, which no arithmetic here needs: they are read, as a step does.
  const std::uint32_t* rest = nullptr;  // 16-byte aligned
  std::int64_t rest_words = 0;
  std::uint32_t* sink = nullptr;  // one word, written or not
};

struct RecurrentLaunch {
  RecurrentKind kind = RecurrentKind::decay;
  bool narrow = false;  // the state is bf16
  int vectors = 4;      // 16-byte loads in flight a lane, of a state: 1 or 4; channels a thread: 1 or 8
  StateUpdateParams state;
  ShortConvParams convolution;
  Geometry geometry;
};

// Rows that a warp updates at once.
constexpr int recurrent_rows_a_warp(RecurrentKind kind, bool narrow, int vectors) {
  return vectors * kWarp * (narrow ? 8 : 4) / recurrent_width(kind);
}

// With its geometry: four loads in flight where that leaves every multiprocessor two blocks, else one, so
// that a small state spreads over the card.
RecurrentLaunch state_update_launch(RecurrentKind kind, bool narrow, const StateUpdateParams& params,
                                    int multiprocessors);
RecurrentLaunch short_conv_launch(const ShortConvParams& params);

}  // namespace memwall::cuda
