// From the shapes and types of a weight's tensors to its shape and format. Layouts: AutoGPTQ's and AutoAWQ's
// qlinear modules, compressed-tensors' compressors, ModelOpt's export, bitsandbytes' Linear4bit and
// Linear8bitLt, gpt-oss' weights.py, MLX's quantized linears.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>

#include "load/safetensors_weights.h"

namespace memwall {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::int64_t kWordBits = 32;

Format named(const std::string& name) { return find_format(name).value_or(Format{}); }

// Integers of `bits` (or the nearest number of bits that is known), `groups` of them in a row of `in`.
Format integers(std::int64_t bits, std::int64_t in, std::int64_t groups, std::string_view zero_points) {
  constexpr std::array<std::int64_t, 6> kBits = {2, 3, 4, 5, 6, 8};
  const auto known = std::lower_bound(kBits.begin(), kBits.end() - 1, bits);
  // A row's last group may be short, so the group is a power of two from the average up.
  const std::int64_t average = groups > 1 ? div_up(in, groups) : 0;
  const auto group =
      average > 0 ? std::max<std::uint64_t>(16, std::bit_ceil(static_cast<std::uint64_t>(average))) : 0;
  if (group == 0 || group > 1024) return named(fmt::format("int{}-c{}", *known, zero_points));
  return named(fmt::format("int{}-g{}{}", *known, group, zero_points));
}

std::int64_t last(const StoredTensor& tensor) { return tensor.shape.empty() ? 1 : tensor.shape.back(); }

const StoredTensor* find_any(const StoredWeight& weight, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const StoredTensor* tensor = weight.find(name)) return tensor;
  }
  return nullptr;
}

const StoredTensor* scale_of(const StoredWeight& weight) {
  return find_any(weight,
                  {"weight_scale", "weight_scale_inv", "scale", "scales", "weight_scales", "scale_inv"});
}

bool is_power_scale(const StoredTensor& scale) { return scale.type == "F8_E8M0" || scale.type == "U8"; }

WeightReading reading(Shape shape, Format format) {
  WeightReading result{.shape = std::move(shape), .format = format};
  result.elements = 1;
  for (const std::int64_t extent : result.shape) result.elements = checked_mul(result.elements, extent);
  return result;
}

// Values whose rows are not told by the shape.
WeightReading flat(std::int64_t elements, Format format) {
  return {.shape = {}, .elements = elements, .format = format};
}

// A packed tensor whose rows of `bits` fill words along the last dimension.
std::int64_t bits_of(std::int64_t words, std::int64_t in, std::int64_t fallback) {
  if (in <= 0) return fallback;
  const std::int64_t bits = checked_mul(words, kWordBits) / in;
  return bits >= 1 && bits <= 8 ? bits : fallback;
}

// GPTQ packs along the inputs, qweight is [in·bits/32, out]; AWQ along the outputs, [in, out·bits/32].
WeightReading read_gptq(const StoredWeight& weight, const StoredTensor& values, WeightHint hint) {
  const StoredTensor* scales = weight.find("scales");
  const StoredTensor* zeros = weight.find("qzeros");
  const StoredTensor* order = weight.find("g_idx");
  Shape shape = values.shape;
  if (scales == nullptr || shape.size() < 2 || scales->shape.size() < 2 || last(*scales) < 1)
    return flat(hint.elements, integers(4, 1, 1, ""));
  const std::int64_t out = last(*scales);
  const std::int64_t rows = shape[shape.size() - 2];
  const bool awq = shape.back() != out;
  std::int64_t bits = awq ? bits_of(shape.back(), out, 4) : 0;
  if (bits == 0 && zeros != nullptr && last(*zeros) > 0) bits = bits_of(last(*zeros), out, 0);
  if (bits == 0 && order != nullptr) bits = bits_of(rows, last(*order), 0);
  if (bits == 0) bits = bits_of(rows, hint.in, 4);
  const std::int64_t in = awq ? rows : checked_mul(rows, kWordBits) / bits;
  shape[shape.size() - 2] = out;
  shape.back() = in;
  const std::int64_t groups = scales->shape[scales->shape.size() - 2];
  return reading(std::move(shape), integers(bits, in, groups, zeros != nullptr ? "-zp" : ""));
}

// Two 4-bit floats a byte, or one 8-bit float, with scales along the rows.
WeightReading read_micro(Shape shape, const StoredTensor& scale) {
  const bool nvfp4 = scale.type.starts_with("F8_E4M3");
  shape.back() = checked_mul(shape.back(), 2);
  return reading(std::move(shape), named(nvfp4 ? "nvfp4" : "mxfp4"));
}

// compressed-tensors' weight_packed, and MLX's weight in words.
WeightReading read_words(const StoredWeight& weight, const StoredTensor& values, WeightHint hint) {
  const StoredTensor* scale = scale_of(weight);
  Shape shape = values.shape;
  if (shape.empty()) return flat(1, named("int4-c"));
  const bool words = values.type == "I32" || values.type == "U32";
  if (!words)
    return scale != nullptr ? read_micro(std::move(shape), *scale) : reading(shape, named("int8-c"));
  const bool matrix = scale != nullptr && scale->shape.size() >= 2;
  const std::int64_t groups = matrix ? last(*scale) : 1;
  const bool mlx = values.type == "U32";
  // MLX's groups are 64 by default, and never a whole row.
  const std::int64_t bits = bits_of(shape.back(), hint.in > 0 || !mlx ? hint.in : checked_mul(groups, 64), 4);
  shape.back() = checked_mul(shape.back(), kWordBits) / bits;
  const std::int64_t in = shape.back();
  if (mlx && weight.find("biases") == nullptr && scale != nullptr && is_power_scale(*scale))
    return reading(std::move(shape), named(groups > 0 && in / groups == 16 ? "nvfp4"
                                           : bits > 4                      ? "mxfp8"
                                                                           : "mxfp4"));
  const char* zero_points = mlx ? "-zp16" : weight.find("weight_zero_point") != nullptr ? "-zp" : "";
  return reading(std::move(shape), integers(bits, in, groups, zero_points));
}

// How many scales there are tells what each is for.
WeightReading read_f8(const StoredWeight& weight, const StoredTensor& values) {
  const Shape& shape = values.shape;
  const StoredTensor* scale = scale_of(weight);
  if (scale == nullptr || shape.size() < 2) return reading(shape, named("f8_e4m3"));
  const std::int64_t in = shape.back();
  const std::int64_t out = shape[shape.size() - 2];
  const std::int64_t copies = in > 0 && out > 0 ? values.elements() / in / out : 1;
  const std::int64_t scales = scale->elements();
  if (scales <= copies) return reading(shape, named("f8_e4m3"));
  const std::int64_t tiles = checked_mul(copies, checked_mul(div_up(out, 128), div_up(in, 128)));
  if (scales == tiles)
    return reading(shape, named(is_power_scale(*scale) ? "f8_e4m3-b128-e8" : "f8_e4m3-b128"));
  if (scales == checked_mul(copies, out) || scales == checked_mul(copies, in))
    return reading(shape, named("f8_e4m3-c"));
  if (is_power_scale(*scale) && scales == checked_mul(copies, checked_mul(out, div_up(in, 32))))
    return reading(shape, named("mxfp8"));
  return reading(shape, named("f8_e4m3-b128"));
}

// Whole bytes, which may hold several values.
WeightReading read_bytes(const StoredWeight& weight, const StoredTensor& values, WeightHint hint) {
  const std::int64_t bytes = values.elements();
  if (weight.find("weight.absmax") != nullptr) {
    // bitsandbytes: a flat list, two values a byte.
    const std::int64_t most = checked_mul(bytes, 2);
    const std::int64_t elements = div_up(hint.elements, 2) == bytes ? hint.elements : most;
    return flat(elements, named(weight.find("weight.nested_absmax") != nullptr ? "nf4-dq" : "nf4"));
  }
  const StoredTensor* scale = scale_of(weight);
  const Shape& shape = values.shape;
  if (scale != nullptr && shape.size() >= 2 && scale->shape.size() >= 2) {
    if (scale->type.starts_with("F8_E4M3")) return read_micro(shape, *scale);
    // A scale for 32 values: two of these share a byte where it is one for 16 bytes.
    if (is_power_scale(*scale) && last(*scale) == div_up(shape.back(), 16)) return read_micro(shape, *scale);
    if (is_power_scale(*scale) && last(*scale) == div_up(shape.back(), 32))
      return reading(shape, named("mxfp8"));
  }
  // ModelOpt's 4-bit integers pack along the outputs, BitNet's ternary weights four a byte.
  for (const std::int64_t packed : {2, 4}) {
    if (bytes == 0 || scale == nullptr || hint.elements != checked_mul(bytes, packed)) continue;
    const std::int64_t groups = scale->shape.size() >= 2 ? last(*scale) : 1;
    return flat(hint.elements, integers(8 / packed, hint.in, groups, ""));
  }
  const std::int64_t groups = scale != nullptr && scale->shape.size() >= 2 ? last(*scale) : 1;
  const bool zero_points = weight.find("weight_zero_point") != nullptr;
  return reading(shape, integers(8, shape.empty() ? 1 : shape.back(), groups, zero_points ? "-zp" : ""));
}

// torchao's Int4Tensor and its kin: two values a byte, whatever the shape of the packing; scales and zeros of
// groups in any order, or in one tensor.
WeightReading read_int4(const StoredWeight& weight, WeightHint hint) {
  std::int64_t groups = 1;
  const StoredTensor* both = weight.find("weight_scale_and_zero");
  const StoredTensor* scale = both != nullptr ? both : scale_of(weight);
  if (scale != nullptr && hint.in > 0) {
    const std::int64_t scales = both != nullptr ? scale->elements() / 2 : scale->elements();
    groups = std::max<std::int64_t>(1, scales / std::max<std::int64_t>(1, hint.elements / hint.in));
  }
  return flat(hint.elements, integers(4, hint.in, groups, "-zp16"));
}

// Whatever it is: the format nearest to the bits a value takes.
WeightReading read_by_size(const StoredWeight& weight, const StoredTensor& values, WeightHint hint) {
  if (hint.elements <= 0) return reading(values.shape, named("int8-c"));
  if (const StoredTensor* scale = weight.find("scale"); scale != nullptr && weight.find("W_q") == &values) {
    // HQQ: groups along the flat list.
    const std::int64_t packed = checked_mul(values.bytes, 8) / hint.elements;
    return flat(hint.elements, integers(packed, hint.elements, scale->elements(), "-zp16"));
  }
  const double bits = 8.0 * static_cast<double>(weight.bytes()) / static_cast<double>(hint.elements);
  if (bits > 20) return flat(hint.elements, named("f32"));
  if (bits > 10) return flat(hint.elements, named("bf16"));
  return flat(hint.elements,
              integers(std::max<std::int64_t>(2, static_cast<std::int64_t>(bits - 0.2)), 1, 1, ""));
}

}  // namespace

WeightReading read_weight(const StoredWeight& weight, WeightHint hint) {
  const StoredTensor& values = weight.main();
  if (values.format) return reading(values.shape, *values.format);
  if (weight.find("qweight") == &values) return read_gptq(weight, values, hint);
  if (weight.find("blocks") == &values && values.shape.size() >= 2) {
    Shape shape = values.shape;  // [experts, out, in / 32, 16]
    shape[shape.size() - 2] = checked_mul(shape[shape.size() - 2], checked_mul(shape.back(), 2));
    shape.pop_back();
    return reading(std::move(shape), named("mxfp4"));
  }
  const bool torchao = weight.find("weight_qdata") == &values;
  if (torchao && hint.elements > 0 && checked_mul(values.bytes, 2) == hint.elements)
    return read_int4(weight, hint);
  const bool weight_itself = torchao || weight.find("weight") == &values || weight.find("") == &values;
  if (weight.find("weight_packed") == &values ||
      (weight_itself && values.type == "U32" && weight.parts.size() > 1))
    return read_words(weight, values, hint);
  const bool data = weight.find("weight._data") == &values;
  if (!weight_itself && !data) return read_by_size(weight, values, hint);
  if (values.type.starts_with("F8_E8M0")) return reading(values.shape, named("int8-c"));
  if (values.type.starts_with("F8")) return read_f8(weight, values);
  if (values.type == "F4" && weight.parts.size() > 1) {
    const StoredTensor* scale = scale_of(weight);
    return reading(values.shape, named(scale != nullptr && is_power_scale(*scale) ? "mxfp4" : "nvfp4"));
  }
  if (values.type == "F64" || values.type == "I64" || values.type == "U64" || values.type == "C64" ||
      values.type == "I32" || values.type == "U32")
    return reading(values.shape, named("f32"));
  if (values.type == "I16" || values.type == "U16") return reading(values.shape, named("f16"));
  return read_bytes(weight, values, hint);
}

}  // namespace memwall
