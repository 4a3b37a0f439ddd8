// How the CPU runs a recurrent layer's step, which a model gives by its sizes alone.
#pragma once

#include <cstdint>

#include "cost/cost.h"
#include "kernels/cpu/recurrent.h"

namespace memwall {

// A state's sizes say what it moves but not what it is, so the kernel's form follows from the FLOPs an
// element (docs/formulas.md): 7 and more where the layer has a weight an element of the state (A: Mamba,
// RG-LRU) run the selective update; 7 and more without one (delta nets, RWKV-7) the delta rule; fewer
// (Mamba-2, linear attention, RWKV) a decay. What a layer computes beyond its form is not run, nor counted in
// its FLOPs; it takes no bytes of the state.
struct RecurrenceForm {
  cpu::StateUpdate update = cpu::StateUpdate::decay;
  std::int64_t width = 0;      // of a row: 16 where selective, as Mamba's states; else a key's 128
  std::int64_t rows = 0;       // the last one may be shorter
  std::int64_t head_rows = 0;  // rows that share a key and a query
  std::int64_t channels = 0;   // of the convolution; 0: there is none
  // Of the convolution: 4 or 3 where its FLOPs then leave a whole number an element, else 2, a token shift.
  std::int64_t taps = 0;
  bool kernel_is_weight = false;  // the convolution's kernel is among the op's weights
  double flops = 0;               // a token, as run

  std::int64_t heads() const { return rows > 0 ? (rows + head_rows - 1) / head_rows : 0; }
};

// False where a state's elements are of a width that no kernel has: only 2 bytes (bf16) and 4 (f32) are read.
bool has_recurrence(const RecurrentWork& work);

RecurrenceForm recurrence_form(const RecurrentWork& work);

// Where a copy keeps its parts, in bytes from its start; every part starts a cache line.
struct RecurrentLayout {
  std::int64_t state_bytes = 0;  // a sequence's
  std::int64_t conv_bytes = 0;   // a sequence's
  std::int64_t conv = 0;         // the sequences' states, then their convolutions'
  std::int64_t weights = 0;      // then the weights
  std::int64_t copy_bytes = 0;
};

// Throws std::overflow_error where a copy's size cannot be counted.
RecurrentLayout recurrent_layout(const RecurrentWork& work, std::int64_t sequences);

// Tokens with inputs of their own; later ones use them again.
inline constexpr std::int64_t kRecurrentInputSets = 8;

// Bytes of a step's activations.
std::int64_t recurrent_activation_bytes(const RecurrentWork& work, std::int64_t tokens);

}  // namespace memwall
