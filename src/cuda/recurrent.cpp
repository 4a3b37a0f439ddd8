// Recurrent layers on a GPU: a short convolution's launch, then the state's.
#include "kernels/cuda/recurrent.h"

#include <algorithm>
#include <limits>

#include "bench/cpu_data.h"
#include "bench/cpu_recurrent.h"
#include "bench/cpu_recurrent_reference.h"
#include "cuda/operands.h"
#include "cuda/recurrent_places.h"
#include "format/checked.h"
#include "kernels/cpu/pack.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kBFloat16Bytes = 2;

// Decays and corrections, from 0.5 to 0.75; steps, from 0.25 to 0.5; rates, from -2 to -1/8, so that an
// element's decay lies between e^-1 and e^-0.03; keys, of magnitude 1/16 to 3/32, at most about unit length
// together, as delta nets have them.
constexpr RandomBits kDecays{0x003FFFFFU, 0x3F000000U};
constexpr RandomBits kSteps{0x007FFFFFU, 0x3E800000U};
constexpr RandomBits kRates{0x01FF01FFU, 0xBE00BE00U};
constexpr RandomBits kKeys{0x803F803FU, 0x3D803D80U};
constexpr RandomBits kNaN{0, 0xFFFFFFFFU};

std::vector<float> widened(const std::vector<std::uint16_t>& values) {
  std::vector<float> wide(values.size());
  std::transform(values.begin(), values.end(), wide.begin(), cpu::bf16_to_f32);
  return wide;
}

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

class RecurrentOperands final : public Operands {
 public:
  RecurrentOperands(const RecurrentWork& work, const Workload& workload, Context& context,
                    std::int64_t copies, std::uint64_t seed)
      : work_(work),
        workload_(workload),
        at_(work, workload),
        context_(context),
        copies_(copies),
        copies_buffer_(context.gpu, checked_mul(copies, at_.copy_bytes)),
        inputs_(context.gpu, at_.input_bytes),
        outputs_(context.outputs.with_room(context.gpu, at_.output_bytes)) {
    fill_copies(seed);
    fill_inputs(seed);
  }

  void launch(std::size_t, std::int64_t turn) override {
    if (form().channels > 0 || at_.rest_words > 0) context_.gpu.launch(short_conv_launch(convolution(turn)));
    if (form().rows > 0)
      context_.gpu.launch(
          state_update_launch(at_.kind, narrow(), update(turn), context_.gpu.properties().multiprocessors));
  }

  double cold_bytes(std::int64_t) const override {
    const Cost cost = cost_of(work_, workload_);
    return cost.weight_bytes + cost.state_bytes;
  }
  double flops(std::int64_t) const override { return static_cast<double>(workload_.rows()) * form().flops; }
  // What fills up a last row, read and written back.
  double padding_bytes(std::int64_t) const override {
    const std::int64_t elements = form().rows * at_.width - work_.state.elements;
    return static_cast<double>(elements) *
           static_cast<double>(2 * workload_.batch * work_.state.element_bytes + (selective() ? 2 : 0));
  }

  Check check(std::size_t variant) override {
    const std::int64_t turn = copies_ - 1;
    const Inputs inputs = download_inputs(turn);
    std::vector<ReferenceRecurrence> rows;
    std::vector<ReferenceConvolution> channels;
    for_samples(
        [&](std::int64_t sequence, std::int64_t row) { rows.push_back(row_before(turn, sequence, row)); },
        [&](std::int64_t sequence, std::int64_t channel) {
          channels.push_back(channel_before(inputs, turn, sequence, channel));
        });
    fill_random(context_.gpu, outputs_->data(), at_.output_bytes, kNaN, 0);
    launch(variant, turn);
    Comparison comparison;
    std::size_t next_row = 0;
    std::size_t next_channel = 0;
    for_samples(
        [&](std::int64_t sequence, std::int64_t row) {
          compare_row(comparison, rows[next_row++], inputs, turn, sequence, row);
        },
        [&](std::int64_t sequence, std::int64_t channel) {
          compare_channel(comparison, channels[next_channel++], turn, sequence, channel);
        });
    return comparison.result();
  }

 private:
  // What the sampled rows and channels are computed from, on the host.
  struct Inputs {
    std::vector<float> decay, beta, k, q, v, x, kernel;
    std::vector<std::uint16_t> rates;
  };

  const RecurrenceForm& form() const { return at_.form; }
  bool selective() const { return at_.kind == RecurrentKind::selective; }
  bool narrow() const { return work_.state.element_bytes == kBFloat16Bytes; }
  std::int64_t tokens() const { return workload_.phase == Phase::decode ? 1 : workload_.context; }
  std::byte* copy_of(std::int64_t turn) const {
    return copies_buffer_.data() + (turn % copies_) * at_.copy_bytes;
  }
  std::byte* conv_kernel(std::int64_t turn) const {
    return form().kernel_is_weight ? copy_of(turn) + at_.kernel : inputs_.data() + at_.hot_kernel;
  }
  std::byte* row_of(std::int64_t turn, std::int64_t sequence, std::int64_t row) const {
    return copy_of(turn) + at_.state + sequence * at_.state_stride +
           row * at_.width * work_.state.element_bytes;
  }

  void fill_copies(std::uint64_t seed) {
    Gpu& gpu = context_.gpu;
    for (std::int64_t copy = 0; copy < copies_; ++copy) {
      std::byte* start = copy_of(copy);
      const std::uint64_t own = seed + static_cast<std::uint64_t>(copy) * 1000003;
      fill_random(gpu, start, at_.conv, narrow() ? kBFloat16 : kFloat32, own);
      fill_random(gpu, start + at_.conv, at_.copy_bytes - at_.conv, kBFloat16, own + 1);
      fill_random(gpu, start + at_.rates, at_.rest - at_.rates, kRates, own + 2);
    }
  }

  void fill_inputs(std::uint64_t seed) {
    Gpu& gpu = context_.gpu;
    std::byte* start = inputs_.data();
    fill_random(gpu, start, at_.beta, selective() ? kSteps : kDecays, seed + 1);
    fill_random(gpu, start + at_.beta, at_.k - at_.beta, kDecays, seed + 2);
    fill_random(gpu, start + at_.k, at_.q - at_.k, kKeys, seed + 3);
    fill_random(gpu, start + at_.q, at_.input_bytes - at_.q, kBFloat16, seed + 4);
  }

  ShortConvParams convolution(std::int64_t turn) const {
    return {.state = copy_of(turn) + at_.conv,
            .weights = conv_kernel(turn),
            .x = inputs_.data() + at_.x,
            .y = outputs_->data() + at_.conv_y,
            .state_stride = at_.conv_stride,
            .channels = static_cast<int>(form().channels),
            .taps = static_cast<int>(form().taps),
            .sequences = static_cast<int>(workload_.batch),
            .tokens = static_cast<int>(tokens()),
            .sets = static_cast<int>(at_.sets),
            .rest = reinterpret_cast<const std::uint32_t*>(copy_of(turn) + at_.rest),
            .rest_words = at_.rest_words,
            .sink = reinterpret_cast<std::uint32_t*>(inputs_.data() + at_.sink)};
  }

  StateUpdateParams update(std::int64_t turn) const {
    const std::byte* inputs = inputs_.data();
    return {.state = copy_of(turn) + at_.state,
            .rates = copy_of(turn) + at_.rates,
            .decay = reinterpret_cast<const float*>(inputs + at_.decay),
            .beta = reinterpret_cast<const float*>(inputs + at_.beta),
            .k = inputs + at_.k,
            .q = inputs + at_.q,
            .v = inputs + at_.v,
            .y = outputs_->data() + at_.y,
            .elements = work_.state.elements,
            .state_stride = at_.state_stride,
            .rows = static_cast<int>(form().rows),
            .heads = static_cast<int>(form().heads()),
            .sequences = static_cast<int>(workload_.batch),
            .tokens = static_cast<int>(tokens()),
            .sets = static_cast<int>(at_.sets)};
  }

  template <class Row, class Channel>
  void for_samples(Row row, Channel channel) const {
    for (const std::int64_t sequence : sample_indices(workload_.batch, 2)) {
      for (const std::int64_t r : sample_indices(form().rows, 16)) row(sequence, r);
      for (const std::int64_t c : sample_indices(form().channels, 16)) channel(sequence, c);
    }
  }

  std::vector<float> floats(std::int64_t at, std::int64_t count) const {
    return download<float>(context_.gpu, inputs_.data() + at, count);
  }
  std::vector<float> bfloats(const void* from, std::int64_t count) const {
    return widened(download<std::uint16_t>(context_.gpu, from, count));
  }

  Inputs download_inputs(std::int64_t turn) const {
    const std::int64_t heads = at_.sets * form().heads();
    Inputs inputs;
    inputs.decay = floats(at_.decay, selective() ? at_.sets * form().rows : heads);
    inputs.beta = floats(at_.beta, heads);
    inputs.k = bfloats(inputs_.data() + at_.k, heads * at_.width);
    inputs.q = bfloats(inputs_.data() + at_.q, heads * at_.width);
    inputs.v = bfloats(inputs_.data() + at_.v, at_.sets * form().rows);
    inputs.x = bfloats(inputs_.data() + at_.x, at_.sets * form().channels);
    inputs.kernel = bfloats(conv_kernel(turn), form().taps * form().channels);
    if (selective())
      inputs.rates =
          download<std::uint16_t>(context_.gpu, copy_of(turn) + at_.rates, form().rows * at_.width);
    return inputs;
  }

  std::vector<double> row_elements(std::int64_t turn, std::int64_t sequence, std::int64_t row) const {
    const std::int64_t count = std::min(at_.width, work_.state.elements - row * at_.width);
    const std::byte* from = row_of(turn, sequence, row);
    return doubles(narrow() ? bfloats(from, count) : download<float>(context_.gpu, from, count));
  }

  ReferenceRecurrence row_before(std::int64_t turn, std::int64_t sequence, std::int64_t row) const {
    ReferenceRecurrence reference;
    reference.form = form();
    reference.form.width = at_.width;  // of the arrays
    reference.narrow = narrow();
    reference.row = row;
    reference.state = row_elements(turn, sequence, row);
    reference.output_rounding = 1.0 / 256;
    return reference;
  }

  void compare_row(Comparison& comparison, ReferenceRecurrence& reference, const Inputs& inputs,
                   std::int64_t turn, std::int64_t sequence, std::int64_t row) const {
    const std::int64_t keys = form().heads() * at_.width;
    // The reference looks at y[row] of each token; those are downloaded one by one.
    std::vector<std::vector<float>> y(static_cast<std::size_t>(tokens()));
    for (std::int64_t token = 0; token < tokens(); ++token) {
      const std::int64_t at = sequence * tokens() + token;
      const std::int64_t set = at % at_.sets;
      std::vector<float>& value = y[static_cast<std::size_t>(token)];
      value.assign(static_cast<std::size_t>(row + 1), 0);
      value.back() = bfloats(outputs_->data() + at_.y + (at * form().rows + row) * kBFloat16Bytes, 1)[0];
      reference.steps.push_back(
          {.update = form().update,
           .element_bytes = work_.state.element_bytes,
           .elements = work_.state.elements,
           .width = at_.width,
           .head_rows = form().head_rows,
           .decay = inputs.decay.data() + set * (selective() ? form().rows : form().heads()),
           .beta = inputs.beta.data() + set * form().heads(),
           .rates = inputs.rates.data(),
           .k = inputs.k.data() + set * keys,
           .q = inputs.q.data() + set * keys,
           .v = inputs.v.data() + set * form().rows,
           .y = value.data()});
    }
    reference.stored = row_elements(turn, sequence, row);
    reference.compare(comparison);
  }

  // The inputs that the convolution keeps of a channel, oldest first.
  std::vector<double> kept(std::int64_t turn, std::int64_t sequence, std::int64_t channel) const {
    std::vector<double> values;
    for (std::int64_t t = 0; t < form().taps - 1; ++t) {
      const std::byte* from = copy_of(turn) + at_.conv + sequence * at_.conv_stride +
                              (t * form().channels + channel) * kBFloat16Bytes;
      values.push_back(static_cast<double>(bfloats(from, 1)[0]));
    }
    return values;
  }

  ReferenceConvolution channel_before(const Inputs& inputs, std::int64_t turn, std::int64_t sequence,
                                      std::int64_t channel) const {
    const std::int64_t channels = form().channels;
    const auto of = [channel](const std::vector<float>& values, std::int64_t row_begin) {
      return static_cast<double>(values[static_cast<std::size_t>(row_begin + channel)]);
    };
    ReferenceConvolution reference;
    for (std::int64_t t = 0; t < form().taps; ++t)
      reference.kernel.push_back(of(inputs.kernel, t * channels));
    reference.inputs = kept(turn, sequence, channel);
    for (std::int64_t token = 0; token < tokens(); ++token)
      reference.inputs.push_back(of(inputs.x, (sequence * tokens() + token) % at_.sets * channels));
    reference.output_rounding = 1.0 / 256;
    return reference;
  }

  void compare_channel(Comparison& comparison, ReferenceConvolution& reference, std::int64_t turn,
                       std::int64_t sequence, std::int64_t channel) const {
    for (std::int64_t token = 0; token < tokens(); ++token) {
      const std::int64_t at = (sequence * tokens() + token) * form().channels + channel;
      reference.outputs.push_back(
          static_cast<double>(bfloats(outputs_->data() + at_.conv_y + at * kBFloat16Bytes, 1)[0]));
    }
    reference.stored = kept(turn, sequence, channel);
    reference.compare(comparison);
  }

  RecurrentWork work_;
  Workload workload_;
  RecurrentPlaces at_;
  Context& context_;
  std::int64_t copies_;
  Buffer copies_buffer_;
  Buffer inputs_;
  std::shared_ptr<Buffer> outputs_;
};

// The kernels count rows, channels and tokens in 32 bits.
bool is_countable(const RecurrentWork& work, const Workload& workload) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 2;
  return work.state.elements / 16 < kMost && work.state.conv_elements < kMost && workload.rows() < kMost;
}

}  // namespace

std::vector<Variant> variants_of(const RecurrentWork& work, const OpTask& task, Context&) {
  if (!has_recurrence(work) || !is_countable(work, task.workload)) return {};
  return {{"in registers", 0}};
}

Footprint footprint_of(const RecurrentWork& work, const OpTask& task, Context&) {
  const RecurrentPlaces at(work, task.workload);
  return {.copy_bytes = at.copy_bytes,
          .fixed_bytes = checked_add(at.input_bytes, at.output_bytes),
          .writes = true};
}

std::unique_ptr<Operands> place(const RecurrentWork& work, const OpTask& task, Context& context,
                                std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<RecurrentOperands>(work, task.workload, context, copies, seed);
}

}  // namespace memwall::cuda
