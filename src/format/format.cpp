#include "format/format.h"

#include <array>
#include <charconv>

#include "format/checked.h"

namespace memwall {
namespace {

// One row a kind: `block` weights along `in` take `bytes` bytes, scales included.
struct Layout {
  FormatKind kind;
  std::string_view name;
  std::int64_t block;
  std::int64_t bytes;
  bool head_16bit;
};

constexpr std::array kLayouts = {
    Layout{FormatKind::f32, "f32", 1, 4, false},
    Layout{FormatKind::f16, "f16", 1, 2, false},
    Layout{FormatKind::bf16, "bf16", 1, 2, false},
    Layout{FormatKind::f8_e4m3, "f8_e4m3", 1, 1, true},
    Layout{FormatKind::f8_e4m3_b128, "f8_e4m3-b128", 1, 1, true},
    Layout{FormatKind::mxfp4, "mxfp4", 32, 17, true},
    Layout{FormatKind::nvfp4, "nvfp4", 16, 9, true},
    Layout{FormatKind::q4_0, "q4_0", 32, 18, false},
    Layout{FormatKind::q4_1, "q4_1", 32, 20, false},
    Layout{FormatKind::q5_0, "q5_0", 32, 22, false},
    Layout{FormatKind::q5_1, "q5_1", 32, 24, false},
    Layout{FormatKind::q8_0, "q8_0", 32, 34, false},
    Layout{FormatKind::q2_k, "q2_k", 256, 84, false},
    Layout{FormatKind::q3_k, "q3_k", 256, 110, false},
    Layout{FormatKind::q4_k, "q4_k", 256, 144, false},
    Layout{FormatKind::q5_k, "q5_k", 256, 176, false},
    Layout{FormatKind::q6_k, "q6_k", 256, 210, false},
    Layout{FormatKind::iq1_s, "iq1_s", 256, 50, false},
    Layout{FormatKind::iq1_m, "iq1_m", 256, 56, false},
    Layout{FormatKind::iq2_xxs, "iq2_xxs", 256, 66, false},
    Layout{FormatKind::iq2_xs, "iq2_xs", 256, 74, false},
    Layout{FormatKind::iq2_s, "iq2_s", 256, 82, false},
    Layout{FormatKind::iq3_xxs, "iq3_xxs", 256, 98, false},
    Layout{FormatKind::iq3_s, "iq3_s", 256, 110, false},
    Layout{FormatKind::iq4_nl, "iq4_nl", 32, 18, false},
    Layout{FormatKind::iq4_xs, "iq4_xs", 256, 136, false},
    Layout{FormatKind::tq1_0, "tq1_0", 256, 54, false},
    Layout{FormatKind::tq2_0, "tq2_0", 256, 66, false},
};

const Layout* layout_of(FormatKind kind) {
  for (const Layout& layout : kLayouts) {
    if (layout.kind == kind) return &layout;
  }
  return nullptr;  // int4_group: its block is a parameter
}

constexpr std::string_view kInt4Prefix = "int4-g";
constexpr std::string_view kZeroPointSuffix = "-zp";

std::optional<Format> find_int4(std::string_view name) {
  if (name.substr(0, kInt4Prefix.size()) != kInt4Prefix) return std::nullopt;
  name.remove_prefix(kInt4Prefix.size());
  bool zero_points = false;
  if (name.size() > kZeroPointSuffix.size() &&
      name.substr(name.size() - kZeroPointSuffix.size()) == kZeroPointSuffix) {
    zero_points = true;
    name.remove_suffix(kZeroPointSuffix.size());
  }
  std::int32_t group = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), group);
  const bool power_of_two = group > 0 && (group & (group - 1)) == 0;
  if (error != std::errc{} || end != name.data() + name.size() || name.front() == '0' || !power_of_two ||
      group < 16 || group > 1024) {
    return std::nullopt;
  }
  return Format{FormatKind::int4_group, group, zero_points};
}

}  // namespace

std::string format_name(Format format) {
  if (const Layout* layout = layout_of(format.kind)) return std::string(layout->name);
  return std::string(kInt4Prefix) + std::to_string(format.group) +
         (format.zero_points ? std::string(kZeroPointSuffix) : "");
}

std::optional<Format> find_format(std::string_view name) {
  for (const Layout& layout : kLayouts) {
    if (layout.name == name) return Format{layout.kind, 0, false};
  }
  return find_int4(name);
}

const std::vector<std::string>& format_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Layout& layout : kLayouts) all.emplace_back(layout.name);
    for (const char* name :
         {"int4-g32", "int4-g64", "int4-g128", "int4-g32-zp", "int4-g64-zp", "int4-g128-zp"}) {
      all.emplace_back(name);
    }
    return all;
  }();
  return names;
}

std::int64_t storage_bytes(Format format, std::int64_t out, std::int64_t in) {
  if (format.kind == FormatKind::int4_group) {
    // Whole groups: a half byte a weight and an f16 scale; zero points are packed two to a byte.
    const std::int64_t groups = checked_mul(out, div_up(in, format.group));
    const std::int64_t weights_and_scales = checked_mul(groups, format.group / 2 + 2);
    return format.zero_points ? checked_add(weights_and_scales, div_up(groups, 2)) : weights_and_scales;
  }
  const Layout& layout = *layout_of(format.kind);
  const std::int64_t blocks = checked_mul(checked_mul(out, div_up(in, layout.block)), layout.bytes);
  switch (format.kind) {
    case FormatKind::f8_e4m3:
    case FormatKind::nvfp4:
      return checked_add(blocks, 4);
    case FormatKind::f8_e4m3_b128:
      return checked_add(blocks, checked_mul(4, checked_mul(div_up(out, 128), div_up(in, 128))));
    default:
      return blocks;
  }
}

double bits_per_weight(Format format) {
  if (format.kind == FormatKind::int4_group) {
    return 4.0 + (format.zero_points ? 20.0 : 16.0) / format.group;
  }
  const Layout& layout = *layout_of(format.kind);
  const double bits = 8.0 * static_cast<double>(layout.bytes) / static_cast<double>(layout.block);
  return format.kind == FormatKind::f8_e4m3_b128 ? bits + 32.0 / (128.0 * 128.0) : bits;
}

bool is_plain_float(Format format) {
  return format.kind == FormatKind::f32 || format.kind == FormatKind::f16 || format.kind == FormatKind::bf16;
}

bool keeps_16bit_head(Format format) {
  const Layout* layout = layout_of(format.kind);
  return layout == nullptr || layout->head_16bit;
}

namespace {

struct KvLayout {
  KvFormat format;
  std::string_view name;
  std::int64_t element_bytes;
  std::int64_t scale_bytes;  // a token and head
};

constexpr std::array kKvLayouts = {
    KvLayout{KvFormat::f32, "f32", 4, 0},   KvLayout{KvFormat::f16, "f16", 2, 0},
    KvLayout{KvFormat::bf16, "bf16", 2, 0}, KvLayout{KvFormat::f8_e4m3, "f8_e4m3", 1, 0},
    KvLayout{KvFormat::int8, "int8", 1, 2},
};

const KvLayout& kv_layout(KvFormat format) {
  for (const KvLayout& layout : kKvLayouts) {
    if (layout.format == format) return layout;
  }
  return kKvLayouts.front();
}

}  // namespace

std::string_view kv_format_name(KvFormat format) { return kv_layout(format).name; }

std::optional<KvFormat> find_kv_format(std::string_view name) {
  for (const KvLayout& layout : kKvLayouts) {
    if (layout.name == name) return layout.format;
  }
  return std::nullopt;
}

const std::vector<std::string>& kv_format_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const KvLayout& layout : kKvLayouts) all.emplace_back(layout.name);
    return all;
  }();
  return names;
}

std::int64_t kv_vector_bytes(KvFormat format, std::int64_t width) {
  const KvLayout& layout = kv_layout(format);
  return checked_add(checked_mul(width, layout.element_bytes), layout.scale_bytes);
}

}  // namespace memwall
