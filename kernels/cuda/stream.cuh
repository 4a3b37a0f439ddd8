// The bodies of the memory probes (stream.h). What makes a probe a ceiling is many bytes in flight: each
// thread issues its batch of independent 16-byte loads before it uses the first. A batch's loads lie a grid's
// width apart, so that all blocks together sweep the array, and the last, incomplete batch is spread over
// them to within one load a thread.
//
// Kernels that state kMinBlocks shall be launched with it (__launch_bounds__(kThreads, kMinBlocks)): without
// a second argument ptxas 13.0 schedules for few registers, and keeps 4 loads in flight however long the
// batch.
#pragma once

#include "kernels/cuda/platform.cuh"
#include "kernels/cuda/stream.h"
#include "kernels/cuda/vector16.cuh"

namespace memwall::cuda {

template <int Unroll>
struct ReadKernel {
  using Params = StreamParams;
  static constexpr unsigned kThreads = kStreamThreads;
  static constexpr unsigned kMinBlocks = resident_stream_blocks(StreamKind::read, Unroll);
  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    const std::int64_t stride = static_cast<std::int64_t>(grid_x()) * kThreads;
    std::int64_t i = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
    float sum = 0;
    MEMWALL_NO_UNROLL
    for (; i + (Unroll - 1) * stride < p.vectors; i += Unroll * stride) sum += batch<true>(p, i, stride);
    if (i < p.vectors) sum += batch<false>(p, i, stride);
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
  template <bool Whole>
  static MEMWALL_DEVICE float batch(const Params& p, std::int64_t i, std::int64_t stride) {
    const auto* a = static_cast<const Vec16*>(p.a);
    Vec16 v[Unroll];
    MEMWALL_UNROLL
    for (int u = 0; u < Unroll; ++u) {
      v[u] = Vec16{};
      if (Whole || i + u * stride < p.vectors) v[u] = load_streaming(a + i + u * stride);
    }
    float sum = 0;
    MEMWALL_UNROLL
    for (int u = 0; u < Unroll; ++u) {
      sum += (bits_as_float(v[u].word[0]) + bits_as_float(v[u].word[1])) +
             (bits_as_float(v[u].word[2]) + bits_as_float(v[u].word[3]));
    }
    return sum;
  }
};

template <StreamKind Kind, bool Streaming, class T = float>
struct WriteKernel {
  using Params = StreamParams;
  static constexpr unsigned kThreads = kStreamThreads;
  static constexpr unsigned kMinBlocks = resident_stream_blocks(Kind, kWriteUnroll);
  static constexpr bool kReadsB = Kind == StreamKind::add || Kind == StreamKind::triad;
  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    const std::int64_t stride = static_cast<std::int64_t>(grid_x()) * kThreads;
    const std::int64_t first = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
    std::int64_t i = first;
    MEMWALL_NO_UNROLL
    for (; i + (kWriteUnroll - 1) * stride < p.vectors; i += kWriteUnroll * stride) batch<true>(p, i, stride);
    if (i < p.vectors) batch<false>(p, i, stride);
    if (first < p.tail) element(p, p.vectors * kInVector<T> + first);
  }

 private:
  template <bool Whole>
  static MEMWALL_DEVICE void batch(const Params& p, std::int64_t i, std::int64_t stride) {
    Vec16 a[kWriteUnroll];
    Vec16 b[kWriteUnroll];
    MEMWALL_UNROLL
    for (int u = 0; u < kWriteUnroll; ++u) {
      if (Whole || i + u * stride < p.vectors)
        a[u] = load_streaming(static_cast<const Vec16*>(p.a) + i + u * stride);
    }
    MEMWALL_UNROLL
    for (int u = 0; kReadsB && u < kWriteUnroll; ++u) {
      if (Whole || i + u * stride < p.vectors)
        b[u] = load_streaming(static_cast<const Vec16*>(p.b) + i + u * stride);
    }
    MEMWALL_UNROLL
    for (int u = 0; u < kWriteUnroll; ++u) {
      if (Whole || i + u * stride < p.vectors) {
        auto* to = static_cast<Vec16*>(p.c) + i + u * stride;
        const Vec16 c = Kind == StreamKind::copy ? a[u] : computed(a[u], b[u]);
        if (Streaming) {
          store_streaming(to, c);
        } else {
          store(to, c);
        }
      }
    }
  }

  static MEMWALL_DEVICE Vec16 computed(const Vec16& a, const Vec16& b) {
    float x[kInVector<T>];
    float y[kInVector<T>];
    widen_vector<T>(a, x);
    if (kReadsB) widen_vector<T>(b, y);
    MEMWALL_UNROLL
    for (int e = 0; e < kInVector<T>; ++e) x[e] = value(x[e], kReadsB ? y[e] : 0.0F);
    return narrow_vector<T>(x);
  }

  static MEMWALL_DEVICE void element(const Params& p, std::int64_t at) {
    const float a = widen(load_streaming(static_cast<const T*>(p.a) + at));
    const float b = kReadsB ? widen(load_streaming(static_cast<const T*>(p.b) + at)) : 0.0F;
    T rounded{};
    narrow(value(a, b), &rounded);
    store(static_cast<T*>(p.c) + at, rounded);
  }

  static MEMWALL_DEVICE float value(float a, float b) {
    if (Kind == StreamKind::scale) return 0.4F * a;
    if (Kind == StreamKind::add) return a + b;
    if (Kind == StreamKind::triad) return a + 0.4F * b;
    return a;
  }
};

// Calls run.template operator()<Kernel>(geometry, params) with the kernel that the launch names.
template <class Run>
void dispatch(const StreamLaunch& launch, Run&& run) {
  const auto go = [&](auto kernel) {
    run.template operator()<decltype(kernel)>(launch.geometry, launch.params);
  };
  const auto write = [&](auto plain, auto streaming) { launch.streaming ? go(streaming) : go(plain); };
  constexpr StreamKind kAdd = StreamKind::add;
  switch (launch.kind) {
    case StreamKind::read:
      if (launch.unroll == 16) return go(ReadKernel<16>());
      return launch.unroll == 8 ? go(ReadKernel<8>()) : go(ReadKernel<4>());
    case StreamKind::copy:
      return write(WriteKernel<StreamKind::copy, false>(), WriteKernel<StreamKind::copy, true>());
    case StreamKind::scale:
      return write(WriteKernel<StreamKind::scale, false>(), WriteKernel<StreamKind::scale, true>());
    case StreamKind::triad:
      return write(WriteKernel<StreamKind::triad, false>(), WriteKernel<StreamKind::triad, true>());
    case StreamKind::add:
      break;
  }
  if (launch.type == StreamType::f16) {
    write(WriteKernel<kAdd, false, Half>(), WriteKernel<kAdd, true, Half>());
  } else if (launch.type == StreamType::bf16) {
    write(WriteKernel<kAdd, false, BFloat16>(), WriteKernel<kAdd, true, BFloat16>());
  } else {
    write(WriteKernel<kAdd, false>(), WriteKernel<kAdd, true>());
  }
}

}  // namespace memwall::cuda
