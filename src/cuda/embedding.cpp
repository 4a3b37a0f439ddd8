// The embedding's gather on a GPU: a part of the table stands for it, as on the CPU.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/cpu_data.h"
#include "bench/cpu_operands.h"
#include "cuda/operands.h"
#include "cuda/scalar_values.h"
#include "format/checked.h"
#include "kernels/cpu/pack.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kId = 4;
constexpr std::int64_t kBlock = 32;  // weights under a scale

std::optional<GatherFormat> gather_format(Format format) {
  if (is_plain_float(format)) return GatherFormat::plain;
  if (format.kind == FormatKind::q8_0) return GatherFormat::q8_0;
  if (format.kind == FormatKind::q4_0) return GatherFormat::q4_0;
  return std::nullopt;
}

// How the table lies in memory (gather.h): plain rows as they are; quants in rows of whole blocks, which are
// multiples of 16 bytes, and their scales apart.
struct TableLayout {
  explicit TableLayout(const EmbeddingWork& work)
      : format(gather_format(work.format).value()),
        rows(embedding_rows_held(work)),
        blocks(div_up(work.width, kBlock)),
        row_bytes(format == GatherFormat::plain ? storage_bytes(work.format, 1, work.width)
                                                : blocks * (format == GatherFormat::q8_0 ? 32 : 16)),
        table_bytes(checked_mul(rows, row_bytes)),
        scale_bytes(format == GatherFormat::plain ? 0 : checked_mul(rows, blocks * 2)),
        output(format == GatherFormat::plain ? scalar_type(work.format).value() : ScalarType::f16) {}
  GatherFormat format;
  std::int64_t rows;
  std::int64_t blocks;  // a row
  std::int64_t row_bytes;
  std::int64_t table_bytes;
  std::int64_t scale_bytes;
  ScalarType output;
};

class EmbeddingOperands final : public Operands {
 public:
  EmbeddingOperands(const EmbeddingWork& work, std::int64_t tokens, Context& context, std::uint64_t seed)
      : work_(work),
        gpu_(context.gpu),
        layout_(work),
        tokens_(tokens),
        table_(gpu_, layout_.table_bytes),
        ids_on_gpu_(gpu_, checked_mul(checked_mul(tokens, kEmbeddingDraws), kId)),
        outputs_(context.outputs.with_room(gpu_, output_bytes())) {
    const bool plain = layout_.format == GatherFormat::plain;
    fill_random(gpu_, table_.data(), table_.bytes(), plain ? random_bits(layout_.output) : kAnyBits, seed);
    if (!plain) {
      scales_ = Buffer(gpu_, layout_.scale_bytes);
      fill_random(gpu_, scales_.data(), scales_.bytes(), kScale16, seed + 1);
    }
    std::uint64_t state = seed;
    ids_.reserve(static_cast<std::size_t>(tokens * kEmbeddingDraws));
    for (std::int64_t i = 0; i < tokens * kEmbeddingDraws; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth's MMIX generator
      ids_.push_back(static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(layout_.rows)));
    }
    gpu_.upload(ids_on_gpu_.data(), ids_.data(), ids_on_gpu_.bytes());
  }

  void launch(std::size_t, std::int64_t turn) override {
    gpu_.launch(gather_launch(layout_.format,
                              {.table = table_.data(),
                               .scales = scales_.as<std::uint16_t>(),
                               .ids = ids_on_gpu_.as<std::int32_t>() + (turn % kEmbeddingDraws) * tokens_,
                               .y = outputs_->data(),
                               .rows = tokens_,
                               .width = work_.width,
                               .row_bytes = layout_.row_bytes,
                               .scale_pitch = layout_.blocks}));
  }
  double cold_bytes(std::int64_t) const override { return 0; }
  double flops(std::int64_t) const override { return 0; }

  Check check(std::size_t variant) override {
    poison(gpu_, outputs_->data(), output_bytes());
    launch(variant, 0);
    Comparison comparison;
    for (const std::int64_t token : sample_indices(tokens_, 4)) {
      const std::vector<float> row = table_row(ids_[static_cast<std::size_t>(token)]);
      const std::vector<double> y =
          download_values(gpu_, layout_.output,
                          outputs_->data() + token * work_.width * scalar_bytes(layout_.output), work_.width);
      for (std::size_t i = 0; i < y.size(); ++i) {
        // Plain values are copied; a quant times its scale is rounded to f16, small ones to its subnormals.
        const double expected = static_cast<double>(row[i]);
        const double rounding =
            layout_.format == GatherFormat::plain ? 1e-30 : half_ulp(ScalarType::f16) * std::abs(expected);
        comparison.add(y[i], expected, rounding + 0x1p-25);
      }
    }
    return comparison.result();
  }

 private:
  std::int64_t output_bytes() const {
    return checked_mul(checked_mul(tokens_, work_.width), scalar_bytes(layout_.output));
  }

  std::vector<float> table_row(std::int64_t id) const {
    const std::vector<std::byte> raw =
        download<std::byte>(gpu_, table_.data() + id * layout_.row_bytes, layout_.row_bytes);
    std::vector<float> row(static_cast<std::size_t>(work_.width));
    if (layout_.format == GatherFormat::plain) {
      cpu::unpack_row(work_.format, raw.data(), work_.width, row.data());
      return row;
    }
    // As ggml packs them: a scale before each block's quants.
    const std::vector<std::uint16_t> scales =
        download<std::uint16_t>(gpu_, scales_.data() + id * layout_.blocks * 2, layout_.blocks);
    const auto quants = static_cast<std::size_t>(layout_.row_bytes / layout_.blocks);
    std::vector<std::byte> packed(scales.size() * (2 + quants));
    for (std::size_t b = 0; b < scales.size(); ++b) {
      std::memcpy(packed.data() + b * (2 + quants), &scales[b], 2);
      std::memcpy(packed.data() + b * (2 + quants) + 2, raw.data() + b * quants, quants);
    }
    cpu::unpack_row(work_.format, packed.data(), work_.width, row.data());
    return row;
  }

  EmbeddingWork work_;
  Gpu& gpu_;
  TableLayout layout_;
  std::int64_t tokens_;
  Buffer table_;
  Buffer scales_;
  Buffer ids_on_gpu_;
  std::vector<std::int32_t> ids_;
  std::shared_ptr<Buffer> outputs_;
};

}  // namespace

std::vector<Variant> variants_of(const EmbeddingWork& work, const OpTask&, Context&) {
  if (!gather_format(work.format) || work.rows < 1 || work.width < 1) return {};
  return {{"gather", 0}};
}

Footprint footprint_of(const EmbeddingWork& work, const OpTask& task, Context&) {
  if (!gather_format(work.format)) return {.cold = false};
  const TableLayout layout(work);
  const std::int64_t a_token =
      checked_add(checked_mul(work.width, scalar_bytes(layout.output)), kEmbeddingDraws * kId);
  return {.fixed_bytes = checked_add(checked_add(layout.table_bytes, layout.scale_bytes),
                                     checked_mul(task.workload.rows(), a_token)),
          .cold = false};
}

std::unique_ptr<Operands> place(const EmbeddingWork& work, const OpTask& task, Context& context, std::int64_t,
                                std::uint64_t seed) {
  return std::make_unique<EmbeddingOperands>(work, task.workload.rows(), context, seed);
}

}  // namespace memwall::cuda
