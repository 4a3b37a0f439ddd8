#include "tests/cuda/executor.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "kernels/cuda/host_thread.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace memwall::cuda {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

// A stack of its own and where its thread stopped. Stacks are kept from launch to launch.
class Stack {
 public:
  Stack()
      : data_(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0)) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Stack() { munmap(data_, kStackBytes); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

Stack& stack_of(unsigned thread) {
  static std::vector<std::unique_ptr<Stack>> stacks;
  while (stacks.size() <= thread) stacks.push_back(std::make_unique<Stack>());
  return *stacks[thread];
}

enum class State : std::uint8_t { ready, at_block_barrier, at_warp_barrier, at_exchange, at_ballot, done };

}  // namespace

class Block {
 public:
  Block(Executor& executor, const Geometry& geometry, unsigned threads,
        const std::function<void(std::byte*)>& body)
      : executor_(executor), geometry_(geometry), body_(body), threads_(threads) {}

  void run(Index3 block);

 private:
  struct Access {
    const std::byte* address;
    std::size_t bytes;
    bool write;
    bool streaming;
  };
  struct PendingCopy {
    void* to;
    const void* from;
    std::size_t bytes;
    int group;
  };

  struct Thread final : HostThread {
    Block* owner = nullptr;
    State state = State::ready;
    ucontext_t context{};
    std::uint64_t value = 0;
    unsigned from = 0;
    std::uint64_t result = 0;
    std::vector<Access> accesses;  // since it last met others
    std::vector<PendingCopy> copies;
    int groups = 0;
    void* fake_stack = nullptr;

    void sync_threads() override { wait(State::at_block_barrier); }
    void sync_warp() override { wait(State::at_warp_barrier); }
    std::uint64_t exchange(std::uint64_t brought, unsigned lane) override {
      value = brought;
      from = lane;
      wait(State::at_exchange);
      return result;
    }
    std::uint32_t ballot(bool vote) override {
      value = vote ? 1 : 0;
      wait(State::at_ballot);
      return static_cast<std::uint32_t>(result);
    }
    void reads(const void* address, std::size_t bytes, bool streaming) override {
      accesses.push_back({static_cast<const std::byte*>(address), bytes, false, streaming});
    }
    void writes(const void* address, std::size_t bytes) override {
      accesses.push_back({static_cast<const std::byte*>(address), bytes, true, false});
    }
    void copy_async(void* shared, const void* global, std::size_t bytes) override {
      copies.push_back({shared, global, bytes, groups});
    }
    void commit_copies() override { ++groups; }
    void wait_copies(int groups_left) override {
      std::erase_if(copies, [&](const PendingCopy& copy) {
        if (copy.group >= groups - groups_left) return false;
        std::memcpy(copy.to, copy.from, copy.bytes);
        return true;
      });
    }
    void wait(State at) {
      state = at;
      owner->to_scheduler(*this);
    }
  };

  static void prepare(Thread& thread);
  static void enter(unsigned low, unsigned high);
  void to_scheduler(Thread& thread);
  void resume(Thread& thread);
  bool release();
  void settle_warp(unsigned first, unsigned last);
  void count_accesses(unsigned first, unsigned last);

  Executor& executor_;
  const Geometry& geometry_;
  const std::function<void(std::byte*)>& body_;
  unsigned threads_;
  std::vector<Thread> all_;
  std::byte* shared_ = nullptr;
  ucontext_t scheduler_{};
  std::exception_ptr failure_;
  void* scheduler_fake_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_stack_bytes_ = 0;
};

void Block::enter(unsigned low, unsigned high) {
  auto* thread = reinterpret_cast<Thread*>((static_cast<std::uintptr_t>(high) << 32) | low);
  Block& block = *thread->owner;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_stack_, &block.scheduler_stack_bytes_);
#endif
  try {
    block.body_(block.shared_);
    if (!thread->copies.empty())
      throw KernelError("a thread ends with an asynchronous copy that nothing waits for");
  } catch (...) {
    if (!block.failure_) block.failure_ = std::current_exception();
  }
  thread->state = State::done;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, block.scheduler_stack_, block.scheduler_stack_bytes_);
#endif
  swapcontext(&thread->context, &block.scheduler_);
}

void Block::to_scheduler(Thread& thread) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&thread.fake_stack, scheduler_stack_, scheduler_stack_bytes_);
#endif
  swapcontext(&thread.context, &scheduler_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(thread.fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
}

void Block::resume(Thread& thread) {
  HostThread::current() = &thread;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&scheduler_fake_, stack_of(thread.index).data(), kStackBytes);
#endif
  swapcontext(&scheduler_, &thread.context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(scheduler_fake_, nullptr, nullptr);
#endif
  HostThread::current() = nullptr;
}

void Block::count_accesses(unsigned first, unsigned last) {
  std::size_t most = 0;
  for (unsigned t = first; t < last; ++t) most = std::max(most, all_[t].accesses.size());
  Traffic& traffic = executor_.traffic_;
  std::vector<std::uintptr_t> sectors[3];  // read, streamed, written
  for (std::size_t k = 0; k < most; ++k) {
    for (auto& each : sectors) each.clear();
    for (unsigned t = first; t < last; ++t) {
      if (k >= all_[t].accesses.size()) continue;
      const Access& access = all_[t].accesses[k];
      const auto begin = reinterpret_cast<std::uintptr_t>(access.address);
      const auto bytes = static_cast<std::int64_t>(access.bytes);
      if (access.write) {
        traffic.bytes_written += bytes;
      } else {
        traffic.bytes_read += bytes;
        if (access.streaming) traffic.streamed_bytes += bytes;
      }
      for (std::uintptr_t s = begin / 32; s <= (begin + access.bytes - 1) / 32; ++s) {
        sectors[access.write ? 2 : 0].push_back(s);
        if (access.streaming) sectors[1].push_back(s);
      }
      if (!access.write && executor_.watch_begin_ != nullptr) {
        const auto from = reinterpret_cast<std::uintptr_t>(executor_.watch_begin_);
        for (std::uintptr_t b = begin; b < begin + access.bytes; ++b) {
          if (b >= from && b < from + executor_.watch_counts_.size()) ++executor_.watch_counts_[b - from];
        }
      }
    }
    std::int64_t* counters[3] = {&traffic.sectors_read, &traffic.streamed_sectors, &traffic.sectors_written};
    for (int i = 0; i < 3; ++i) {
      std::sort(sectors[i].begin(), sectors[i].end());
      *counters[i] += std::unique(sectors[i].begin(), sectors[i].end()) - sectors[i].begin();
    }
  }
  for (unsigned t = first; t < last; ++t) all_[t].accesses.clear();
}

// A warp whose lanes all wait for each other goes on.
void Block::settle_warp(unsigned first, unsigned last) {
  const State at = all_[first].state;
  count_accesses(first, last);
  if (at == State::at_exchange) {
    for (unsigned t = first; t < last; ++t) {
      if (first + all_[t].from >= last) throw KernelError("a shuffle asks for a lane beyond the block");
      all_[t].result = all_[first + all_[t].from].value;
    }
  } else if (at == State::at_ballot) {
    std::uint64_t votes = 0;
    for (unsigned t = first; t < last; ++t) votes |= all_[t].value << (t - first);
    for (unsigned t = first; t < last; ++t) all_[t].result = votes;
  }
  for (unsigned t = first; t < last; ++t) all_[t].state = State::ready;
}

// Lets go on who may. False: nobody may, because all are done. Throws where threads wait for each other in
// vain.
bool Block::release() {
  bool released = false;
  bool waiting = false;
  bool all_at_barrier = true;
  for (unsigned first = 0; first < threads_; first += kWarp) {
    const unsigned last = std::min(threads_, first + kWarp);
    const State at = all_[first].state;
    const bool together = std::all_of(all_.begin() + first, all_.begin() + last,
                                      [&](const Thread& t) { return t.state == at; });
    if (at != State::done || !together) waiting = true;
    if (!together || at != State::at_block_barrier) all_at_barrier = false;
    if (together && at != State::at_block_barrier && at != State::done) {
      settle_warp(first, last);
      released = true;
    }
  }
  if (released) return true;
  if (!waiting) return false;
  if (!all_at_barrier) {
    const auto any = [&](State s) {
      return std::any_of(all_.begin(), all_.end(), [&](const Thread& t) { return t.state == s; });
    };
    if (any(State::at_exchange) || any(State::at_ballot) || any(State::at_warp_barrier))
      throw KernelError("a warp's shuffle, vote or barrier is not reached by all of its lanes");
    throw KernelError("a barrier is not reached by all threads of the block");
  }
  for (unsigned first = 0; first < threads_; first += kWarp)
    count_accesses(first, std::min(threads_, first + kWarp));
  for (Thread& thread : all_) thread.state = State::ready;
  return true;
}

void Block::prepare(Thread& thread) {
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = stack_of(thread.index).data();
  thread.context.uc_stack.ss_size = kStackBytes;
  thread.context.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(&thread);
  makecontext(&thread.context, reinterpret_cast<void (*)()>(&Block::enter), 2, static_cast<unsigned>(address),
              static_cast<unsigned>(address >> 32));
}

void Block::run(Index3 index) {
  const std::unique_ptr<std::byte, void (*)(void*)> shared(
      static_cast<std::byte*>(
          std::aligned_alloc(16, (std::max(geometry_.shared_bytes, 1U) + 15U) / 16U * 16U)),
      std::free);
  std::memset(shared.get(), 0xFF, geometry_.shared_bytes);  // NaN in every float format
  shared_ = shared.get();
  all_ = std::vector<Thread>(threads_);
  for (unsigned t = 0; t < threads_; ++t) {
    Thread& thread = all_[t];
    thread.owner = this;
    thread.index = t;
    thread.block = index;
    thread.grid = {geometry_.grid_x, geometry_.grid_y, geometry_.grid_z};
    prepare(thread);
  }
  std::vector<unsigned> order(threads_);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(executor_.settings_.seed + index.x);
  if (executor_.settings_.threads == Order::backward) std::reverse(order.begin(), order.end());
  do {
    if (executor_.settings_.threads == Order::shuffled) std::shuffle(order.begin(), order.end(), random);
    for (const unsigned t : order) {
      if (all_[t].state == State::ready) resume(all_[t]);
      if (failure_) std::rethrow_exception(failure_);
    }
  } while (release());
  for (unsigned first = 0; first < threads_; first += kWarp)
    count_accesses(first, std::min(threads_, first + kWarp));
}

void Executor::run(const Geometry& geometry, unsigned threads, const std::function<void(std::byte*)>& body) {
  if (geometry.threads != threads) throw KernelError("the launch's threads are not the kernel's");
  if (threads == 0 || threads > static_cast<unsigned>(settings_.arch.threads_a_block))
    throw KernelError("more threads a block than the architecture has");
  if (geometry.shared_bytes > static_cast<unsigned>(settings_.arch.shared_a_block))
    throw KernelError("more shared memory a block than the architecture grants");
  if (geometry.grid_x == 0 || geometry.grid_y == 0 || geometry.grid_z == 0 || geometry.grid_y > 65535 ||
      geometry.grid_z > 65535 || geometry.grid_x > 2147483647U)
    throw KernelError("a grid that CUDA does not launch");
  std::vector<Index3> blocks;
  for (unsigned z = 0; z < geometry.grid_z; ++z) {
    for (unsigned y = 0; y < geometry.grid_y; ++y) {
      for (unsigned x = 0; x < geometry.grid_x; ++x) blocks.push_back({x, y, z});
    }
  }
  std::mt19937_64 random(settings_.seed);
  if (settings_.blocks == Order::backward) std::reverse(blocks.begin(), blocks.end());
  if (settings_.blocks == Order::shuffled) std::shuffle(blocks.begin(), blocks.end(), random);
  Block block(*this, geometry, threads, body);
  for (const Index3& index : blocks) block.run(index);
}

void Executor::watch(const void* begin, std::size_t bytes) {
  watch_begin_ = static_cast<const std::byte*>(begin);
  watch_counts_.assign(bytes, 0);
}

Executor::ReadCounts Executor::watched() const {
  if (watch_counts_.empty()) return {};
  const auto [least, most] = std::minmax_element(watch_counts_.begin(), watch_counts_.end());
  return {*least, *most};
}

}  // namespace memwall::cuda
