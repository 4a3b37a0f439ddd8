// When an op on activations is worth a second thread.
#pragma once

#include <cstdint>

#include "bench/thread_pool.h"

namespace memwall {

// Below this many elements an op runs on the calling thread alone: a barrier costs more than another thread
// gains. On two threads of a Zen 4, alone and split, in us: an add of 8192 elements 1.1 and 1.4, of 16384 2.2
// and 2.0; an RMS norm of 16384 1.8 and 1.9, of 32768 4.6 and 3.3. A gated silu, with five times their
// arithmetic, already gains at 8192 (3.9 and 2.7): one rule for all costs it that microsecond.
inline constexpr std::int64_t kLeastParallelElements = 16384;

// Calls work(first, last) over [0, rows) of `width` elements each: on all workers of the pool, in grains of
// `grain` rows, or on the calling thread alone.
template <class Work>
void split_rows(ThreadPool& pool, std::int64_t rows, std::int64_t width, const Work& work,
                std::int64_t grain = 1) {
  if (rows <= grain || rows * width < kLeastParallelElements) return work(std::int64_t{0}, rows);
  pool.split(rows, grain, [&](int, std::int64_t first, std::int64_t last) { work(first, last); });
}

}  // namespace memwall
