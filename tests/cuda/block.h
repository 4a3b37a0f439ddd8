// One block of a launch after another: its threads, their meetings and its shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/geometry.h"
#include "kernels/cuda/host_thread.h"
#include "tests/cuda/copy_barriers.h"
#include "tests/cuda/device_memory.h"
#include "tests/cuda/executor.h"
#include "tests/cuda/guarded.h"
#include "tests/cuda/traffic.h"

namespace memwall::cuda {

class Fiber;

struct BlockSettings {
  const Geometry& geometry;
  const std::function<void(std::byte*)>& body;
  Order threads = Order::forward;
  std::uint64_t seed = 1;
  TrafficCounter* counter = nullptr;
  const DeviceMemory* memory = nullptr;
};

class Block {
 public:
  explicit Block(const BlockSettings& settings);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Throws KernelError, or what the kernel throws.
  void run(Index3 block);

 private:
  enum class State : std::uint8_t {
    ready,
    at_block_barrier,
    at_warp_barrier,
    at_exchange,
    at_ballot,
    at_show,
    at_copies,
    done
  };

  static constexpr std::size_t kMostWords = 16;  // that a lane may show

  // A copy that a wait has not covered yet.
  struct PendingCopy {
    void* to;
    const void* from;
    std::size_t bytes;
    int group;
  };

  // Thrown on the threads that shall end because another one failed.
  struct Abandoned {};

  struct Thread final : HostThread {
    Block* owner = nullptr;
    Fiber* fiber = nullptr;
    State state = State::ready;
    bool begun = false;
    std::uint64_t value = 0;  // what it brings to a meeting
    unsigned from = 0;
    std::uint64_t result = 0;            // and takes from it
    const std::uint64_t* own = nullptr;  // or brings as words
    std::size_t words = 0;
    std::vector<PendingCopy> copies;
    int groups = 0;             // committed
    std::uint64_t changes = 0;  // of the block's barriers of copies when it began to wait at one

    void sync_threads() override;
    void sync_warp() override;
    std::uint64_t exchange(std::uint64_t brought, unsigned lane) override;
    std::uint32_t ballot(bool vote) override;
    const std::uint64_t* show(const std::uint64_t* own, std::size_t words) override;
    void reads(const void* address, std::size_t bytes, bool streaming) override;
    void writes(const void* address, std::size_t bytes) override;
    void copy_async(void* shared, const void* global, std::size_t bytes) override;
    void commit_copies() override { ++groups; }
    void wait_copies(int groups_left) override;
    std::uint64_t make_barrier(const void* barrier, unsigned arrivals) override;
    void fence_copies() override { owner->barriers().fence(index); }
    void expect_bytes(const void* barrier, std::uint64_t word, unsigned bytes) override;
    void copy_bulk(void* shared, const void* global, std::size_t bytes, const void* barrier,
                   std::uint64_t word) override;
    void wait_for_bytes(const void* barrier, std::uint64_t word, unsigned parity) override;

    void body() noexcept;
    void wait(State at);
    void check_global(const void* address, std::size_t bytes, const char* what) const;
    void check_shared(const void* address, std::size_t bytes, std::size_t alignment, const char* what) const;
    void fail_if(const std::string& what) const {
      if (!what.empty()) fail(what);
    }
    [[noreturn]] void fail(const std::string& what) const;
  };

  CopyBarriers& barriers() { return meetings_.back()->of_copies; }

  void begin(Index3 index);
  void go_on(Thread& thread);
  bool release();
  void settle_warp(unsigned first, unsigned last);
  void count(unsigned first, unsigned last);
  void count_all();
  [[noreturn]] void fail_unmet(bool of_a_warp) const;
  void abandon() noexcept;
  void check_shared() const;

  BlockSettings settings_;
  unsigned threads_;
  std::vector<Thread> all_;
  std::vector<std::vector<Access>> accesses_;  // a thread's since it last met others
  std::vector<std::uint64_t> shown_;           // kMostWords a thread
  std::vector<GuardedBytes> shared_;           // the last one is this block's
  std::vector<unsigned> order_;
  std::exception_ptr failure_;
  bool abandoned_ = false;
  std::uint64_t blocks_run_ = 0;
  // Keys of what orders one thread after another, for the thread sanitizer (sanitizers.h): two of each
  // meeting in turn, since a fast thread comes to the next while a slow one has yet to leave this.
  struct Meeting {
    char keys[2] = {};
    unsigned met = 0;
    void* key() { return &keys[met % 2]; }
  };
  struct Meetings {
    Meeting of_block;
    std::vector<Meeting> of_warps;
    CopyBarriers of_copies;
  };
  std::vector<std::unique_ptr<Meetings>> meetings_;  // the last ones are this block's
  char start_key_ = 0;
  char end_key_ = 0;
};

}  // namespace memwall::cuda
