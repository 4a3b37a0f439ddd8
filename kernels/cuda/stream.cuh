// The bodies of the memory probes (stream.h). What makes a probe a ceiling is many bytes in flight: each
// thread issues its batch of independent 16-byte loads before it uses the first. A batch's loads lie a grid's
// width apart, so that all blocks together sweep the array, and the last, incomplete batch is spread over
// them to within one load a thread.
//
// Kernels that state kMinBlocks shall be launched with it (__launch_bounds__(kThreads, kMinBlocks)): without
// a second argument ptxas 13.0 schedules for few registers, and keeps 4 loads in flight however long the
// batch.
#pragma once

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/platform.cuh"
#include "kernels/cuda/stream.h"
#include "kernels/cuda/vector16.cuh"

namespace memwall::cuda {

// As resident_stream_blocks of the architecture that is compiled.
constexpr unsigned compiled_stream_blocks(StreamKind kind, ReadPath path, int unroll, unsigned threads,
                                          bool full) {
  return static_cast<unsigned>(resident_stream_blocks(
      StreamLaunch{kind, StreamType::f32, path, unroll, threads, full}, kCompiledMajor, kCompiledMinor));
}

MEMWALL_DEVICE float sum_of(const Vec16& v) {
  return (bits_as_float(v.word[0]) + bits_as_float(v.word[1])) +
         (bits_as_float(v.word[2]) + bits_as_float(v.word[3]));
}

// Writes the block's sum, by way of a float a warp in shared memory.
template <unsigned Threads>
MEMWALL_DEVICE void store_block_sum(const StreamParams& p, float sum, std::byte* shared) {
  sum = warp_sum(sum);
  auto* sums = reinterpret_cast<float*>(shared);
  if (lane() == 0) sums[warp()] = sum;
  sync_threads();
  if (thread_x() != 0) return;
  float total = 0;
  for (unsigned w = 0; w < Threads / kWarp; ++w) total += sums[w];
  store(p.sums + block_x(), total);
}

template <int Unroll, unsigned Threads = kStreamThreads, bool Full = false>
struct ReadKernel {
  using Params = StreamParams;
  static constexpr unsigned kThreads = Threads;
  static constexpr unsigned kMinBlocks =
      compiled_stream_blocks(StreamKind::read, ReadPath::loads, Unroll, Threads, Full);
  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    const std::int64_t stride = static_cast<std::int64_t>(grid_x()) * kThreads;
    std::int64_t i = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
    float sum = 0;
    MEMWALL_NO_UNROLL
    for (; i + (Unroll - 1) * stride < p.vectors; i += Unroll * stride) sum += batch<true>(p, i, stride);
    if (i < p.vectors) sum += batch<false>(p, i, stride);
    store_block_sum<kThreads>(p, sum, shared);
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
    for (int u = 0; u < Unroll; ++u) sum += sum_of(v[u]);
    return sum;
  }
};

// Each thread has a ring of its own in shared memory, kDepth copies of 16 bytes, and waits for no other: a
// vector is read by the thread that copied it.
struct CopiedReadKernel {
  using Params = StreamParams;
  static constexpr unsigned kThreads = kStreamThreads;
  static constexpr unsigned kMinBlocks =
      compiled_stream_blocks(StreamKind::read, ReadPath::copies, 0, kThreads, false);
  static constexpr int kRow = kThreads * 16;  // bytes
  static constexpr int kDepth = kRingBytes / kRow;
  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    std::byte* own = shared + 16 * thread_x();
    const auto* a = static_cast<const Vec16*>(p.a);
    const std::int64_t stride = static_cast<std::int64_t>(grid_x()) * kThreads;
    const std::int64_t first = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
    std::int64_t asked = first;
    const auto ask = [&](int slot) {
      if (asked < p.vectors) copy_async_16(own + slot * kRow, a + asked);
      commit_copies();  // empty groups too, so that they count alike to the end
      asked += stride;
    };
    MEMWALL_UNROLL
    for (int slot = 0; slot < kDepth; ++slot) ask(slot);
    float sum = 0;
    int slot = 0;
    MEMWALL_NO_UNROLL
    for (std::int64_t i = first; i < p.vectors; i += stride) {
      wait_copies<kDepth - 1>();
      sum += sum_of(*reinterpret_cast<const Vec16*>(own + slot * kRow));
      ask(slot);
      slot = (slot + 1) % kDepth;
    }
    store_block_sum<kThreads>(p, sum, shared + kRingBytes);
  }
};

// A block has a ring of Stages chunks. Its first thread asks for chunks; all wait for one, add it up, meet,
// and the first asks for another in its place. Blocks take chunks in turn, a grid's width apart.
template <int Stages>
struct BulkReadKernel {
  using Params = StreamParams;
  static constexpr unsigned kThreads = kStreamThreads;
  static constexpr unsigned kMinBlocks =
      compiled_stream_blocks(StreamKind::read, ReadPath::bulk, Stages, kThreads, false);
  static constexpr int kChunk = kRingBytes / Stages;  // bytes
  static constexpr int kVectors = kChunk / 16;
  static_assert(kVectors % kThreads == 0, "the threads share a chunk evenly");
  static MEMWALL_DEVICE void run(const Params& p, std::byte* shared) {
    auto* barriers = reinterpret_cast<CopyBarrier*>(shared + kRingBytes);
    const std::int64_t stride = static_cast<std::int64_t>(grid_x()) * kVectors;
    const std::int64_t first = static_cast<std::int64_t>(block_x()) * kVectors;
    if (thread_x() == 0) {
      MEMWALL_UNROLL
      for (int stage = 0; stage < Stages; ++stage) make_barrier(barriers + stage, 1);
      fence_copies();
      MEMWALL_UNROLL
      for (int stage = 0; stage < Stages; ++stage) ask(p, first + stage * stride, stage, shared);
    }
    sync_threads();
    float sum = 0;
    int stage = 0;
    unsigned parity = 0;
    MEMWALL_NO_UNROLL
    for (std::int64_t i = first; i < p.vectors; i += stride) {
      wait_for_bytes(barriers + stage, parity);
      sum += chunk_sum(reinterpret_cast<const Vec16*>(shared + stage * kChunk), p.vectors - i);
      sync_threads();
      if (thread_x() == 0) {
        fence_copies();
        ask(p, i + Stages * stride, stage, shared);
      }
      stage = (stage + 1) % Stages;
      if (stage == 0) parity ^= 1U;
    }
    store_block_sum<kThreads>(p, sum, shared + kRingBytes + Stages * sizeof(CopyBarrier));
  }

 private:
  // The chunk from vector `i` on, as far as there is one.
  static MEMWALL_DEVICE void ask(const Params& p, std::int64_t i, int stage, std::byte* shared) {
    if (i >= p.vectors) return;
    auto* barrier = reinterpret_cast<CopyBarrier*>(shared + kRingBytes) + stage;
    const std::int64_t left = p.vectors - i;
    const unsigned bytes = left < kVectors ? static_cast<unsigned>(left) * 16 : kChunk;
    expect_bytes(barrier, bytes);
    copy_bulk(shared + stage * kChunk, static_cast<const Vec16*>(p.a) + i, bytes, barrier);
  }

  static MEMWALL_DEVICE float chunk_sum(const Vec16* chunk, std::int64_t left) {
    float sum = 0;
    MEMWALL_UNROLL
    for (unsigned v = 0; v < kVectors; v += kThreads) {
      if (v + thread_x() < left) sum += sum_of(chunk[v + thread_x()]);
    }
    return sum;
  }
};

template <StreamKind Kind, bool Streaming, class T = float, bool Full = false>
struct WriteKernel {
  using Params = StreamParams;
  static constexpr unsigned kThreads = kStreamThreads;
  static constexpr unsigned kMinBlocks =
      compiled_stream_blocks(Kind, ReadPath::loads, kWriteUnroll, kThreads, Full);
  static constexpr int kUnroll = Full ? full_unroll(Kind) : kWriteUnroll;
  static constexpr bool kReadsB = Kind == StreamKind::add || Kind == StreamKind::triad;
  static MEMWALL_DEVICE void run(const Params& p, std::byte*) {
    const std::int64_t stride = static_cast<std::int64_t>(grid_x()) * kThreads;
    const std::int64_t first = static_cast<std::int64_t>(block_x()) * kThreads + thread_x();
    std::int64_t i = first;
    MEMWALL_NO_UNROLL
    for (; i + (kUnroll - 1) * stride < p.vectors; i += kUnroll * stride) batch<true>(p, i, stride);
    if (i < p.vectors) batch<false>(p, i, stride);
    if (first < p.tail) element(p, p.vectors * kInVector<T> + first);
  }

 private:
  template <bool Whole>
  static MEMWALL_DEVICE void batch(const Params& p, std::int64_t i, std::int64_t stride) {
    Vec16 a[kUnroll];
    Vec16 b[kUnroll];
    MEMWALL_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      if (Whole || i + u * stride < p.vectors)
        a[u] = load_streaming(static_cast<const Vec16*>(p.a) + i + u * stride);
    }
    MEMWALL_UNROLL
    for (int u = 0; kReadsB && u < kUnroll; ++u) {
      if (Whole || i + u * stride < p.vectors)
        b[u] = load_streaming(static_cast<const Vec16*>(p.b) + i + u * stride);
    }
    MEMWALL_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
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
  const auto floats = [&](auto kind) {
    constexpr StreamKind kKind = decltype(kind)::value;
    if (launch.full)
      return write(WriteKernel<kKind, false, float, true>(), WriteKernel<kKind, true, float, true>());
    write(WriteKernel<kKind, false>(), WriteKernel<kKind, true>());
  };
  constexpr StreamKind kAdd = StreamKind::add;
  switch (launch.kind) {
    case StreamKind::read:
      if (launch.path == ReadPath::copies) return go(CopiedReadKernel());
      if (launch.path == ReadPath::bulk)
        return launch.unroll == 2 ? go(BulkReadKernel<2>()) : go(BulkReadKernel<4>());
      if (launch.full)
        return launch.threads == 512 ? go(ReadKernel<4, 512, true>()) : go(ReadKernel<4, 256, true>());
      if (launch.unroll == 16) return go(ReadKernel<16>());
      return launch.unroll == 8 ? go(ReadKernel<8>()) : go(ReadKernel<4>());
    case StreamKind::copy:
      return floats(std::integral_constant<StreamKind, StreamKind::copy>());
    case StreamKind::scale:
      return floats(std::integral_constant<StreamKind, StreamKind::scale>());
    case StreamKind::triad:
      return floats(std::integral_constant<StreamKind, StreamKind::triad>());
    case StreamKind::add:
      break;
  }
  if (launch.type == StreamType::f16) {
    write(WriteKernel<kAdd, false, Half>(), WriteKernel<kAdd, true, Half>());
  } else if (launch.type == StreamType::bf16) {
    write(WriteKernel<kAdd, false, BFloat16>(), WriteKernel<kAdd, true, BFloat16>());
  } else {
    floats(std::integral_constant<StreamKind, kAdd>());
  }
}

}  // namespace memwall::cuda
