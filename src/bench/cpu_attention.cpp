// Attention on the CPU: the step's new K and V written into the cache, then attention over it.
#include <algorithm>
#include <cstring>

#include "bench/cpu_data.h"
#include "bench/cpu_operands.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/pack.h"

namespace memwall {
namespace {

Format format_of(KvFormat kv) {
  switch (kv) {
    case KvFormat::f32:
      return {FormatKind::f32, 0, false};
    case KvFormat::bf16:
      return {FormatKind::bf16, 0, false};
    default:
      return {FormatKind::f16, 0, false};
  }
}

class AttentionOperands final : public Operands {
 public:
  AttentionOperands(const AttentionWork& work, const Workload& workload, CpuContext& context,
                    std::int64_t copies, std::uint64_t seed)
      : work_(work),
        workload_(workload),
        context_(context),
        copies_(copies),
        format_(format_of(work.kv)),
        k_bytes_(heads_tokens() * kv_vector_bytes(work.kv, work.d_k)),
        v_bytes_(heads_tokens() * kv_vector_bytes(work.kv, work.d_v)),
        buffer_(static_cast<std::size_t>(copies * (k_bytes_ + v_bytes_))),
        q_(random_floats(static_cast<std::size_t>(workload.rows() * work.heads * work.d_k), seed + 2)),
        y_(static_cast<std::size_t>(workload.rows() * work.heads * work.d_v)),
        new_kv_(static_cast<std::size_t>(std::max(work.d_k, work.d_v)) * 4) {
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      const std::uint64_t own = seed + static_cast<std::uint64_t>(copy) * 1000003;
      fill_random_weights(context.pool, format_, heads_tokens(), work.d_k, k_of(copy), own);
      fill_random_weights(context.pool, format_, heads_tokens(), work.d_v, v_of(copy), own + 7);
    }
    // The rows a step appends: any values of the cache's kind.
    fill_random_weights(context.pool, format_, 1, std::max(work.d_k, work.d_v), new_kv_.data(), seed + 11);
    context.huge_share = buffer_.huge_share();
    const cpu::Attention shape = bind(0);
    const std::int64_t scratch =
        decode() ? cpu::attention_scratch_floats(shape) : cpu::prefill_scratch_floats(shape);
    scratch_.assign(static_cast<std::size_t>(context.pool.size()),
                    std::vector<float>(static_cast<std::size_t>(scratch)));
  }

  void launch(std::size_t, std::int64_t turn) override {
    const cpu::Attention op = bind(turn);
    if (decode()) append(turn);
    const std::int64_t tasks = decode() ? op.seqs * op.kv_heads : op.seqs * op.heads;
    context_.pool.split(tasks, 1, [&](int worker, std::int64_t first, std::int64_t last) {
      float* scratch = scratch_[static_cast<std::size_t>(worker)].data();
      if (decode()) {
        cpu::attention_decode(op, first, last, scratch);
      } else {
        cpu::attention_prefill(op, first, last, scratch);
      }
    });
  }

  double cold_bytes(std::int64_t) const override { return cost().kv_bytes(); }
  double flops(std::int64_t) const override { return cost().flops; }

  Check check(std::size_t variant) override {
    const std::int64_t turn = copies_ - 1;
    std::fill(y_.begin(), y_.end(), std::nanf(""));
    launch(variant, turn);
    Comparison comparison;
    for (const std::int64_t row : sample_indices(workload_.rows(), 3)) {
      for (const std::int64_t head : sample_indices(work_.heads, 3)) compare(comparison, turn, row, head);
    }
    return comparison.result();
  }

 private:
  bool decode() const { return workload_.phase == Phase::decode; }
  std::int64_t heads_tokens() const { return workload_.batch * work_.kv_heads * workload_.context; }
  std::byte* k_of(std::int64_t turn) const {
    return buffer_.data() + (turn % copies_) * (k_bytes_ + v_bytes_);
  }
  std::byte* v_of(std::int64_t turn) const { return k_of(turn) + k_bytes_; }
  Cost cost() const { return cost_of(work_, workload_); }

  cpu::Attention bind(std::int64_t turn) {
    return {.kv = work_.kv,
            .k = k_of(turn),
            .v = v_of(turn),
            .q = q_.data(),
            .y = y_.data(),
            .seqs = workload_.batch,
            .context = workload_.context,
            .window = work_.window,
            .heads = work_.heads,
            .kv_heads = work_.kv_heads,
            .d_k = work_.d_k,
            .d_v = work_.d_v};
  }

  // Writes each head's newest token, as a step does.
  void append(std::int64_t turn) {
    const std::int64_t k_row = kv_vector_bytes(work_.kv, work_.d_k);
    const std::int64_t v_row = kv_vector_bytes(work_.kv, work_.d_v);
    for (std::int64_t head = 0; head < workload_.batch * work_.kv_heads; ++head) {
      const std::int64_t last = (head + 1) * workload_.context - 1;
      std::memcpy(k_of(turn) + last * k_row, new_kv_.data(), static_cast<std::size_t>(k_row));
      std::memcpy(v_of(turn) + last * v_row, new_kv_.data(), static_cast<std::size_t>(v_row));
    }
  }

  // Softmax attention of one query row and head in float64.
  void compare(Comparison& comparison, std::int64_t turn, std::int64_t row, std::int64_t head) const {
    const std::int64_t seq = decode() ? row : row / workload_.context;
    const std::int64_t newest = decode() ? workload_.context - 1 : row % workload_.context;
    const std::int64_t oldest = work_.window > 0 ? std::max<std::int64_t>(0, newest + 1 - work_.window) : 0;
    const std::int64_t kv_head = head / (work_.heads / work_.kv_heads);
    const std::int64_t base = (seq * work_.kv_heads + kv_head) * workload_.context;
    const float* q = q_.data() + (row * work_.heads + head) * work_.d_k;
    std::vector<float> vector(static_cast<std::size_t>(std::max(work_.d_k, work_.d_v)));
    std::vector<double> scores;
    double score_error = 0;
    for (std::int64_t token = oldest; token <= newest; ++token) {
      const ReferenceDot dot = reference_dot(
          format_, k_of(turn) + (base + token) * kv_vector_bytes(work_.kv, work_.d_k), work_.d_k, q, 0);
      const double scale = 1 / std::sqrt(static_cast<double>(work_.d_k));
      scores.push_back(dot.value * scale);
      score_error = std::max(score_error, dot.tolerance * scale);
    }
    const double highest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    std::vector<double> y(static_cast<std::size_t>(work_.d_v));
    std::vector<double> magnitude(y.size());
    for (std::int64_t token = oldest; token <= newest; ++token) {
      const double weight = std::exp(scores[static_cast<std::size_t>(token - oldest)] - highest);
      sum += weight;
      cpu::unpack_row(format_, v_of(turn) + (base + token) * kv_vector_bytes(work_.kv, work_.d_v), work_.d_v,
                      vector.data());
      for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] += weight * static_cast<double>(vector[i]);
        magnitude[i] += weight * std::abs(static_cast<double>(vector[i]));
      }
    }
    for (std::size_t i = 0; i < y.size(); ++i) {
      // A score's error moves its weight by as much, relatively; the sum over tokens adds its own.
      const double tolerance =
          2 * score_error * magnitude[i] / sum + dot_tolerance(newest - oldest + 1, magnitude[i] / sum);
      const float value = y_[static_cast<std::size_t>((row * work_.heads + head) * work_.d_v) + i];
      comparison.add(static_cast<double>(value), y[i] / sum, tolerance);
    }
  }

  AttentionWork work_;
  Workload workload_;
  CpuContext& context_;
  std::int64_t copies_;
  Format format_;
  std::int64_t k_bytes_;
  std::int64_t v_bytes_;
  HugeBuffer buffer_;
  std::vector<float> q_;
  std::vector<float> y_;
  std::vector<std::byte> new_kv_;
  std::vector<std::vector<float>> scratch_;
};

}  // namespace

std::unique_ptr<Operands> place_attention(const AttentionWork& work, const Workload& workload,
                                          CpuContext& context, std::int64_t copies, std::uint64_t seed) {
  return std::make_unique<AttentionOperands>(work, workload, context, copies, seed);
}

}  // namespace memwall
