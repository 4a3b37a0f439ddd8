// Matrices in a GPU's layout whose values the tests know without reading them back, and float64 references.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/cpu_data.h"
#include "kernels/cpu/pack.h"
#include "kernels/cuda/linear.h"
#include "tests/cuda/fake_gpu.h"

namespace memwall::cuda::linear_test {

// Of exactly `bytes`, 256-byte aligned, so that the address sanitizer sees an access beyond.
class Memory {
 public:
  explicit Memory(std::int64_t bytes)
      : data_(static_cast<std::byte*>(
                  std::aligned_alloc(256, static_cast<std::size_t>((bytes + 255) / 256 * 256))),
              std::free) {
    std::memset(data_.get(), 0xFF, static_cast<std::size_t>((bytes + 255) / 256 * 256));
  }
  std::byte* data() const { return data_.get(); }

 private:
  std::unique_ptr<std::byte, void (*)(void*)> data_;
};

inline std::vector<Format> formats() {
  std::vector<Format> all = {{FormatKind::f32},
                             {FormatKind::f16},
                             {FormatKind::bf16},
                             {FormatKind::f8_e4m3},
                             {FormatKind::f8_e4m3_channel},
                             {FormatKind::f8_e4m3_b128},
                             {FormatKind::q8_0},
                             {FormatKind::q4_0}};
  for (const int group : {0, 32, 64, 128}) {
    all.push_back({FormatKind::int4_group, group, false});
    all.push_back({FormatKind::int4_group, group, true});
  }
  all.push_back({FormatKind::int8_group, 0});
  all.push_back({FormatKind::int8_group, 64});
  return all;
}

struct Matrix {
  Matrix(Format format, std::int64_t out, std::int64_t in, std::uint64_t seed)
      : layout(linear_layout(format, out, in)),
        memory(layout.bytes),
        values(static_cast<std::size_t>(out * in)) {
    std::mt19937_64 random(seed);
    const auto put = [&](std::int64_t at, auto value) {
      std::memcpy(memory.data() + at, &value, sizeof value);
    };
    std::uniform_real_distribution<float> uniform(0.5F, 2.0F);
    const auto signed_float = [&] { return random() % 2 == 0 ? uniform(random) : -uniform(random); };
    std::memset(memory.data(), 0x11, static_cast<std::size_t>(out * layout.pitch));
    std::memset(memory.data() + layout.zeros_at, 0, static_cast<std::size_t>(layout.zero_bytes));
    const std::int64_t group =
        format.kind == FormatKind::q8_0 || format.kind == FormatKind::q4_0 ? 32 : format.group;
    for (std::int64_t row = 0; row < out; ++row) {
      float scale = 1;
      int zero = 8;
      for (std::int64_t k = 0; k < in; ++k) {
        const std::int64_t g = group == 0 ? 0 : k / group;
        switch (layout.rule) {
          case ScaleRule::none:
            break;
          case ScaleRule::tensor:
            scale = 0.75F;
            put(layout.scales_at, scale);
            break;
          case ScaleRule::row:
            scale = 0.5F + static_cast<float>(row % 7) / 8;
            put(layout.scales_at + row * 4, scale);
            break;
          case ScaleRule::block128:
            scale = 0.5F + static_cast<float>((row / 128 * 3 + k / 128 * 5) % 7) / 8;
            put(layout.scales_at + (row / 128 * ((in + 127) / 128) + k / 128) * 4, scale);
            break;
          case ScaleRule::group:
          case ScaleRule::group_zero:
            if (group == 0 ? k > 0 : k % group != 0) break;
            scale = static_cast<float>(64 + random() % 64) / 128;
            put(layout.scales_at + (row * layout.groups + g) * 2, cpu::f32_to_f16(scale));
            if (layout.rule == ScaleRule::group) break;
            zero = static_cast<int>(random() % 16);
            memory.data()[layout.zeros_at + row * layout.zero_pitch + g / 2] |=
                static_cast<std::byte>(zero << (g % 2 * 4));
        }
        float value = signed_float();
        const std::int64_t at = row * layout.pitch;
        switch (layout.code) {
          case WeightCode::f32:
            put(at + 4 * k, value);
            break;
          case WeightCode::f16:
            put(at + 2 * k, cpu::f32_to_f16(value));
            value = cpu::f16_to_f32(cpu::f32_to_f16(value));
            break;
          case WeightCode::bf16:
            put(at + 2 * k, cpu::f32_to_bf16(value));
            value = cpu::bf16_to_f32(cpu::f32_to_bf16(value));
            break;
          case WeightCode::f8:
            put(at + k, cpu::f32_to_f8_e4m3(value));
            value = cpu::f8_e4m3_to_f32(cpu::f32_to_f8_e4m3(value));
            break;
          case WeightCode::i8:
            value = static_cast<float>(static_cast<int>(random() % 255) - 127);
            put(at + k, static_cast<std::int8_t>(value));
            break;
          case WeightCode::u4: {
            const auto nibble = static_cast<unsigned>(random() % 16);
            // Even weights of a word lie in its lower half.
            const std::int64_t place = k % 8 / 2 + (k % 2 == 0 ? 0 : 4);
            std::byte& byte = memory.data()[at + k / 8 * 4 + place / 2];
            const auto kept = byte & static_cast<std::byte>(place % 2 == 0 ? 0xF0 : 0x0F);
            byte = kept | static_cast<std::byte>(nibble << (place % 2 * 4));
            value = static_cast<float>(static_cast<int>(nibble) - zero);
          }
        }
        values[static_cast<std::size_t>(row * in + k)] = scale * value;
      }
    }
  }
  LinearSegment segment(void* y) const {
    LinearSegment s;
    s.quants = memory.data();
    s.scales = memory.data() + layout.scales_at;
    s.zeros = memory.data() + layout.zeros_at;
    s.y = y;
    s.out = layout.out;
    return s;
  }

  LinearLayout layout;
  Memory memory;
  std::vector<float> values;
};

// Activations of a type, and their exact values.
struct Vector {
  Vector(ActivationType t, std::int64_t count, std::uint64_t seed, std::int64_t zeros_up_to = 0)
      : type(t), memory(std::max(count, zeros_up_to) * activation_bytes(t)) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
    for (std::int64_t i = 0; i < std::max(count, zeros_up_to); ++i) {
      const float value = i < count ? uniform(random) : 0.0F;
      if (type == ActivationType::f32) std::memcpy(memory.data() + 4 * i, &value, 4);
      const std::uint16_t bits =
          type == ActivationType::bf16 ? cpu::f32_to_bf16(value) : cpu::f32_to_f16(value);
      if (type != ActivationType::f32) std::memcpy(memory.data() + 2 * i, &bits, 2);
    }
    values = read(count);
  }
  std::vector<float> read(std::int64_t count) const {
    std::vector<float> result;
    for (std::int64_t i = 0; i < count; ++i) {
      float value = 0;
      std::uint16_t bits = 0;
      if (type == ActivationType::f32) std::memcpy(&value, memory.data() + 4 * i, 4);
      if (type != ActivationType::f32) std::memcpy(&bits, memory.data() + 2 * i, 2);
      if (type == ActivationType::bf16) value = cpu::bf16_to_f32(bits);
      if (type == ActivationType::f16) value = cpu::f16_to_f32(bits);
      result.push_back(value);
    }
    return result;
  }
  std::byte* data() const { return memory.data(); }

  ActivationType type;
  Memory memory;
  std::vector<float> values;
};

// Half an ulp of an output, beside its sum's tolerance.
inline double rounding(ActivationType type, double value) {
  if (type == ActivationType::f32) return std::abs(value) * 1e-6;
  return std::abs(value) * (type == ActivationType::bf16 ? 0x1p-8 : 0x1p-10) + 0x1p-24;
}

inline ReferenceDot dot(const Matrix& matrix, std::int64_t row, const float* x, double bias = 0) {
  const auto first = matrix.values.begin() + row * matrix.layout.in;
  return reference_dot({first, first + matrix.layout.in}, {x, x + matrix.layout.in}, bias);
}

inline void set_order(FakeGpu& gpu, int i) {
  const Order orders[] = {Order::forward, Order::backward, Order::shuffled};
  gpu.executor().settings().blocks = orders[i % 3];
  gpu.executor().settings().threads = orders[i % 3];
}

// Partial sums and counters of a split launch.
struct SplitRoom {
  explicit SplitRoom(LinearLaunch& launch)
      : partials(4 * linear_partials(launch) + 1), counters(4 * linear_counters(launch) + 1) {
    launch.params.partials = reinterpret_cast<float*>(partials.data());
    launch.params.counters = reinterpret_cast<unsigned*>(counters.data());
    std::memset(counters.data(), 0, static_cast<std::size_t>(4 * linear_counters(launch)));
  }
  Memory partials;
  Memory counters;
};

}  // namespace memwall::cuda::linear_test
