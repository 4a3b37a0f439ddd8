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

std::int64_t scale_bytes(Format format) { return format.kind == FormatKind::mxfp4 ? 1 : 2; }
constexpr std::int64_t kTile = 128;  // of f8_e4m3_b128, in both directions

bool is_f8(Format format) {
  return format.kind == FormatKind::f8_e4m3 || format.kind == FormatKind::f8_e4m3_channel ||
         format.kind == FormatKind::f8_e4m3_b128;
}

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

// One group of a row: the quants' scale and zero point, which pack and unpack share.
struct Group {
  const PanelLayout& layout;
  Format format;
  std::uint8_t* panel;
  std::int64_t row;
  std::int64_t index;

  std::uint8_t* scale() const { return panel + index * layout.group_bytes + row * scale_bytes(format); }
  std::uint8_t* zeros() const {
    return panel + index * layout.group_bytes + kPanelRows * scale_bytes(format);
  }
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

void pack_mxfp4_block(const Group& block, const float* values, std::int64_t first, std::int64_t last) {
  const std::uint8_t code = e8m0_code(values + first, last - first);
  *block.scale() = code;
  for (std::int64_t k = first; k < last; ++k) {
    const Place place = place_of(block.layout, true, block.row, k);
    set_nibble(block.panel[place.byte], place.high, e2m1_code(values[k] / e8m0_half(code)));
  }
}

void pack_integer_group(const Group& group, const float* values, std::int64_t first, std::int64_t last) {
  if (group.format.kind == FormatKind::mxfp4) return pack_mxfp4_block(group, values, first, last);
  const bool four_bits = group.format.kind != FormatKind::q8_0;
  const QuantRule rule(four_bits ? 4 : 8, group.format.zero_points, values + first, last - first);
  store_u16(f32_to_f16(rule.scale()), group.scale());
  group.set_zero(rule.zero());
  for (std::int64_t k = first; k < last; ++k) {
    const Place place = place_of(group.layout, four_bits, group.row, k);
    std::uint8_t& byte = group.panel[place.byte];
    const int quant = rule.quant(values[k]);
    if (four_bits) {
      set_nibble(byte, place.high, quant);
    } else {
      byte = static_cast<std::uint8_t>(quant);
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
    const float scale = largest[i] > 0 ? largest[i] / kLargestF8E4m3 : 1.0F;
    std::memcpy(scales + i * sizeof(float), &scale, sizeof scale);
  }
}

}  // namespace

bool is_integer(Format format) {
  return format.kind == FormatKind::q8_0 || format.kind == FormatKind::q4_0 ||
         format.kind == FormatKind::int4_group || format.kind == FormatKind::mxfp4;
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
  layout.blocks = div_up(in, kBlockWeights);
  layout.groups = layout.blocks;
  if (format.kind == FormatKind::int4_group) {
    layout.blocks_per_group = format.group > 0 ? format.group / kBlockWeights : layout.blocks;
    layout.groups = div_up(layout.blocks, layout.blocks_per_group);
    layout.blocks = layout.groups * layout.blocks_per_group;
  }
  const std::int64_t zeros = !format.zero_points       ? 0
                             : format.wide_zero_points ? kPanelRows * 2
                                                       : kPanelRows / 2;
  layout.quants_at = kPanelRows * scale_bytes(format) + zeros;
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
      return checked_mul(div_up(out, kTile), div_up(in, kTile));
    default:
      return 0;
  }
}

std::int64_t trailing_scale_of(Format format, std::int64_t in, std::int64_t row, std::int64_t k) {
  switch (format.kind) {
    case FormatKind::f8_e4m3_channel:
      return row;
    case FormatKind::f8_e4m3_b128:
      return row / kTile * div_up(in, kTile) + k / kTile;
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
      if (format.kind == FormatKind::mxfp4) {
        values[k] = e8m0_half(*group.scale()) * static_cast<float>(kDoubledE2m1[nibble(byte, place.high)]);
        continue;
      }
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

}  // namespace memwall::cpu
