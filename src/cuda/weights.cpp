#include "cuda/weights.h"

#include <cmath>

#include "cuda/scalar_values.h"
#include "format/checked.h"

namespace memwall::cuda {
namespace {

std::int64_t bias_bytes(const LinearWork& work) {
  if (!work.bias) return 0;
  return checked_mul(work.out, activation_bytes(activation_type(work.bias_format)));
}

RandomBits random_codes(WeightCode code) {
  switch (code) {
    case WeightCode::f32:
      return kFloat32;
    case WeightCode::f16:
      return kFloat16;
    case WeightCode::bf16:
      return kBFloat16;
    case WeightCode::f8:
      return kF8E4M3;
    case WeightCode::i8:
    case WeightCode::u4:
      break;
  }
  return kAnyBits;
}

}  // namespace

ScalarType scalar_type(ActivationType type) {
  if (type == ActivationType::f32) return ScalarType::f32;
  return type == ActivationType::bf16 ? ScalarType::bf16 : ScalarType::f16;
}

ActivationType activation_type(Format format) {
  if (format.kind == FormatKind::f32) return ActivationType::f32;
  return format.kind == FormatKind::bf16 ? ActivationType::bf16 : ActivationType::f16;
}

RandomBits random_activations(ActivationType type) { return random_bits(scalar_type(type)); }

std::vector<float> download_activations(Gpu& gpu, ActivationType type, const void* from, std::int64_t count) {
  std::vector<float> values;
  for (const double value : download_values(gpu, scalar_type(type), from, count))
    values.push_back(static_cast<float>(value));  // it was one
  return values;
}

double rounding_tolerance(ActivationType type, double value) {
  constexpr double kSmallestHalf = 0x1p-24;
  if (type == ActivationType::f32) return 0;
  if (type == ActivationType::bf16) return std::abs(value) * 0x1p-8;
  return std::abs(value) * 0x1p-11 + kSmallestHalf;
}

PlacedWeights::PlacedWeights(const LinearWork& work, Context& context, std::int64_t copies,
                             std::uint64_t seed)
    : work_(work),
      layout_(linear_layout(work.format, work.out, work.in)),
      gpu_(context.gpu),
      copies_(copies),
      stride_(copy_bytes(work)),
      buffer_(context.gpu, checked_mul(copies, stride_)) {
  for (std::int64_t copy = 0; copy < copies; ++copy)
    fill(matrix(copy), seed + static_cast<std::uint64_t>(copy) * 1000003);
}

bool PlacedWeights::supports(const LinearWork& work) {
  return has_linear_layout(work.format) && work.out >= 1 && work.in >= 1;
}

std::int64_t PlacedWeights::copy_bytes(const LinearWork& work) {
  const std::int64_t bytes =
      checked_add(linear_layout(work.format, work.out, work.in).bytes, bias_bytes(work));
  return aligned_256(bytes);
}

void PlacedWeights::fill(std::byte* matrix, std::uint64_t seed) const {
  // Rows' padding too: x is 0 there, and must not meet a NaN.
  fill_random(gpu_, matrix, layout_.out * layout_.pitch, random_codes(layout_.code), seed);
  const bool halves = layout_.rule == ScaleRule::group || layout_.rule == ScaleRule::group_zero;
  if (layout_.scale_bytes > 0)
    fill_random(gpu_, matrix + layout_.scales_at, layout_.scale_bytes, halves ? kScale16 : kScale32,
                seed + 1);
  if (layout_.zero_bytes > 0)
    fill_random(gpu_, matrix + layout_.zeros_at, layout_.zero_bytes, kAnyBits, seed + 2);
  if (!work_.bias) return;
  fill_random(gpu_, matrix + layout_.bytes, bias_bytes(work_),
              random_activations(activation_type(work_.bias_format)), seed + 3);
}

LinearSegment PlacedWeights::segment(std::int64_t copy, void* y) const {
  const std::byte* at = matrix(copy);
  LinearSegment segment;
  segment.quants = at;
  segment.scales = at + layout_.scales_at;
  segment.zeros = at + layout_.zeros_at;
  if (work_.bias) segment.bias = at + layout_.bytes;
  segment.bias_type = activation_type(work_.bias_format);
  segment.y = y;
  segment.out = work_.out;
  return segment;
}

double PlacedWeights::bytes() const {
  return static_cast<double>(storage_bytes(work_.format, work_.out, work_.in)) +
         (work_.bias ? static_cast<double>(storage_bytes(work_.bias_format, 1, work_.out)) : 0);
}

double PlacedWeights::padding() const {
  const std::int64_t read = layout_.out * layout_.pitch + layout_.scale_bytes + layout_.zero_bytes;
  return static_cast<double>(read - storage_bytes(work_.format, work_.out, work_.in));
}

std::vector<float> PlacedWeights::row(std::int64_t copy, std::int64_t out) const {
  const auto read = [&](const LinearSpan& span) {
    if (span.bytes == 0) return std::vector<std::byte>();
    return download<std::byte>(gpu_, matrix(copy) + span.at, span.bytes);
  };
  const auto quants = read(linear_row_quants(layout_, out));
  const auto scales = read(linear_row_scales(layout_, out));
  const auto zeros = read(linear_row_zeros(layout_, out));
  std::vector<float> values(static_cast<std::size_t>(work_.in));
  unpack_linear_row(layout_, quants.data(), scales.data(), zeros.data(), values.data());
  return values;
}

float PlacedWeights::bias(std::int64_t copy, std::int64_t out) const {
  if (!work_.bias) return 0;
  const ActivationType type = activation_type(work_.bias_format);
  const std::byte* at = matrix(copy) + layout_.bytes + out * activation_bytes(type);
  return download_activations(gpu_, type, at, 1).front();
}

}  // namespace memwall::cuda
