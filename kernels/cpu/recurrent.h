// One token's step of a recurrent layer on the CPU: its matrix state updated and read out, and its short
// convolution. A state is read once and written once, whatever the update.
//
// Pointers need no alignment beyond their element's. Calls on disjoint ranges may run at once. Nothing is
// allocated.
#pragma once

#include <cstdint>

namespace memwall::cpu {

// How a row S of the state (a value channel v, with its head's key k and query q) becomes the next one, and
// the FLOPs an element of it takes, the read-out y = S·q (2) included.
enum class StateUpdate : std::uint8_t {
  // S = a S + v k: Mamba-2 (arXiv:2405.21060), lightning attention, RWKV-5. 5: decay, v k (2).
  decay,
  // S = a S + b (v - a S·k) k, gated delta nets (arXiv:2412.06464). 7: decay, S·k (2), the correction (2).
  delta,
  // S[j] = exp(d A[j]) S[j] + d v k[j] with a step d a row: Mamba (arXiv:2312.00752). 7: d A, exp, decay,
  // d v k (2).
  selective,
};

struct Recurrence {
  StateUpdate update = StateUpdate::decay;
  std::int64_t element_bytes = 4;        // of the state: 4, f32, or 2, bf16 (rounded to nearest even)
  void* state = nullptr;                 // [elements]: rows of `width`, the last one may be shorter
  std::int64_t elements = 0;             //
  std::int64_t width = 0;                // of a key
  std::int64_t head_rows = 0;            // consecutive rows that share k, q, decay and beta
  const float* decay = nullptr;          // a, [heads]; of selective: d, [rows], not negative
  const float* beta = nullptr;           // b, [heads]; of delta only
  const std::uint16_t* rates = nullptr;  // A, bf16 and at most 0, [elements]; of selective only
  const float* k = nullptr;              // [heads, width]
  const float* q = nullptr;              // [heads, width]
  const float* v = nullptr;              // [rows]
  float* y = nullptr;                    // [rows]
};

std::int64_t recurrence_rows(const Recurrence& op);

// Updates the rows [first, last). Throws std::invalid_argument where the range or a size is out of bounds.
// Each row's result is the same however the rows are split between calls.
void update_state(const Recurrence& op, std::int64_t first, std::int64_t last);

// A causal depthwise convolution over the last `taps` inputs of each channel:
// y[c] = the sum over t of weights[t][c] * input[t][c], oldest first, the newest input being x.
struct ShortConv {
  std::int64_t channels = 0;
  std::int64_t taps = 0;
  std::uint16_t* state = nullptr;          // [taps - 1, channels] bf16, oldest first; shifted by one
  const std::uint16_t* weights = nullptr;  // [taps, channels] bf16
  const float* x = nullptr;                // [channels]; kept as bf16, used as it is
  float* y = nullptr;                      // [channels]
};

// The channels [first, last). Throws as update_state does.
void short_conv(const ShortConv& op, std::int64_t first, std::int64_t last);

}  // namespace memwall::cpu
