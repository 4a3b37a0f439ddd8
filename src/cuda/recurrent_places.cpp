#include "cuda/recurrent_places.h"

#include <algorithm>

#include "format/checked.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kPart = 256;  // what a part's beginning is a multiple of
constexpr std::int64_t kBFloat16Bytes = 2;
constexpr std::int64_t kFloatBytes = 4;

std::int64_t to_part(std::int64_t bytes) { return checked_mul(div_up(bytes, kPart), kPart); }

RecurrentKind kind_of(const RecurrenceForm& form) {
  switch (form.update) {
    case cpu::StateUpdate::decay:
      return RecurrentKind::decay;
    case cpu::StateUpdate::delta:
      return RecurrentKind::delta;
    case cpu::StateUpdate::selective:
      break;
  }
  return RecurrentKind::selective;
}

// Parts that follow one another, each beginning at a multiple of kPart.
class Parts {
 public:
  // The beginning of a part of so many bytes.
  std::int64_t add(std::int64_t bytes) {
    const std::int64_t begin = bytes_;
    bytes_ = checked_add(bytes_, to_part(bytes));
    return begin;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

}  // namespace

RecurrentPlaces::RecurrentPlaces(const RecurrentWork& work, const Workload& workload)
    : form(recurrence_form(work)),
      kind(kind_of(form)),
      width(recurrent_width(kind)),
      sets(std::min(kRecurrentInputSets, workload.rows())) {
  const bool selective = kind == RecurrentKind::selective;
  const std::int64_t row_elements = checked_mul(form.rows, width);
  state_stride = to_part(checked_mul(row_elements, work.state.element_bytes));
  conv_stride = to_part(checked_mul(work.state.conv_elements, kBFloat16Bytes));
  const std::int64_t kernel_bytes = kBFloat16Bytes * form.taps * form.channels;
  const std::int64_t used =
      (form.kernel_is_weight ? kernel_bytes : 0) + (selective ? kBFloat16Bytes * work.state.elements : 0);
  rest_words = std::max<std::int64_t>(0, work.weight_bytes - used) / kFloatBytes;
  Parts copy;
  state = copy.add(checked_mul(workload.batch, state_stride));
  conv = copy.add(checked_mul(workload.batch, conv_stride));
  kernel = copy.add(form.kernel_is_weight ? kernel_bytes : 0);
  rates = copy.add(selective ? kBFloat16Bytes * row_elements : 0);
  rest = copy.add(kFloatBytes * rest_words);
  copy_bytes = copy.bytes();

  const std::int64_t keys = kBFloat16Bytes * sets * form.heads() * width;
  Parts inputs;
  decay = inputs.add(kFloatBytes * sets * (selective ? form.rows : form.heads()));
  beta = inputs.add(kFloatBytes * sets * form.heads());
  k = inputs.add(keys);
  q = inputs.add(keys);
  v = inputs.add(kBFloat16Bytes * sets * form.rows);
  x = inputs.add(kBFloat16Bytes * sets * form.channels);
  hot_kernel = inputs.add(form.kernel_is_weight ? 0 : kernel_bytes);
  sink = inputs.add(kFloatBytes);
  input_bytes = inputs.bytes();

  const std::int64_t rows = workload.rows();
  Parts outputs;
  y = outputs.add(checked_mul(checked_mul(rows, form.rows), kBFloat16Bytes));
  conv_y = outputs.add(checked_mul(checked_mul(rows, form.channels), kBFloat16Bytes));
  output_bytes = outputs.bytes();
}

}  // namespace memwall::cuda
