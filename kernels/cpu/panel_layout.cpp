#include "kernels/cpu/panel_layout.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "format/checked.h"
#include "kernels/cpu/pack.h"

namespace memwall::cpu {
namespace {

constexpr std::int64_t kScaleBytes = 2;
constexpr std::int64_t kTile = 128;  // of f8_e4m3_b128, in both directions
constexpr float kLargestF8 = 448.0F;

bool is_f8(Format format) {
  return format.kind == FormatKind::f8_e4m3 || format.kind == FormatKind::f8_e4m3_channel ||
         format.kind == FormatKind::f8_e4m3_b128;
}

std::int64_t round_up_div(std::int64_t size, std::int64_t part) { return (size + part - 1) / part; }

std::int64_t element_bytes(Format format) {
  if (is_f8(format)) return 1;
  return format.kind == FormatKind::f32 ? 4 : 2;
}

std::uint16_t load_u16(const std::uint8_t* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

void store_u16(std::uint16_t bits, std::uint8_t* at) { std::memcpy(at, &bits, sizeof bits); }

float load_f32(const std::uint8_t* at) {
  float value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Where the quant of row r and column k lies in its panel, and for 4 bits which half of the byte.
struct Place {
  std::int64_t byte = 0;
  bool high = false;
};

Place place_of(const PanelLayout& layout, bool four_bits, std::int64_t r, std::int64_t k) {
  const std::int64_t block = k / kBlockWeights;
  const std::int64_t i = k % kBlockWeights;
  const std::int64_t start = block / layout.blocks_per_group * layout.group_bytes + layout.quants_at +
                             block % layout.blocks_per_group * layout.block_bytes;
  const std::int64_t four = four_bits ? i % (kBlockWeights / 2) : i;
  return {start + (four / 4 * kPanelRows + r) * 4 + four % 4, four_bits && i >= kBlockWeights / 2};
}

void set_nibble(std::uint8_t& byte, bool high, int value) {
  byte = static_cast<std::uint8_t>(high ? (byte & 0x0F) | (value << 4) : (byte & 0xF0) | value);
}

int nibble(std::uint8_t byte, bool high) { return high ? byte >> 4 : byte & 15; }

int clamped(float value, int low, int high) {
  if (std::isnan(value)) return 0;
  return static_cast<int>(std::clamp(value, static_cast<float>(low), static_cast<float>(high)));
}

// One group of a row: the quants' scale and zero point, which pack and unpack share.
struct Group {
  const PanelLayout& layout;
  Format format;
  std::uint8_t* panel;
  std::int64_t row;
  std::int64_t index;

  std::uint8_t* scale() const { return panel + index * layout.group_bytes + row * kScaleBytes; }
  std::uint8_t* zeros() const { return panel + index * layout.group_bytes + kPanelRows * kScaleBytes; }
  void set_zero(float zero) const {
    if (!format.zero_points) return;
    if (format.wide_zero_points) {
      store_u16(f32_to_f16(zero), zeros() + row * 2);
    } else {
      set_nibble(zeros()[row / 2], row % 2 != 0, static_cast<int>(zero));
    }
  }
  float zero() const {
    if (!format.zero_points) return 8.0F;
    if (format.wide_zero_points) return f16_to_f32(load_u16(zeros() + row * 2));
    return static_cast<float>(nibble(zeros()[row / 2], row % 2 != 0));
  }
};

void pack_integer_group(const Group& group, const float* values, std::int64_t first, std::int64_t last) {
  const bool four_bits = group.format.kind != FormatKind::q8_0;
  float least = 0.0F;
  float most = 0.0F;
  float extreme = 0.0F;
  for (std::int64_t k = first; k < last; ++k) {
    least = std::min(least, values[k]);
    most = std::max(most, values[k]);
    if (std::fabs(extreme) < std::fabs(values[k])) extreme = values[k];
  }
  float d = 0.0F;
  float zero = 8.0F;
  if (!four_bits) {
    d = std::fabs(extreme) / 127.0F;
  } else if (!group.format.zero_points) {
    d = extreme / -8.0F;
  } else {
    d = (most - least) / 15.0F;
    zero = d > 0 ? static_cast<float>(clamped(std::round(-least / d), 0, 15)) : 0.0F;
  }
  store_u16(f32_to_f16(d), group.scale());
  group.set_zero(zero);
  const float inverse = d != 0.0F ? 1.0F / d : 0.0F;
  for (std::int64_t k = first; k < last; ++k) {
    const Place place = place_of(group.layout, four_bits, group.row, k);
    std::uint8_t& byte = group.panel[place.byte];
    if (four_bits) {
      set_nibble(byte, place.high, clamped(std::floor(values[k] * inverse + zero + 0.5F), 0, 15));
    } else {
      byte = static_cast<std::uint8_t>(clamped(std::round(values[k] * inverse), -127, 127));
    }
  }
}

std::uint8_t* panel_of(void* panels, const PanelLayout& layout, std::int64_t row) {
  return static_cast<std::uint8_t*>(panels) + row / kPanelRows * layout.bytes;
}

void set_trailing_scales(Format format, const float* rows, std::int64_t out, std::int64_t in,
                         std::uint8_t* scales) {
  std::vector<float> largest(static_cast<std::size_t>(trailing_scales(format, out, in)), 0.0F);
  for (std::int64_t row = 0; row < out; ++row) {
    for (std::int64_t k = 0; k < in; ++k) {
      float& most = largest[static_cast<std::size_t>(trailing_scale_of(format, in, row, k))];
      const float magnitude = std::fabs(rows[row * in + k]);
      if (std::isfinite(magnitude)) most = std::max(most, magnitude);
    }
  }
  for (std::size_t i = 0; i < largest.size(); ++i) {
    const float scale = largest[i] > 0 ? largest[i] / kLargestF8 : 1.0F;
    std::memcpy(scales + i * sizeof(float), &scale, sizeof scale);
  }
}

}  // namespace

bool is_integer(Format format) {
  return format.kind == FormatKind::q8_0 || format.kind == FormatKind::q4_0 ||
         format.kind == FormatKind::int4_group;
}

bool has_panels(Format format) {
  if (format.kind == FormatKind::int4_group) return format.group % kBlockWeights == 0;
  return is_plain_float(format) || is_f8(format) || is_integer(format);
}

PanelLayout panel_layout(Format format, std::int64_t in) {
  if (!has_panels(format))
    throw std::invalid_argument("the CPU has no linear kernel for " + format_name(format));
  if (in < 1) throw std::invalid_argument("a linear needs at least one input");
  PanelLayout layout;
  if (!is_integer(format)) {
    layout.bytes = checked_mul(in, kPanelRows * element_bytes(format));
    return layout;
  }
  layout.blocks = round_up_div(in, kBlockWeights);
  layout.groups = layout.blocks;
  if (format.kind == FormatKind::int4_group) {
    layout.blocks_per_group = format.group > 0 ? format.group / kBlockWeights : layout.blocks;
    layout.groups = round_up_div(layout.blocks, layout.blocks_per_group);
    layout.blocks = layout.groups * layout.blocks_per_group;
  }
  const std::int64_t zeros = !format.zero_points       ? 0
                             : format.wide_zero_points ? kPanelRows * 2
                                                       : kPanelRows / 2;
  layout.quants_at = kPanelRows * kScaleBytes + zeros;
  layout.block_bytes = kPanelRows * kBlockWeights / (format.kind == FormatKind::q8_0 ? 1 : 2);
  layout.group_bytes =
      checked_add(layout.quants_at, checked_mul(layout.blocks_per_group, layout.block_bytes));
  layout.bytes = checked_mul(layout.groups, layout.group_bytes);
  return layout;
}

std::int64_t panel_matrix_bytes(Format format, std::int64_t out, std::int64_t in) {
  return checked_add(checked_mul(panels_of(out), panel_layout(format, in).bytes),
                     checked_mul(trailing_scales(format, out, in), 4));
}

std::int64_t trailing_scales(Format format, std::int64_t out, std::int64_t in) {
  switch (format.kind) {
    case FormatKind::f8_e4m3:
      return 1;
    case FormatKind::f8_e4m3_channel:
      return out;
    case FormatKind::f8_e4m3_b128:
      return checked_mul(round_up_div(out, kTile), round_up_div(in, kTile));
    default:
      return 0;
  }
}

std::int64_t trailing_scale_of(Format format, std::int64_t in, std::int64_t row, std::int64_t k) {
  switch (format.kind) {
    case FormatKind::f8_e4m3_channel:
      return row;
    case FormatKind::f8_e4m3_b128:
      return row / kTile * round_up_div(in, kTile) + k / kTile;
    default:
      return 0;
  }
}

void pack_panels(Format format, const float* rows, std::int64_t out, std::int64_t in, void* panels) {
  const PanelLayout layout = panel_layout(format, in);
  std::memset(panels, 0, static_cast<std::size_t>(panel_matrix_bytes(format, out, in)));
  std::uint8_t* trailing = static_cast<std::uint8_t*>(panels) + panels_of(out) * layout.bytes;
  if (is_f8(format)) set_trailing_scales(format, rows, out, in, trailing);
  for (std::int64_t row = 0; row < out; ++row) {
    const float* values = rows + row * in;
    std::uint8_t* panel = panel_of(panels, layout, row);
    const std::int64_t r = row % kPanelRows;
    if (is_integer(format)) {
      const std::int64_t group_size = layout.blocks_per_group * kBlockWeights;
      for (std::int64_t g = 0; g < layout.groups; ++g) {
        pack_integer_group({layout, format, panel, r, g}, values, g * group_size,
                           std::min(in, (g + 1) * group_size));
      }
      continue;
    }
    const std::int64_t bytes = element_bytes(format);
    for (std::int64_t k = 0; k < in; ++k) {
      std::uint8_t* at = panel + (k * kPanelRows + r) * bytes;
      if (is_f8(format)) {
        const float scale = load_f32(trailing + trailing_scale_of(format, in, row, k) * 4);
        *at = f32_to_f8_e4m3(values[k] / scale);
      } else {
        pack_row(format, values + k, 1, at);
      }
    }
  }
}

void unpack_panel_row(Format format, const void* panels, std::int64_t out, std::int64_t in, std::int64_t row,
                      float* values) {
  const PanelLayout layout = panel_layout(format, in);
  // Only read from here on; Group serves packing too.
  std::uint8_t* panel = panel_of(const_cast<void*>(panels), layout, row);
  const std::uint8_t* trailing = static_cast<const std::uint8_t*>(panels) + panels_of(out) * layout.bytes;
  const std::int64_t r = row % kPanelRows;
  const std::int64_t bytes = is_integer(format) ? 0 : element_bytes(format);
  const bool four_bits = format.kind != FormatKind::q8_0;
  for (std::int64_t k = 0; k < in; ++k) {
    if (is_integer(format)) {
      const Group group{layout, format, panel, r, k / kBlockWeights / layout.blocks_per_group};
      const Place place = place_of(layout, four_bits, r, k);
      const std::uint8_t byte = panel[place.byte];
      const float d = f16_to_f32(load_u16(group.scale()));
      values[k] = four_bits ? d * (static_cast<float>(nibble(byte, place.high)) - group.zero())
                            : d * static_cast<float>(static_cast<std::int8_t>(byte));
    } else if (is_f8(format)) {
      values[k] = f8_e4m3_to_f32(panel[k * kPanelRows + r]) *
                  load_f32(trailing + trailing_scale_of(format, in, row, k) * 4);
    } else {
      unpack_row(format, panel + (k * kPanelRows + r) * bytes, 1, values + k);
    }
  }
}

float f8_e4m3_to_f32(std::uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return std::copysign(std::nanf(""), (bits & 0x80) != 0 ? -1.0F : 1.0F);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

std::uint8_t f32_to_f8_e4m3(float value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7F);
  const float magnitude = std::min(std::fabs(value), kLargestF8);
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f 2^exponent, f in [1/2, 1)
  // Units of the last of 3 mantissa bits; below 2^-6 they are those of the subnormals.
  const int unit = magnitude > 0 ? std::max(exponent - 4, -9) : -9;
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -unit)));
  // Rounding up to 16 steps carries into the exponent, and 448 is 14 steps of 32: never past it.
  const int code = unit == -9 ? steps : ((unit + 9) << 3) + steps;
  return static_cast<std::uint8_t>(sign | code);
}

}  // namespace memwall::cpu
