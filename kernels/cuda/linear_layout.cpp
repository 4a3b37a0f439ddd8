#include "kernels/cuda/linear_layout.h"

#include <cstring>
#include <stdexcept>

#include "format/checked.h"
#include "kernels/cpu/pack.h"

namespace memwall::cuda {
namespace {

constexpr std::int64_t kVectorBytes = 16;
constexpr std::int64_t kPartAlignment = 256;

bool is_group(std::int32_t group) {
  // A vector of 32 4-bit weights must lie within one group.
  return group == 0 || (group >= 32 && (group & (group - 1)) == 0);
}

std::int64_t round_up(std::int64_t value, std::int64_t to) { return checked_mul(div_up(value, to), to); }

void set_groups(LinearLayout& layout, std::int64_t group) {
  layout.groups = 1;
  if (group == 0) return;
  layout.vector_shift = 0;
  while ((weights_a_vector(layout.code) << layout.vector_shift) < group) ++layout.vector_shift;
  layout.groups = div_up(layout.in, group);
}

void set_code(LinearLayout& layout, Format format) {
  switch (format.kind) {
    case FormatKind::f32:
      layout.code = WeightCode::f32;
      layout.activations = ActivationType::f32;
      return;
    case FormatKind::bf16:
      layout.code = WeightCode::bf16;
      layout.activations = ActivationType::bf16;
      return;
    case FormatKind::f8_e4m3:
    case FormatKind::f8_e4m3_channel:
    case FormatKind::f8_e4m3_b128:
      layout.code = WeightCode::f8;
      layout.rule = format.kind == FormatKind::f8_e4m3           ? ScaleRule::tensor
                    : format.kind == FormatKind::f8_e4m3_channel ? ScaleRule::row
                                                                 : ScaleRule::block128;
      return;
    case FormatKind::q8_0:
    case FormatKind::q4_0:
      layout.code = format.kind == FormatKind::q8_0 ? WeightCode::i8 : WeightCode::u4;
      layout.rule = ScaleRule::group;
      return set_groups(layout, 32);
    case FormatKind::int8_group:
      layout.code = WeightCode::i8;
      layout.rule = format.group == 0 ? ScaleRule::row : ScaleRule::group;
      if (format.group > 0) set_groups(layout, format.group);
      return;
    case FormatKind::int4_group:
      layout.code = WeightCode::u4;
      layout.rule = format.zero_points ? ScaleRule::group_zero : ScaleRule::group;
      return set_groups(layout, format.group);
    default:  // f16
      layout.code = WeightCode::f16;
      return;
  }
}

}  // namespace

bool has_linear_layout(Format format) {
  switch (format.kind) {
    case FormatKind::f32:
    case FormatKind::f16:
    case FormatKind::bf16:
    case FormatKind::f8_e4m3:
    case FormatKind::f8_e4m3_channel:
    case FormatKind::f8_e4m3_b128:
    case FormatKind::q8_0:
    case FormatKind::q4_0:
      return true;
    case FormatKind::int4_group:
      return is_group(format.group) && !format.wide_zero_points;
    case FormatKind::int8_group:
      return is_group(format.group) && !format.zero_points;
    default:
      return false;
  }
}

LinearLayout linear_layout(Format format, std::int64_t out, std::int64_t in) {
  if (!has_linear_layout(format) || out < 1 || in < 1)
    throw std::invalid_argument("a GPU's linear needs a format that has a layout, and a weight");
  LinearLayout layout;
  layout.out = out;
  layout.in = in;
  set_code(layout, format);
  // Blocks and groups are stored whole.
  const bool whole_groups = layout.groups > 0 && layout.vector_shift < 31;
  const std::int64_t group = whole_groups ? weights_a_vector(layout.code) << layout.vector_shift : 1;
  const std::int64_t weights = checked_mul(div_up(in, group), group);
  layout.pitch = checked_mul(div_up(weights, weights_a_vector(layout.code)), kVectorBytes);
  switch (layout.rule) {
    case ScaleRule::none:
      break;
    case ScaleRule::tensor:
      layout.scale_bytes = 4;
      break;
    case ScaleRule::row:
      layout.scale_bytes = checked_mul(out, 4);
      break;
    case ScaleRule::block128:
      layout.vector_shift = 3;
      layout.groups = div_up(in, 128);
      layout.scale_bytes = checked_mul(checked_mul(div_up(out, 128), layout.groups), 4);
      break;
    case ScaleRule::group_zero:
      layout.zero_pitch = div_up(layout.groups, 2);
      layout.zero_bytes = checked_mul(out, layout.zero_pitch);
      [[fallthrough]];
    case ScaleRule::group:
      layout.scale_bytes = checked_mul(checked_mul(out, layout.groups), 2);
      break;
  }
  layout.scales_at = round_up(checked_mul(out, layout.pitch), kPartAlignment);
  layout.zeros_at = round_up(checked_add(layout.scales_at, layout.scale_bytes), kPartAlignment);
  layout.bytes = round_up(checked_add(layout.zeros_at, layout.zero_bytes), kPartAlignment);
  return layout;
}

LinearSpan linear_row_quants(const LinearLayout& layout, std::int64_t row) {
  return {row * layout.pitch, layout.pitch};
}

LinearSpan linear_row_scales(const LinearLayout& layout, std::int64_t row) {
  switch (layout.rule) {
    case ScaleRule::none:
      return {};
    case ScaleRule::tensor:
      return {layout.scales_at, 4};
    case ScaleRule::row:
      return {layout.scales_at + row * 4, 4};
    case ScaleRule::block128:
      return {layout.scales_at + row / 128 * layout.groups * 4, layout.groups * 4};
    case ScaleRule::group:
    case ScaleRule::group_zero:
      break;
  }
  return {layout.scales_at + row * layout.groups * 2, layout.groups * 2};
}

LinearSpan linear_row_zeros(const LinearLayout& layout, std::int64_t row) {
  return {layout.zeros_at + row * layout.zero_pitch, layout.zero_pitch};
}

void unpack_linear_row(const LinearLayout& layout, const void* quants, const void* scales, const void* zeros,
                       float* values) {
  const auto at = [](const void* from, std::int64_t index, auto value) {
    std::memcpy(&value, static_cast<const char*>(from) + index * static_cast<std::int64_t>(sizeof value),
                sizeof value);
    return value;
  };
  const auto nibble = [&](const void* from, std::int64_t index) {
    return (at(from, index / 2, std::uint8_t{}) >> (index % 2 * 4)) & 15;
  };
  for (std::int64_t k = 0; k < layout.in; ++k) {
    const std::int64_t vector = k / weights_a_vector(layout.code);
    const std::int64_t group = vector >> layout.vector_shift;
    float scale = 1;
    if (layout.rule == ScaleRule::tensor || layout.rule == ScaleRule::row) scale = at(scales, 0, float{});
    if (layout.rule == ScaleRule::block128) scale = at(scales, group, float{});
    if (layout.rule == ScaleRule::group || layout.rule == ScaleRule::group_zero)
      scale = cpu::f16_to_f32(at(scales, group, std::uint16_t{}));
    float value = 0;
    switch (layout.code) {
      case WeightCode::f32:
        value = at(quants, k, float{});
        break;
      case WeightCode::f16:
        value = cpu::f16_to_f32(at(quants, k, std::uint16_t{}));
        break;
      case WeightCode::bf16:
        value = cpu::bf16_to_f32(at(quants, k, std::uint16_t{}));
        break;
      case WeightCode::f8:
        value = cpu::f8_e4m3_to_f32(at(quants, k, std::uint8_t{}));
        break;
      case WeightCode::i8:
        value = static_cast<float>(at(quants, k, std::int8_t{}));
        break;
      case WeightCode::u4: {
        const int zero = layout.rule == ScaleRule::group_zero ? nibble(zeros, group) : 8;
        value = static_cast<float>(nibble(quants, k / 8 * 8 + linear_nibble(k)) - zero);
        break;
      }
    }
    values[k] = scale * value;
  }
}

}  // namespace memwall::cuda
