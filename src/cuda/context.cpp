#include "cuda/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/checked.h"
#include "format/units.h"
#include "input/error.h"

namespace memwall::cuda {

Buffer::Buffer(Gpu& gpu, std::int64_t bytes) : gpu_(&gpu), bytes_(bytes) {
  const std::int64_t free = gpu.free_bytes();
  if (bytes > free) {
    throw RunError(fmt::format("{:.2f} GiB do not fit: {} has {:.2f} GiB free",
                               static_cast<double>(bytes) / kGiB, gpu.properties().name,
                               static_cast<double>(free) / kGiB));
  }
  data_ = gpu.allocate(std::max<std::int64_t>(bytes, 1));
}

Buffer::~Buffer() {
  if (data_ != nullptr) gpu_->release(data_);
}

void fill_random(Gpu& gpu, void* data, std::int64_t bytes, RandomBits bits, std::uint64_t seed) {
  gpu.launch(fill_launch({.data = static_cast<std::uint32_t*>(data),
                          .bytes = bytes,
                          .seed = seed,
                          .keep = bits.keep,
                          .set = bits.set}));
}

std::int64_t scalar_bytes(ScalarType type) {
  switch (type) {
    case ScalarType::f32:
      return 4;
    case ScalarType::f16:
    case ScalarType::bf16:
      return 2;
    case ScalarType::f8_e4m3:
    case ScalarType::i8:
      break;
  }
  return 1;
}

// A larger buffer replaces the one that others hold on to, who keep theirs until they end.
std::shared_ptr<Buffer> SharedInputs::with_room(Gpu& gpu, ScalarType type, std::int64_t elements) {
  const bool wide = type == ScalarType::f32;
  const bool half = type == ScalarType::f16;
  std::weak_ptr<Buffer>& buffer = buffers_[wide ? 0 : half ? 1 : 2];
  const std::int64_t bytes = checked_mul(elements, scalar_bytes(type));
  if (auto held = buffer.lock(); held && held->bytes() >= bytes) return held;
  auto fresh = std::make_shared<Buffer>(gpu, bytes);
  fill_random(gpu, fresh->data(), bytes, wide ? kFloat32 : half ? kFloat16 : kBFloat16, 11);
  buffer = fresh;
  return fresh;
}

std::shared_ptr<Buffer> SharedOutputs::with_room(Gpu& gpu, std::int64_t bytes) {
  if (auto held = buffer_.lock(); held && held->bytes() >= bytes) return held;
  auto fresh = std::make_shared<Buffer>(gpu, bytes);
  buffer_ = fresh;
  return fresh;
}

}  // namespace memwall::cuda
