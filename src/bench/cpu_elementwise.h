// When an op on activations is worth a second thread.
#pragma once

#include <cstdint>

#include "bench/thread_pool.h"

namespace memwall {

// Below this many elements an op runs on the calling thread alone: a barrier costs more than another thread
// gains.
inline constexpr std::int64_t kLeastParallelElements = 16384;

// Calls work(first, last) over [0, rows) of `width` elements each, on all workers of the pool or on the
// calling thread alone.
template <class Work>
void split_rows(ThreadPool& pool, std::int64_t rows, std::int64_t width, const Work& work) {
  if (rows * width < kLeastParallelElements) return work(std::int64_t{0}, rows);
  pool.split(rows, 1, [&](int, std::int64_t first, std::int64_t last) { work(first, last); });
}

}  // namespace memwall
