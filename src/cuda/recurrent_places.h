// Where a recurrent layer's operands on a GPU keep what.
#pragma once

#include <cstdint>

#include "bench/cpu_recurrent.h"
#include "bench/device.h"
#include "kernels/cuda/recurrent.h"

namespace memwall::cuda {

// In bytes from the beginning of a copy, of the inputs and of the outputs; each part begins at a multiple of
// 256. The state's rows are filled up to the kernels' width. Throws std::overflow_error where a size cannot
// be counted.
struct RecurrentPlaces {
  RecurrentPlaces(const RecurrentWork& work, const Workload& workload);

  RecurrenceForm form;
  RecurrentKind kind;           // of the state's update
  std::int64_t width;           // elements from a row to the next
  std::int64_t sets;            // inputs that differ
  std::int64_t rest_words = 0;  // weights that no arithmetic needs

  // A copy: the sequences' states and convolutions, then weights.
  std::int64_t state = 0;
  std::int64_t state_stride = 0;  // from a sequence to the next
  std::int64_t conv = 0;
  std::int64_t conv_stride = 0;
  std::int64_t kernel = 0;
  std::int64_t rates = 0;
  std::int64_t rest = 0;
  std::int64_t copy_bytes = 0;

  // The inputs, each for all sets.
  std::int64_t decay = 0;
  std::int64_t beta = 0;
  std::int64_t k = 0;
  std::int64_t q = 0;
  std::int64_t v = 0;
  std::int64_t x = 0;
  std::int64_t hot_kernel = 0;  // where it is none of the weights
  std::int64_t sink = 0;
  std::int64_t input_bytes = 0;

  std::int64_t y = 0;
  std::int64_t conv_y = 0;
  std::int64_t output_bytes = 0;
};

}  // namespace memwall::cuda
