// The form that a recurrent layer's step takes on the CPU, and where its copies keep their parts.
#include <algorithm>

#include "bench/cpu_recurrent.h"
#include "format/checked.h"

namespace memwall {
namespace {

constexpr std::int64_t kLine = 64;

std::int64_t to_line(std::int64_t bytes) { return checked_mul(div_up(bytes, kLine), kLine); }

}  // namespace

RecurrenceForm recurrence_form(const RecurrentWork& work) {
  constexpr std::int64_t kKeyWidth = 128;
  constexpr std::int64_t kSelectiveWidth = 16;
  constexpr std::int64_t kHeadRows = 64;
  constexpr std::int64_t kLeastDeltaFlops = 7;
  const RecurrentState& state = work.state;
  RecurrenceForm form;
  std::int64_t flops = state.flops;
  if (state.conv_elements > 0) {
    form.taps = 2;
    for (const std::int64_t taps : {4, 3}) {
      if (state.conv_elements % (taps - 1) != 0) continue;
      const std::int64_t channels = state.conv_elements / (taps - 1);
      const std::int64_t others = flops - 2 * taps * channels;
      // Without a state, a gated short convolution: 2 a channel for its gates.
      const bool fits =
          state.elements > 0 ? others > 0 && others % state.elements == 0 : others == 2 * channels;
      if (!fits) continue;
      form.taps = taps;
      flops = others;
      break;
    }
    form.channels = state.conv_elements / (form.taps - 1);
    form.kernel_is_weight = work.weight_bytes >= 2 * form.taps * form.channels;
    form.flops = 2 * static_cast<double>(form.taps) * static_cast<double>(form.channels);
  }
  if (state.elements == 0) return form;
  const std::int64_t kernel_bytes = form.kernel_is_weight ? 2 * form.taps * form.channels : 0;
  if (flops / state.elements < kLeastDeltaFlops) {
    form.update = cpu::StateUpdate::decay;
  } else {
    const bool has_rates = work.weight_bytes - kernel_bytes >= 2 * state.elements;
    form.update = has_rates ? cpu::StateUpdate::selective : cpu::StateUpdate::delta;
  }
  const bool selective = form.update == cpu::StateUpdate::selective;
  form.width = std::min(selective ? kSelectiveWidth : kKeyWidth, state.elements);
  form.rows = div_up(state.elements, form.width);
  form.head_rows = selective ? form.rows : std::min(kHeadRows, form.rows);
  form.flops += static_cast<double>(state.elements) * (form.update == cpu::StateUpdate::decay ? 5 : 7);
  return form;
}

RecurrentLayout recurrent_layout(const RecurrentWork& work, std::int64_t sequences) {
  RecurrentLayout layout;
  layout.state_bytes = to_line(checked_mul(work.state.elements, work.state.element_bytes));
  layout.conv_bytes = to_line(checked_mul(work.state.conv_elements, 2));
  layout.conv = checked_mul(sequences, layout.state_bytes);
  layout.weights = checked_add(layout.conv, checked_mul(sequences, layout.conv_bytes));
  layout.copy_bytes = checked_add(layout.weights, to_line(work.weight_bytes));
  return layout;
}

std::int64_t recurrent_activation_bytes(const RecurrentWork& work, std::int64_t tokens) {
  const RecurrenceForm form = recurrence_form(work);
  const std::int64_t inputs =
      2 * form.heads() * (form.width + 1) + 2 * form.rows + form.channels * (1 + form.taps);
  const std::int64_t outputs = form.rows + form.channels;
  return checked_mul(4, checked_add(checked_mul(std::min(kRecurrentInputSets, tokens), inputs),
                                    checked_mul(tokens, outputs)));
}

bool has_recurrence(const RecurrentWork& work) {
  return work.state.elements == 0 || work.state.element_bytes == 2 || work.state.element_bytes == 4;
}

}  // namespace memwall
