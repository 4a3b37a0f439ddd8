#include "kernels/cpu/kv_cache.h"

#include <cstddef>
#include <cstring>

#include "kernels/cpu/pack.h"

namespace memwall::cpu {
namespace {

constexpr std::int64_t kScaleBytes = 2;

std::int64_t element_bytes(KvFormat format) {
  return kv_vector_bytes(format, 2) - kv_vector_bytes(format, 1);
}

bool has_scale(KvFormat format) { return format == KvFormat::int8; }

// Where a token's element and its scale begin.
struct Place {
  std::int64_t first;   // byte of element 0
  std::int64_t stride;  // bytes from one element to the next
  std::int64_t scale;
};

Place place_of(const KvLayout& layout, std::int64_t token) {
  const std::int64_t element = element_bytes(layout.format);
  if (layout.order == KvOrder::rows) {
    const std::int64_t start = token * kv_vector_bytes(layout.format, layout.width);
    return {start, element, start + layout.width * element};
  }
  const std::int64_t lane = token % kPanelTokens;
  const std::int64_t start =
      token / kPanelTokens * kPanelTokens * kv_vector_bytes(layout.format, layout.width);
  const std::int64_t scale = start + kPanelTokens * layout.width * element + lane * kScaleBytes;
  if (layout.order == KvOrder::key_panels) return {start + lane * element, kPanelTokens * element, scale};
  return {start + lane * layout.width * element, element, scale};
}

template <class T>
T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

float element(KvFormat format, const std::uint8_t* from) {
  switch (format) {
    case KvFormat::f32:
      return load<float>(from);
    case KvFormat::f16:
      return f16_to_f32(load<std::uint16_t>(from));
    case KvFormat::bf16:
      return bf16_to_f32(load<std::uint16_t>(from));
    case KvFormat::f8_e4m3:
      return f8_e4m3_to_f32(*from);
    default:
      break;
  }
  return static_cast<float>(load<std::int8_t>(from));
}

}  // namespace

bool has_kv(KvFormat format) {
  switch (format) {
    case KvFormat::f32:
    case KvFormat::f16:
    case KvFormat::bf16:
    case KvFormat::f8_e4m3:
    case KvFormat::int8:
      return true;
    default:
      return false;
  }
}

std::int64_t KvLayout::bytes(std::int64_t tokens) const {
  const std::int64_t held =
      order == KvOrder::rows ? tokens : (tokens + kPanelTokens - 1) / kPanelTokens * kPanelTokens;
  return held * kv_vector_bytes(format, width);
}

void read_kv(const KvLayout& layout, const void* head, std::int64_t token, float* values) {
  const std::uint8_t* bytes = static_cast<const std::uint8_t*>(head);
  const Place place = place_of(layout, token);
  const float scale = has_scale(layout.format) ? f16_to_f32(load<std::uint16_t>(bytes + place.scale)) : 1.0F;
  for (std::int64_t i = 0; i < layout.width; ++i) {
    values[i] = element(layout.format, bytes + place.first + i * place.stride) * scale;
  }
}

void write_kv(const KvLayout& layout, void* head, std::int64_t token, const void* row) {
  std::uint8_t* bytes = static_cast<std::uint8_t*>(head);
  const std::uint8_t* source = static_cast<const std::uint8_t*>(row);
  const std::int64_t size = element_bytes(layout.format);
  const Place place = place_of(layout, token);
  const std::int64_t row_bytes = layout.width * size;
  if (place.stride == size) {
    std::memcpy(bytes + place.first, source, static_cast<std::size_t>(row_bytes));
  } else {
    for (std::int64_t i = 0; i < layout.width; ++i) {
      std::memcpy(bytes + place.first + i * place.stride, source + i * size, static_cast<std::size_t>(size));
    }
  }
  if (has_scale(layout.format)) std::memcpy(bytes + place.scale, source + row_bytes, kScaleBytes);
}

}  // namespace memwall::cpu
