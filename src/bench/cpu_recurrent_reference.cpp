#include "bench/cpu_recurrent_reference.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/pack.h"

namespace memwall {

void ReferenceRecurrence::compare(Comparison& comparison) const {
  const bool selective = form.update == cpu::StateUpdate::selective;
  const auto n = static_cast<std::int64_t>(state.size());
  const std::int64_t begin = row * form.width;
  const std::int64_t head = row / form.head_rows;
  // The steps forget at 1 - e^-0.03 at least, so at most 32 steps' errors are alive; one step's is that of
  // its sums, and from the second step on the rounding of a stored element.
  const double memory = static_cast<double>(std::min<std::size_t>(32, steps.size()));
  const double rounding = memory * dot_tolerance(n, 1);
  const double storing = narrow ? memory / 256 : 0;
  std::vector<double> now = state;
  double largest = 0;
  for (std::size_t token = 0; token < steps.size(); ++token) {
    const cpu::Recurrence& op = steps[token];
    const double decay = static_cast<double>(op.decay[selective ? row : head]);
    double value = static_cast<double>(op.v[row]) * (selective ? decay : 1);
    const auto key = [&](std::int64_t j) { return static_cast<double>(op.k[head * form.width + j]); };
    if (form.update == cpu::StateUpdate::delta) {
      double dot = 0;
      for (std::int64_t j = 0; j < n; ++j) dot += now[static_cast<std::size_t>(j)] * key(j);
      value = static_cast<double>(op.beta[head]) * (value - decay * dot);
    }
    double y = 0;
    double queries = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      double& s = now[static_cast<std::size_t>(j)];
      const double factor =
          selective ? std::exp(decay * static_cast<double>(cpu::bf16_to_f32(op.rates[begin + j]))) : decay;
      largest = std::max(largest, std::abs(s) + std::abs(value));
      s = factor * s + value * key(j);
      const double query = static_cast<double>(op.q[head * form.width + j]);
      y += s * query;
      queries += std::abs(query);
    }
    comparison.add(
        static_cast<double>(op.y[row]), y,
        (rounding + (token > 0 ? storing : 0)) * largest * queries + output_rounding * std::abs(y) + 1e-30);
  }
  for (std::size_t j = 0; j < now.size(); ++j)
    comparison.add(stored[j], now[j], (rounding + storing) * largest + 1e-30);
}

void ReferenceConvolution::compare(Comparison& comparison) const {
  for (std::size_t token = 0; token < outputs.size(); ++token) {
    double sum = 0;
    double magnitude = 0;
    for (std::size_t t = 0; t < kernel.size(); ++t) {
      const double product = inputs[token + t] * kernel[t];
      sum += product;
      magnitude += std::abs(product);
    }
    // Inputs of this launch's own earlier tokens were kept as bf16.
    comparison.add(outputs[token], sum,
                   dot_tolerance(static_cast<std::int64_t>(kernel.size()), magnitude) +
                       (token > 0 ? magnitude / 256 : 0) + output_rounding * std::abs(sum));
  }
  for (std::size_t t = 0; t < stored.size(); ++t) {
    const double expected = inputs[inputs.size() - stored.size() + t];
    comparison.add(stored[t], expected, std::abs(expected) / 256 + 1e-30);
  }
}

}  // namespace memwall
