// Recurrent layers on the CPU: a convolution's last inputs and a matrix state, read and written once a
// launch.
#include "bench/cpu_recurrent.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "bench/cpu_data.h"
#include "bench/cpu_operands.h"
#include "bench/cpu_recurrent_reference.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/stream.h"

namespace memwall {
namespace {

constexpr std::int64_t kGrain = 16;                  // rows or channels: 64 bytes of y
constexpr std::int64_t kBlockBytes = 16 << 10;       // of state that a prompt's tokens update in turn, in L1
constexpr std::int64_t kLeastParallelBytes = 32768;  // fewer are moved before a second thread has woken

std::vector<float> mapped(std::size_t count, std::uint64_t seed, float (*map)(float)) {
  std::vector<float> values = random_floats(count, seed);
  std::transform(values.begin(), values.end(), values.begin(), map);
  return values;
}

// Away from zero, so that no state dies away into subnormals.
float away_from_zero(float x) { return std::copysign(0.5F + 0.5F * std::abs(x), x); }
float decay_factor(float x) { return 0.7F + 0.2F * x; }
float step_size(float x) { return 0.375F + 0.125F * x; }
// A: with the steps above, the decays lie between e^-1 and e^-0.03.
float decay_rate(float x) { return -(0.125F + 1.75F * std::abs(x)); }

class RecurrentOperands final : public Operands {
 public:
  RecurrentOperands(const RecurrentWork& work, const Workload& workload, CpuContext& context,
                    std::int64_t copies, std::uint64_t seed)
      : work_(work),
        workload_(workload),
        form_(recurrence_form(work)),
        layout_(recurrent_layout(work, workload.batch)),
        context_(context),
        copies_(copies),
        buffer_(static_cast<std::size_t>(copies * layout_.copy_bytes)),
        sinks_(static_cast<std::size_t>(context.pool.size()) * kGrain) {
    const auto sets = static_cast<std::size_t>(std::min(kRecurrentInputSets, workload.rows()));
    const auto rows = static_cast<std::size_t>(form_.rows);
    const auto heads = static_cast<std::size_t>(form_.heads());
    const auto keys = heads * static_cast<std::size_t>(form_.width);
    const auto channels = static_cast<std::size_t>(form_.channels);
    decay_ =
        selective() ? mapped(sets * rows, seed + 1, step_size) : mapped(sets * heads, seed + 1, decay_factor);
    beta_ = mapped(sets * heads, seed + 2, decay_factor);
    k_ = mapped(sets * keys, seed + 3, away_from_zero);
    // Keys of at most unit length, as delta nets have them: the correction then never overshoots.
    for (float& k : k_) k /= std::sqrt(static_cast<float>(form_.width));
    q_ = random_floats(sets * keys, seed + 4);
    v_ = mapped(sets * rows, seed + 5, away_from_zero);
    x_ = random_floats(sets * channels, seed + 6);
    y_.resize(static_cast<std::size_t>(workload.rows()) * rows);
    conv_y_.resize(static_cast<std::size_t>(workload.rows()) * channels);
    if (!form_.kernel_is_weight) {
      hot_kernel_ = random_bf16(channels * static_cast<std::size_t>(form_.taps), seed + 7);
    }
    for (std::int64_t copy = 0; copy < copies; ++copy)
      fill(copy, seed + static_cast<std::uint64_t>(copy) * 1000003);
    context.huge_share = buffer_.huge_share();
  }

  void launch(std::size_t, std::int64_t turn) override {
    // The recurrence reads what the convolution made of its inputs, so there is a barrier between them.
    if (form_.channels > 0) {
      on_workers([&](int worker, int workers) { convolve(turn, range(form_.channels, worker, workers)); });
    }
    if (form_.rows == 0 && rest_floats() == 0) return;
    on_workers([&](int worker, int workers) {
      update(turn, range(form_.rows, worker, workers));
      const ThreadPool::Range rest = range(rest_floats(), worker, workers);
      if (rest.first < rest.last) {
        sinks_[static_cast<std::size_t>(worker * kGrain)] =
            cpu::read(rest_of(turn), rest.first, rest.last, 1);
      }
    });
  }

  double cold_bytes(std::int64_t) const override {
    const Cost cost = cost_of(work_, workload_);
    return cost.weight_bytes + cost.state_bytes;
  }
  double flops(std::int64_t) const override { return static_cast<double>(workload_.rows()) * form_.flops; }

  Check check(std::size_t variant) override {
    const std::int64_t turn = copies_ - 1;
    const std::byte* start = copy_of(turn);
    const std::vector<std::byte> before(start, start + layout_.copy_bytes);
    std::fill(y_.begin(), y_.end(), std::nanf(""));
    std::fill(conv_y_.begin(), conv_y_.end(), std::nanf(""));
    launch(variant, turn);
    Comparison comparison;
    for (const std::int64_t sequence : sample_indices(workload_.batch, 2)) {
      for (const std::int64_t row : sample_indices(form_.rows, 16))
        compare_row(comparison, before, turn, sequence, row);
      for (const std::int64_t channel : sample_indices(form_.channels, 16))
        compare_channel(comparison, before, turn, sequence, channel);
    }
    return comparison.result();
  }

 private:
  bool selective() const { return form_.update == cpu::StateUpdate::selective; }
  bool narrow() const { return work_.state.element_bytes == 2; }
  std::int64_t tokens() const { return workload_.phase == Phase::decode ? 1 : workload_.context; }
  std::int64_t set_of(std::int64_t sequence, std::int64_t token) const {
    return (sequence * tokens() + token) % std::min(kRecurrentInputSets, workload_.rows());
  }
  std::byte* copy_of(std::int64_t turn) const {
    return buffer_.data() + (turn % copies_) * layout_.copy_bytes;
  }

  static ThreadPool::Range range(std::int64_t items, int worker, int workers) {
    return ThreadPool::range_of(items, kGrain, workers, worker);
  }

  template <class Work>
  void on_workers(Work work) {
    if (layout_.copy_bytes < kLeastParallelBytes) return work(0, 1);
    context_.pool.run([&](int worker) { work(worker, context_.pool.size()); });
  }

  // The weights: the convolution's kernel and the rates, where they are there, and the rest (biases and other
  // small parameters), which no arithmetic here needs: it is read, so that the bytes a step moves are moved.
  std::int64_t kernel_elements() const { return form_.kernel_is_weight ? form_.taps * form_.channels : 0; }
  std::int64_t rest_begin() const {
    const std::int64_t used = 2 * (kernel_elements() + (selective() ? work_.state.elements : 0));
    return (used + 3) / 4 * 4;
  }
  std::int64_t rest_floats() const {
    return std::max<std::int64_t>(0, work_.weight_bytes - rest_begin()) / 4;
  }
  std::uint16_t* weights_of(std::int64_t turn) const {
    return reinterpret_cast<std::uint16_t*>(copy_of(turn) + layout_.weights);
  }
  const float* rest_of(std::int64_t turn) const {
    return reinterpret_cast<const float*>(copy_of(turn) + layout_.weights + rest_begin());
  }

  void fill(std::int64_t copy, std::uint64_t seed) {
    std::byte* start = copy_of(copy);
    const int workers = context_.pool.size();
    context_.pool.run([&](int worker) {
      for (std::int64_t sequence = 0; sequence < workload_.batch; ++sequence) {
        const ThreadPool::Range rows = range(form_.rows, worker, workers);
        const std::int64_t first = std::min(rows.first * form_.width, work_.state.elements);
        const std::int64_t last = std::min(rows.last * form_.width, work_.state.elements);
        const std::uint64_t own = seed + 10 * static_cast<std::uint64_t>(sequence);
        fill_elements(start + sequence * layout_.state_bytes, first, last, narrow(), own + 1, nullptr);
        const ThreadPool::Range conv = range(work_.state.conv_elements, worker, workers);
        fill_elements(start + layout_.conv + sequence * layout_.conv_bytes, conv.first, conv.last, true,
                      own + 2, nullptr);
      }
      const ThreadPool::Range weights = range(work_.weight_bytes / 2, worker, workers);
      fill_elements(start + layout_.weights, weights.first, weights.last, true, seed, nullptr);
    });
    if (!selective()) return;
    context_.pool.run([&](int worker) {
      const ThreadPool::Range rows = range(form_.rows, worker, workers);
      fill_elements(start + layout_.weights + 2 * kernel_elements(),
                    std::min(rows.first * form_.width, work_.state.elements),
                    std::min(rows.last * form_.width, work_.state.elements), true, seed + 3, decay_rate);
    });
  }

  static void fill_elements(std::byte* to, std::int64_t first, std::int64_t last, bool bf16,
                            std::uint64_t seed, float (*map)(float)) {
    constexpr std::int64_t kChunk = 512;
    float values[kChunk];
    for (std::int64_t i = first; i < last; i += kChunk) {
      const auto count = static_cast<std::size_t>(std::min(kChunk, last - i));
      fill_random_floats(std::span(values, count), seed, static_cast<std::uint64_t>(i));
      for (std::size_t j = 0; map != nullptr && j < count; ++j) values[j] = map(values[j]);
      if (bf16) {
        std::transform(values, values + count, reinterpret_cast<std::uint16_t*>(to) + i, cpu::f32_to_bf16);
      } else {
        std::copy_n(values, count, reinterpret_cast<float*>(to) + i);
      }
    }
  }

  cpu::Recurrence bind(std::int64_t turn, std::int64_t sequence, std::int64_t token) {
    const std::int64_t set = set_of(sequence, token);
    const std::int64_t keys = form_.heads() * form_.width;
    return {.update = form_.update,
            .element_bytes = work_.state.element_bytes,
            .state = copy_of(turn) + sequence * layout_.state_bytes,
            .elements = work_.state.elements,
            .width = form_.width,
            .head_rows = form_.head_rows,
            .decay = decay_.data() + set * (selective() ? form_.rows : form_.heads()),
            .beta = beta_.data() + set * form_.heads(),
            .rates = weights_of(turn) + kernel_elements(),
            .k = k_.data() + set * keys,
            .q = q_.data() + set * keys,
            .v = v_.data() + set * form_.rows,
            .y = y_.data() + (sequence * tokens() + token) * form_.rows};
  }

  void update(std::int64_t turn, ThreadPool::Range rows) {
    // A prompt's tokens follow one another over a block that stays in the first-level cache.
    const std::int64_t row_bytes = form_.width * work_.state.element_bytes;
    const std::int64_t block =
        tokens() == 1 ? rows.last - rows.first : std::max<std::int64_t>(1, kBlockBytes / row_bytes);
    for (std::int64_t sequence = 0; sequence < workload_.batch; ++sequence) {
      for (std::int64_t first = rows.first; first < rows.last; first += block) {
        const std::int64_t last = std::min(rows.last, first + block);
        for (std::int64_t token = 0; token < tokens(); ++token)
          cpu::update_state(bind(turn, sequence, token), first, last);
      }
    }
  }

  void convolve(std::int64_t turn, ThreadPool::Range channels) {
    for (std::int64_t sequence = 0; sequence < workload_.batch; ++sequence) {
      for (std::int64_t token = 0; token < tokens(); ++token) {
        cpu::short_conv({.channels = form_.channels,
                         .taps = form_.taps,
                         .state = conv_of(turn, sequence),
                         .weights = form_.kernel_is_weight ? weights_of(turn) : hot_kernel_.data(),
                         .x = x_.data() + set_of(sequence, token) * form_.channels,
                         .y = conv_y_.data() + (sequence * tokens() + token) * form_.channels},
                        channels.first, channels.last);
      }
    }
  }

  std::uint16_t* conv_of(std::int64_t turn, std::int64_t sequence) const {
    return reinterpret_cast<std::uint16_t*>(copy_of(turn) + layout_.conv + sequence * layout_.conv_bytes);
  }
  double conv_input(const std::byte* copy, std::int64_t sequence, std::int64_t index) const {
    const std::byte* inputs = copy + layout_.conv + sequence * layout_.conv_bytes;
    return static_cast<double>(cpu::bf16_to_f32(reinterpret_cast<const std::uint16_t*>(inputs)[index]));
  }
  double element(const std::byte* copy, std::int64_t sequence, std::int64_t index) const {
    const std::byte* state = copy + sequence * layout_.state_bytes;
    return static_cast<double>(narrow()
                                   ? cpu::bf16_to_f32(reinterpret_cast<const std::uint16_t*>(state)[index])
                                   : reinterpret_cast<const float*>(state)[index]);
  }

  // From the state before the launch.
  void compare_row(Comparison& comparison, const std::vector<std::byte>& before, std::int64_t turn,
                   std::int64_t sequence, std::int64_t row) {
    const std::int64_t begin = row * form_.width;
    const std::int64_t n = std::min(form_.width, work_.state.elements - begin);
    ReferenceRecurrence reference{
        .form = form_, .narrow = narrow(), .row = row, .steps = {}, .state = {}, .stored = {}};
    for (std::int64_t token = 0; token < tokens(); ++token)
      reference.steps.push_back(bind(turn, sequence, token));
    for (std::int64_t j = begin; j < begin + n; ++j) {
      reference.state.push_back(element(before.data(), sequence, j));
      reference.stored.push_back(element(copy_of(turn), sequence, j));
    }
    reference.compare(comparison);
  }

  // One channel: the inputs before the launch and those of its tokens, in a row.
  void compare_channel(Comparison& comparison, const std::vector<std::byte>& before, std::int64_t turn,
                       std::int64_t sequence, std::int64_t channel) {
    ReferenceConvolution reference;
    const std::uint16_t* kernel = form_.kernel_is_weight ? weights_of(turn) : hot_kernel_.data();
    for (std::int64_t t = 0; t < form_.taps; ++t)
      reference.kernel.push_back(static_cast<double>(cpu::bf16_to_f32(kernel[t * form_.channels + channel])));
    for (std::int64_t t = 0; t < form_.taps - 1; ++t) {
      reference.inputs.push_back(conv_input(before.data(), sequence, t * form_.channels + channel));
      reference.stored.push_back(conv_input(copy_of(turn), sequence, t * form_.channels + channel));
    }
    for (std::int64_t token = 0; token < tokens(); ++token) {
      const std::int64_t set = set_of(sequence, token);
      reference.inputs.push_back(
          static_cast<double>(x_[static_cast<std::size_t>(set * form_.channels + channel)]));
      const std::int64_t row = sequence * tokens() + token;
      reference.outputs.push_back(
          static_cast<double>(conv_y_[static_cast<std::size_t>(row * form_.channels + channel)]));
    }
    reference.compare(comparison);
  }

  RecurrentWork work_;
  Workload workload_;
  RecurrenceForm form_;
  RecurrentLayout layout_;
  CpuContext& context_;
  std::int64_t copies_;
  HugeBuffer buffer_;
  std::vector<float> decay_;
  std::vector<float> beta_;
  std::vector<float> k_;
  std::vector<float> q_;
  std::vector<float> v_;
  std::vector<float> x_;
  std::vector<float> y_;
  std::vector<float> conv_y_;
  std::vector<std::uint16_t> hot_kernel_;
  std::vector<float> sinks_;  // one a worker, each in its own cache line
};

}  // namespace

std::unique_ptr<Operands> place_recurrent(const RecurrentWork& work, const Workload& workload,
                                          CpuContext& context, std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<RecurrentOperands>(work, workload, context, copies, seed);
}

}  // namespace memwall
