// The bodies of the memory probes (stream.h). What makes a probe a ceiling is many bytes in flight: each
// thread issues `Unroll` independent 16-byte loads before it uses the first.
#pragma once

#include "kernels/cuda/platform.cuh"
#include "kernels/cuda/stream.h"

namespace memwall::cuda {

template <int Unroll>
struct ReadKernel {
  using Params = StreamParams;
  static constexpr unsigned kThreads = kStreamThreads;
  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    const auto* a = reinterpret_cast<const Vec16*>(p.a);
    const std::int64_t stride = static_cast<std::int64_t>(grid_x()) * kThreads;
    std::int64_t i = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
    float sum = 0;
    for (; i + (Unroll - 1) * stride < p.vectors; i += Unroll * stride) {
      Vec16 v[Unroll];
      MEMWALL_UNROLL
      for (int u = 0; u < Unroll; ++u) v[u] = load_streaming(a + i + u * stride);
      MEMWALL_UNROLL
      for (int u = 0; u < Unroll; ++u) sum += sum_of(v[u]);
    }
    for (; i < p.vectors; i += stride) sum += sum_of(load_streaming(a + i));
    sum = warp_sum(sum);
    auto* sums = reinterpret_cast<float*>(shared);
    if (lane() == 0) sums[warp()] = sum;
    sync_threads();
    if (thread_x() != 0) return;
    float total = 0;
    for (unsigned w = 0; w < kThreads / kWarp; ++w) total += sums[w];
    store(p.sums + block_x(), total);
  }

 private:
  static MEMWALL_DEVICE float sum_of(const Vec16& v) {
    return (bits_as_float(v.word[0]) + bits_as_float(v.word[1])) +
           (bits_as_float(v.word[2]) + bits_as_float(v.word[3]));
  }
};

template <StreamKind Kind, bool Streaming>
struct WriteKernel {
  using Params = StreamParams;
  static constexpr unsigned kThreads = kStreamThreads;
  static constexpr bool kReadsB = Kind == StreamKind::add || Kind == StreamKind::triad;
  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    constexpr int kUnroll = 4;
    const std::int64_t stride = static_cast<std::int64_t>(grid_x()) * kThreads;
    std::int64_t i = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
    for (; i + (kUnroll - 1) * stride < p.vectors; i += kUnroll * stride) {
      Vec16 a[kUnroll];
      Vec16 b[kUnroll];
      MEMWALL_UNROLL
      for (int u = 0; u < kUnroll; ++u)
        a[u] = load_streaming(reinterpret_cast<const Vec16*>(p.a) + i + u * stride);
      MEMWALL_UNROLL
      for (int u = 0; kReadsB && u < kUnroll; ++u)
        b[u] = load_streaming(reinterpret_cast<const Vec16*>(p.b) + i + u * stride);
      MEMWALL_UNROLL
      for (int u = 0; u < kUnroll; ++u) write(p, i + u * stride, a[u], b[u]);
    }
    for (; i < p.vectors; i += stride) {
      const Vec16 a = load_streaming(reinterpret_cast<const Vec16*>(p.a) + i);
      Vec16 b{};
      if (kReadsB) b = load_streaming(reinterpret_cast<const Vec16*>(p.b) + i);
      write(p, i, a, b);
    }
  }

 private:
  static MEMWALL_DEVICE void write(const Params& p, std::int64_t i, const Vec16& a, const Vec16& b) {
    Vec16 c{};
    MEMWALL_UNROLL
    for (int w = 0; w < 4; ++w) {
      const float x = bits_as_float(a.word[w]);
      float y = x;
      if (Kind == StreamKind::scale) y = 0.4F * x;
      if (Kind == StreamKind::add) y = x + bits_as_float(b.word[w]);
      if (Kind == StreamKind::triad) y = x + 0.4F * bits_as_float(b.word[w]);
      c.word[w] = float_as_bits(y);
    }
    auto* to = reinterpret_cast<Vec16*>(p.c) + i;
    if (Streaming) {
      store_streaming(to, c);
    } else {
      store(to, c);
    }
  }
};

// Calls run.template operator()<Kernel>(geometry, params) with the kernel that the launch names.
template <class Run>
void dispatch(const StreamLaunch& launch, Run&& run) {
  const auto go = [&](auto kernel) {
    run.template operator()<decltype(kernel)>(launch.geometry, launch.params);
  };
  const auto write = [&](auto plain, auto streaming) { launch.streaming ? go(streaming) : go(plain); };
  switch (launch.kind) {
    case StreamKind::read:
      if (launch.unroll == 16) return go(ReadKernel<16>());
      return launch.unroll == 8 ? go(ReadKernel<8>()) : go(ReadKernel<4>());
    case StreamKind::copy:
      return write(WriteKernel<StreamKind::copy, false>(), WriteKernel<StreamKind::copy, true>());
    case StreamKind::scale:
      return write(WriteKernel<StreamKind::scale, false>(), WriteKernel<StreamKind::scale, true>());
    case StreamKind::add:
      return write(WriteKernel<StreamKind::add, false>(), WriteKernel<StreamKind::add, true>());
    case StreamKind::triad:
      return write(WriteKernel<StreamKind::triad, false>(), WriteKernel<StreamKind::triad, true>());
  }
}

}  // namespace memwall::cuda
