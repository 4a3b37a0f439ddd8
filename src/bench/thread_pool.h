// A fixed set of pinned threads that run one function together.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace memwall {

// One thread a CPU of `cpus`, each pinned to its own; the calling thread takes part as worker 0 and is
// pinned too while the pool lives (its affinity is restored at the end). Not copyable. run() may be called
// from the constructing thread only, and not from inside a worker's work.
class ThreadPool {
 public:
  // Throws std::invalid_argument where `cpus` is empty, RunError where a thread cannot be started. A CPU
  // given twice gets two threads.
  explicit ThreadPool(std::vector<int> cpus);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;
  // False where the system refused to pin a thread, or two share a CPU; the figures then say so.
  bool pinned() const;

  // Calls work(worker) on every worker, 0 ... size()-1, and returns when all have returned. The first
  // exception a worker threw is rethrown here. Workers spin briefly before they sleep, so that a
  // microsecond's work does not pay a futex. The call allocates nothing.
  template <typename Work>
  void run(const Work& work) {
    run_erased([](const void* w, int worker) { (*static_cast<const Work*>(w))(worker); }, &work);
  }

  // Splits [0, items) into size() contiguous ranges whose bounds are multiples of `grain` (but the last)
  // and calls work(worker, first, last) on every worker with a non-empty range. Throws as range_of does.
  template <typename Work>
  void split(std::int64_t items, std::int64_t grain, const Work& work) {
    run([&](int worker) {
      const Range range = range_of(items, grain, size(), worker);
      if (range.first < range.last) work(worker, range.first, range.last);
    });
  }

  // Called by every worker inside one run(), the same number of times by each: returns when all have come,
  // and what each wrote before is seen by all after. So a run can have phases for a fraction of a run's
  // cost. Where a worker threw, the others leave their work here by an exception of the pool's own (let it
  // pass), and run() rethrows the worker's.
  void barrier(int worker);

  struct Range {
    std::int64_t first = 0;
    std::int64_t last = 0;
  };
  // The range of one worker; the ranges differ by one grain at most, the longer ones come first, and where
  // there are more workers than grains the last ones are empty. Throws std::invalid_argument where `items`
  // is negative, `grain` or `workers` is below 1, or `worker` is not in [0, workers).
  static Range range_of(std::int64_t items, std::int64_t grain, int workers, int worker);

 private:
  using ErasedWork = void (*)(const void* work, int worker);
  void run_erased(ErasedWork call, const void* work);
  void work_until_stopped(int worker);
  void stop_threads();

  struct State;
  std::unique_ptr<State> state_;
  std::vector<std::thread> threads_;
};

}  // namespace memwall
