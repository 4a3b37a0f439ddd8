// Recurrent layers in float64, which the CPU's kernels are held to.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/cpu_data.h"
#include "bench/cpu_recurrent.h"

namespace memwall {

// The steps of one row of a state.
struct ReferenceRecurrence {
  RecurrenceForm form;
  bool narrow = false;  // elements are stored as bf16
  std::int64_t row = 0;
  std::vector<cpu::Recurrence> steps;  // a token each, as they were run
  std::vector<double> state;           // the row's elements before the first step
  std::vector<double> stored;          // and after the last, as the kernel left them
  double output_rounding = 0;          // relative, of y: 0 where it is f32

  // Adds the row's output of every step and the state it ends with.
  void compare(Comparison& comparison) const;
};

// One channel of a short convolution.
struct ReferenceConvolution {
  std::vector<double> kernel;   // a tap each
  std::vector<double> inputs;   // those kept from before, then a token each
  std::vector<double> outputs;  // a token each, as the kernel left them
  std::vector<double> stored;   // the inputs it kept
  double output_rounding = 0;   // relative, of the outputs

  void compare(Comparison& comparison) const;
};

}  // namespace memwall
