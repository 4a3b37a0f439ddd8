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
    Layout{FormatKind::f8_e4m3_channel, "f8_e4m3-c", 1, 1, true},
    Layout{FormatKind::f8_e4m3_b128, "f8_e4m3-b128", 1, 1, true},
    Layout{FormatKind::f8_e4m3_b128_e8, "f8_e4m3-b128-e8", 1, 1, true},
    Layout{FormatKind::nf4, "nf4", 64, 36, true},
    Layout{FormatKind::nf4_dq, "nf4-dq", 64, 33, true},
    Layout{FormatKind::mxfp4, "mxfp4", 32, 17, true},
    Layout{FormatKind::mxfp8, "mxfp8", 32, 33, true},
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
  return nullptr;  // integer groups: their block is a parameter
}

// 0 for kinds that are no integer groups.
std::int64_t int_bits(FormatKind kind) {
  switch (kind) {
    case FormatKind::int2_group:
      return 2;
    case FormatKind::int3_group:
      return 3;
    case FormatKind::int4_group:
      return 4;
    case FormatKind::int5_group:
      return 5;
    case FormatKind::int6_group:
      return 6;
    case FormatKind::int8_group:
      return 8;
    default:
      return 0;
  }
}

std::optional<FormatKind> int_kind(char digit) {
  for (const FormatKind kind : {FormatKind::int2_group, FormatKind::int3_group, FormatKind::int4_group,
                                FormatKind::int5_group, FormatKind::int6_group, FormatKind::int8_group}) {
    if (int_bits(kind) == digit - '0') return kind;
  }
  return std::nullopt;
}

// f16; f32 where 8-bit weights have one a row and no zero point: bitsandbytes' SCB and vLLM's W8A8 are f32.
std::int64_t scale_bytes(Format format) {
  return format.kind == FormatKind::int8_group && format.group == 0 && !format.zero_points ? 4 : 2;
}

constexpr std::string_view kIntPrefix = "int";
constexpr std::string_view kZeroPointSuffix = "-zp";
constexpr std::string_view kWideZeroPointSuffix = "-zp16";

bool remove_suffix(std::string_view& name, std::string_view suffix) {
  if (name.size() <= suffix.size() || name.substr(name.size() - suffix.size()) != suffix) return false;
  name.remove_suffix(suffix.size());
  return true;
}

// "intB-gN" or "intB-c", with "-zp" or "-zp16" behind.
std::optional<Format> find_int(std::string_view name) {
  if (name.size() < 6 || name.substr(0, kIntPrefix.size()) != kIntPrefix || name[4] != '-') {
    return std::nullopt;
  }
  const std::optional<FormatKind> kind = int_kind(name[3]);
  if (!kind) return std::nullopt;
  Format format{*kind, 0, false};
  name.remove_prefix(5);
  format.wide_zero_points = remove_suffix(name, kWideZeroPointSuffix);
  format.zero_points = format.wide_zero_points || remove_suffix(name, kZeroPointSuffix);
  if (name == "c") return format;
  if (name.size() < 2 || name[0] != 'g' || name[1] == '0') return std::nullopt;
  name.remove_prefix(1);
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), format.group);
  const bool power_of_two = format.group > 0 && (format.group & (format.group - 1)) == 0;
  if (error != std::errc{} || end != name.data() + name.size() || !power_of_two || format.group < 16 ||
      format.group > 1024) {
    return std::nullopt;
  }
  return format;
}

std::int64_t int_storage_bytes(Format format, std::int64_t out, std::int64_t in) {
  const std::int64_t bits = int_bits(format.kind);
  const std::int64_t beside = scale_bytes(format) + (format.wide_zero_points ? 2 : 0);
  // Whole groups; a row that is one group is whole bytes.
  const std::int64_t groups = format.group > 0 ? checked_mul(out, div_up(in, format.group)) : out;
  const std::int64_t weights = format.group > 0 ? format.group * bits / 8 : div_up(checked_mul(in, bits), 8);
  const std::int64_t bytes = checked_mul(groups, checked_add(weights, beside));
  // Zero points are packed without gaps.
  const bool packed = format.zero_points && !format.wide_zero_points;
  return packed ? checked_add(bytes, div_up(checked_mul(groups, bits), 8)) : bytes;
}

}  // namespace

std::string format_name(Format format) {
  if (const Layout* layout = layout_of(format.kind)) return std::string(layout->name);
  std::string name(kIntPrefix);
  name += std::to_string(int_bits(format.kind));
  name += format.group > 0 ? "-g" + std::to_string(format.group) : "-c";
  if (format.zero_points) name += format.wide_zero_points ? kWideZeroPointSuffix : kZeroPointSuffix;
  return name;
}

std::optional<Format> find_format(std::string_view name) {
  for (const Layout& layout : kLayouts) {
    if (layout.name == name) return Format{layout.kind, 0, false};
  }
  return find_int(name);
}

const std::vector<std::string>& format_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Layout& layout : kLayouts) all.emplace_back(layout.name);
    for (const char* name :
         {"int4-g32", "int4-g64", "int4-g128", "int4-g32-zp", "int4-g64-zp", "int4-g128-zp", "int4-c",
          "int4-g64-zp16", "int2-g64", "int3-g128", "int6-g64", "int8-g128", "int8-c"}) {
      all.emplace_back(name);
    }
    return all;
  }();
  return names;
}

std::int64_t storage_bytes(Format format, std::int64_t out, std::int64_t in) {
  if (int_bits(format.kind) > 0) return int_storage_bytes(format, out, in);
  const Layout& layout = *layout_of(format.kind);
  const std::int64_t blocks = checked_mul(checked_mul(out, div_up(in, layout.block)), layout.bytes);
  switch (format.kind) {
    case FormatKind::f8_e4m3:
    case FormatKind::nvfp4:
      return checked_add(blocks, 4);
    case FormatKind::f8_e4m3_channel:
      return checked_add(blocks, checked_mul(4, out));
    case FormatKind::f8_e4m3_b128:
      return checked_add(blocks, checked_mul(4, checked_mul(div_up(out, 128), div_up(in, 128))));
    case FormatKind::f8_e4m3_b128_e8:
      return checked_add(blocks, checked_mul(div_up(out, 128), div_up(in, 128)));
    case FormatKind::nf4_dq:
      // The layout's bytes hold the 8-bit scales; 256 of them share an f32.
      return checked_add(blocks, checked_mul(4, div_up(blocks / layout.bytes, 256)));
    default:
      return blocks;
  }
}

double bits_per_weight(Format format) {
  if (const auto bits = static_cast<double>(int_bits(format.kind)); bits > 0) {
    if (format.group == 0) return bits;  // the scales of long rows weigh nothing
    const double zero_point = !format.zero_points ? 0 : format.wide_zero_points ? 16 : bits;
    return bits + (16 + zero_point) / format.group;
  }
  const Layout& layout = *layout_of(format.kind);
  const double bits = 8.0 * static_cast<double>(layout.bytes) / static_cast<double>(layout.block);
  switch (format.kind) {
    case FormatKind::f8_e4m3_b128:
      return bits + 32.0 / (128.0 * 128.0);
    case FormatKind::f8_e4m3_b128_e8:
      return bits + 8.0 / (128.0 * 128.0);
    case FormatKind::nf4_dq:
      return bits + 32.0 / (64.0 * 256.0);
    default:
      return bits;
  }
}

bool is_plain_float(Format format) {
  return format.kind == FormatKind::f32 || format.kind == FormatKind::f16 || format.kind == FormatKind::bf16;
}

bool keeps_16bit_head(Format format) {
  const Layout* layout = layout_of(format.kind);
  return layout == nullptr || layout->head_16bit;
}

namespace {

// `block` elements take `bytes` bytes, block scales included.
struct KvLayout {
  KvFormat format;
  std::string_view name;
  std::int64_t block;
  std::int64_t bytes;
  std::int64_t scale_bytes;  // a token and head
};

constexpr std::array kKvLayouts = {
    KvLayout{KvFormat::f32, "f32", 1, 4, 0},         KvLayout{KvFormat::f16, "f16", 1, 2, 0},
    KvLayout{KvFormat::bf16, "bf16", 1, 2, 0},       KvLayout{KvFormat::f8_e4m3, "f8_e4m3", 1, 1, 0},
    KvLayout{KvFormat::f8_e5m2, "f8_e5m2", 1, 1, 0}, KvLayout{KvFormat::int8, "int8", 1, 1, 2},
    KvLayout{KvFormat::q8_0, "q8_0", 32, 34, 0},     KvLayout{KvFormat::q5_1, "q5_1", 32, 24, 0},
    KvLayout{KvFormat::q5_0, "q5_0", 32, 22, 0},     KvLayout{KvFormat::q4_1, "q4_1", 32, 20, 0},
    KvLayout{KvFormat::q4_0, "q4_0", 32, 18, 0},     KvLayout{KvFormat::iq4_nl, "iq4_nl", 32, 18, 0},
    KvLayout{KvFormat::nvfp4, "nvfp4", 16, 9, 0},
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
  return checked_add(checked_mul(div_up(width, layout.block), layout.bytes), layout.scale_bytes);
}

}  // namespace memwall
