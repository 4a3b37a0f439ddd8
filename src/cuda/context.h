// What all operands on a GPU share: its memory, random contents, and activations.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/runtime.h"

namespace memwall::cuda {

// Device memory, freed with its owner.
class Buffer {
 public:
  Buffer() = default;
  // Throws RunError where the GPU has not that much free.
  Buffer(Gpu& gpu, std::int64_t bytes);
  Buffer(Buffer&& other) noexcept
      : gpu_(other.gpu_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  Gpu* gpu_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// What random bits become: of a 32-bit word, which stay random and which are set.
struct RandomBits {
  std::uint32_t keep = ~std::uint32_t{0};
  std::uint32_t set = 0;
};
// Any bytes.
inline constexpr RandomBits kAnyBits{};
// Floats of magnitude 1/8 to 2 and either sign: sign, mantissa and the two lowest bits of the exponent
// random.
inline constexpr RandomBits kFloat32{0x81FFFFFFU, 0x3E000000U};
inline constexpr RandomBits kFloat16{0x8FFF8FFFU, 0x30003000U};
inline constexpr RandomBits kBFloat16{0x81FF81FFU, 0x3E003E00U};
inline constexpr RandomBits kF8E4M3{0x9F9F9F9FU, 0x20202020U};
// Positive scales of 2^-9 to 2^-7.
inline constexpr RandomBits kScale16{0x07FF07FFU, 0x18001800U};  // f16
inline constexpr RandomBits kScale32{0x00FFFFFFU, 0x3B000000U};  // f32

// Fills device memory, 4-byte aligned, with such bits.
void fill_random(Gpu& gpu, void* data, std::int64_t bytes, RandomBits bits, std::uint64_t seed);

// Bytes of a scalar.
std::int64_t scalar_bytes(ScalarType type);

// The activations that ops read, shared by all operands alive, as a step's are: hot, random floats of
// magnitude 1/8 to 2, large enough for the largest that asked. A pointer is valid for as long as its share is
// held. No launch writes them but rotary, which turns pairs.
class SharedInputs {
 public:
  // f32, f16 or bf16.
  std::shared_ptr<Buffer> with_room(Gpu& gpu, ScalarType type, std::int64_t elements);

 private:
  std::weak_ptr<Buffer> buffers_[3];
};

// And those that ops write.
class SharedOutputs {
 public:
  std::shared_ptr<Buffer> with_room(Gpu& gpu, std::int64_t bytes);

 private:
  std::weak_ptr<Buffer> buffer_;
};

struct Context {
  explicit Context(Gpu& g) : gpu(g) {}
  Gpu& gpu;
  SharedInputs inputs;
  SharedOutputs outputs;
};

// Copies a part of device memory to the host.
template <class T>
std::vector<T> download(Gpu& gpu, const void* from, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  if (count > 0) gpu.download(values.data(), from, count * static_cast<std::int64_t>(sizeof(T)));
  return values;
}

}  // namespace memwall::cuda
