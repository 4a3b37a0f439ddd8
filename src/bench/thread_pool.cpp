#include "bench/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <exception>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench/topology.h"
#include "input/error.h"

namespace memwall {
namespace {

// Long enough to bridge the gap between two samples and the difference between two workers, so that a
// futex's wake-up (tens of microseconds) stays out of the timed region.
constexpr std::chrono::microseconds spin_limit{200};

bool set_affinity(pthread_t thread, const std::vector<int>& cpus) {
  constexpr int word_bits = sizeof(unsigned long) * CHAR_BIT;
  constexpr int cpu_limit = 1 << 16;
  std::vector<unsigned long> mask;
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= cpu_limit) return false;
    const auto word = static_cast<std::size_t>(cpu / word_bits);
    if (word >= mask.size()) mask.resize(word + 1);
    mask[word] |= 1UL << (cpu % word_bits);
  }
  return pthread_setaffinity_np(thread, mask.size() * sizeof(unsigned long),
                                reinterpret_cast<const cpu_set_t*>(mask.data())) == 0;
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `value` differs from `old`, which it returned last.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old, bool may_spin) {
  if (may_spin) {
    const auto deadline = std::chrono::steady_clock::now() + spin_limit;
    do {
      for (int i = 0; i < 32; ++i) {
        if (value.load() != old) return;
        relax();
      }
    } while (std::chrono::steady_clock::now() < deadline);
  } else {
    // The thread waited for may need this very CPU: give it up at once.
    for (int i = 0; i < 4; ++i) {
      if (value.load() != old) return;
      std::this_thread::yield();
    }
  }
  value.wait(old);
}

}  // namespace

// What one worker tells the others; its own cache line, so that waiting for one worker does not slow another.
struct alignas(64) Slot {
  std::atomic<std::uint32_t> finished{0};  // the last run it finished
  std::atomic<std::uint32_t> arrived{0};   // barriers it has come to
};

// Leaves the work of a worker that waits for one that threw.
struct Abandoned {};

// The atomics keep the default order, sequentially consistent: wait and notify rely on a store not passing
// the load of the count of sleepers, and the release and acquire that publish the plain fields are in it.
//
// Both ways of meeting are the same two hops: the others write their slot, worker 0 reads them all and then
// writes the one word they wait for. No word is written by two workers, so no line is fought for. Two threads
// of one core (Zen 4): an empty run 0.13 us, a barrier 0.13 us; with one shared count that all decrement, and
// a std::function, a run took 0.21.
struct ThreadPool::State {
  explicit State(std::size_t workers) : slots(workers) {}

  alignas(64) std::atomic<std::uint32_t> epoch{0};       // one more with every run
  alignas(64) std::atomic<std::uint32_t> generation{0};  // one more with every barrier passed
  alignas(64) ErasedWork call = nullptr;
  const void* work = nullptr;
  bool stop = false;
  bool may_spin = false;
  bool pinned = true;
  std::vector<int> callers_cpus;                // to restore
  std::vector<Slot> slots;                      // by worker; worker 0's is not used
  alignas(64) std::atomic<bool> broken{false};  // a worker threw in this run
  std::mutex mutex;
  std::exception_ptr error;  // guarded by mutex while workers run

  void call_work(int worker) {
    try {
      call(work, worker);
    } catch (const Abandoned&) {
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
      broken.store(true);
    }
    if (broken.load()) release(worker);
  }

  // Whoever waits for this worker at a barrier, or will, shall not wait for ever.
  void release(int worker) {
    std::atomic<std::uint32_t>& word =
        worker == 0 ? generation : slots[static_cast<std::size_t>(worker)].arrived;
    word.fetch_add(1);
    word.notify_all();
  }
};

ThreadPool::ThreadPool(std::vector<int> cpus) : state_(std::make_unique<State>(cpus.size())) {
  if (cpus.empty()) throw std::invalid_argument("a thread pool needs at least one CPU");
  State& state = *state_;
  state.callers_cpus = allowed_cpus();
  const bool distinct = std::set<int>(cpus.begin(), cpus.end()).size() == cpus.size();
  state.pinned = distinct;
  // A waiting thread that spins where another has to run only delays it.
  state.may_spin = distinct && cpus.size() <= state.callers_cpus.size();
  try {
    threads_.reserve(cpus.size() - 1);
    for (std::size_t worker = 1; worker < cpus.size(); ++worker) {
      threads_.emplace_back(&ThreadPool::work_until_stopped, this, static_cast<int>(worker));
      if (!set_affinity(threads_.back().native_handle(), {cpus[worker]})) state.pinned = false;
    }
  } catch (const std::exception& error) {
    stop_threads();
    throw RunError("cannot start " + std::to_string(cpus.size()) + " threads: " + error.what());
  }
  // Last, because new threads inherit the affinity: one that cannot be pinned shall roam, not sit here.
  if (!set_affinity(pthread_self(), {cpus[0]})) state.pinned = false;
}

ThreadPool::~ThreadPool() {
  stop_threads();
  set_affinity(pthread_self(), state_->callers_cpus);
}

void ThreadPool::stop_threads() {
  state_->stop = true;
  state_->epoch.fetch_add(1);
  state_->epoch.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::work_until_stopped(int worker) {
  State& state = *state_;
  std::atomic<std::uint32_t>& finished = state.slots[static_cast<std::size_t>(worker)].finished;
  for (std::uint32_t epoch = 0;; ++epoch) {
    wait_for_change(state.epoch, epoch, state.may_spin);
    if (state.stop) return;
    state.call_work(worker);
    finished.store(epoch + 1);
    finished.notify_one();
  }
}

int ThreadPool::size() const { return static_cast<int>(threads_.size()) + 1; }

bool ThreadPool::pinned() const { return state_->pinned; }

void ThreadPool::run_erased(ErasedWork call, const void* work) {
  State& state = *state_;
  state.call = call;
  state.work = work;
  const std::uint32_t before = state.epoch.fetch_add(1);
  state.epoch.notify_all();
  state.call_work(0);
  for (std::size_t worker = 1; worker < state.slots.size(); ++worker) {
    wait_for_change(state.slots[worker].finished, before, state.may_spin);
  }
  if (!state.broken.load()) return;
  // Nobody runs now: the barriers start anew, wherever each worker left them.
  state.broken.store(false);
  state.generation.store(0);
  for (Slot& slot : state.slots) slot.arrived.store(0);
  std::rethrow_exception(std::exchange(state.error, nullptr));
}

void ThreadPool::barrier(int worker) {
  State& state = *state_;
  if (worker == 0) {
    const std::uint32_t passed = state.generation.load();
    for (std::size_t other = 1; other < state.slots.size(); ++other) {
      wait_for_change(state.slots[other].arrived, passed, state.may_spin);
    }
    if (state.broken.load()) throw Abandoned();  // call_work releases those who wait
    state.generation.store(passed + 1);
    state.generation.notify_all();
    return;
  }
  std::atomic<std::uint32_t>& arrived = state.slots[static_cast<std::size_t>(worker)].arrived;
  const std::uint32_t passed = arrived.load();
  arrived.store(passed + 1);
  arrived.notify_one();
  wait_for_change(state.generation, passed, state.may_spin);
  if (state.broken.load()) throw Abandoned();
}

ThreadPool::Range ThreadPool::range_of(std::int64_t items, std::int64_t grain, int workers, int worker) {
  if (items < 0 || grain < 1 || workers < 1 || worker < 0 || worker >= workers) {
    throw std::invalid_argument("cannot split " + std::to_string(items) + " items in grains of " +
                                std::to_string(grain) + " for worker " + std::to_string(worker) + " of " +
                                std::to_string(workers));
  }
  const std::int64_t grains = items / grain + (items % grain != 0 ? 1 : 0);
  const std::int64_t each = grains / workers;
  const std::int64_t longer = grains % workers;  // this many workers take one more
  const auto bound = [&](std::int64_t w) {
    const std::int64_t grains_before = w * each + std::min(w, longer);
    return grains_before < grains ? grains_before * grain : items;  // the product cannot pass `items`
  };
  return {bound(worker), bound(worker + std::int64_t{1})};
}

}  // namespace memwall
