#include "tests/cuda/block.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>

#include "tests/cuda/fiber.h"
#include "tests/cuda/sanitizers.h"

namespace memwall::cuda {
namespace {

// Shared memory is 16-byte aligned and no better, as a kernel may assume no more.
constexpr std::size_t kSharedSkew = 16;

// Fibers are kept from launch to launch. Where races are looked for, blocks take turns with two sets, so that
// a block's threads are not those of the block before it, which would order what both touch.
Fiber& fiber_of(unsigned thread, std::uint64_t block) {
  thread_local std::array<std::vector<std::unique_ptr<Fiber>>, 2> sets;
  auto& fibers = sets[sanitizers::kRaces ? block % 2 : 0];
  while (fibers.size() <= thread) fibers.push_back(std::make_unique<Fiber>());
  return *fibers[thread];
}

}  // namespace

Block::Block(const BlockSettings& settings)
    : settings_(settings),
      threads_(settings.geometry.threads),
      all_(threads_),
      accesses_(threads_),
      shown_(threads_ * kMostWords),
      order_(threads_) {
  for (unsigned t = 0; t < threads_; ++t) {
    all_[t].owner = this;
    all_[t].index = t;
    all_[t].grid = {settings.geometry.grid_x, settings.geometry.grid_y, settings.geometry.grid_z};
  }
  std::iota(order_.begin(), order_.end(), 0U);
  if (settings.threads == Order::backward) std::reverse(order_.begin(), order_.end());
  sanitizers::release(&start_key_);
}

Block::~Block() { sanitizers::acquire(&end_key_); }

void Block::go_on(Thread& thread) {
  HostThread::current() = &thread;
  if (thread.begun) {
    thread.fiber->resume();
  } else {
    thread.begun = true;
    thread.fiber->start([](void* t) noexcept { static_cast<Thread*>(t)->body(); }, &thread);
  }
  HostThread::current() = nullptr;
}

void Block::count(unsigned first, unsigned last) {
  if (settings_.counter != nullptr)
    settings_.counter->count(std::span(accesses_).subspan(first, last - first));
}

void Block::count_all() {
  for (unsigned first = 0; first < threads_; first += kWarp) count(first, std::min(threads_, first + kWarp));
}

// A warp whose lanes all wait for each other goes on.
void Block::settle_warp(unsigned first, unsigned last) {
  if (last - first < kWarp) throw KernelError("a warp of fewer than 32 lanes shuffles, votes or meets");
  const State at = all_[first].state;
  count(first, last);
  if (at == State::at_exchange) {
    for (unsigned t = first; t < last; ++t) all_[t].result = all_[first + all_[t].from].value;
  } else if (at == State::at_ballot) {
    std::uint64_t votes = 0;
    for (unsigned t = first; t < last; ++t) votes |= all_[t].value << (t - first);
    for (unsigned t = first; t < last; ++t) all_[t].result = votes;
  } else if (at == State::at_show) {
    const std::size_t words = all_[first].words;
    if (words > kMostWords) all_[first].fail("shows its warp more words than the executor has room for");
    // Volatile, lest it become a memcpy, of which the thread sanitizer takes note.
    volatile std::uint64_t* shown = shown_.data() + first * kMostWords;
    for (unsigned t = first; t < last; ++t) {
      if (all_[t].words != words) all_[t].fail("shows its warp fewer or more words than others");
      for (std::size_t w = 0; w < words; ++w) *shown++ = all_[t].own[w];
    }
  } else {
    ++meetings_.back()->of_warps[first / kWarp].met;
  }
  for (unsigned t = first; t < last; ++t) all_[t].state = State::ready;
}

// Lets go on who may. False: nobody may, because all are done. Throws where threads wait for each other in
// vain.
bool Block::release() {
  bool released = false;
  bool of_a_warp = false;
  const Thread* waits_for_bytes = nullptr;
  unsigned done = 0;
  unsigned at_barrier = 0;
  for (unsigned first = 0; first < threads_; first += kWarp) {
    const unsigned last = std::min(threads_, first + kWarp);
    const State at = all_[first].state;
    bool together = true;
    for (unsigned t = first; t < last; ++t) {
      const State state = all_[t].state;
      together = together && state == at;
      done += state == State::done ? 1 : 0;
      at_barrier += state == State::at_block_barrier ? 1 : 0;
      if (state == State::at_copies) {
        waits_for_bytes = &all_[t];
        if (all_[t].changes == barriers().changes()) continue;
        all_[t].state = State::ready;
        released = true;
      } else {
        of_a_warp = of_a_warp || (state != State::done && state != State::at_block_barrier);
      }
    }
    if (together && at != State::at_block_barrier && at != State::at_copies && at != State::done) {
      settle_warp(first, last);
      released = true;
    }
  }
  if (released) return true;
  if (done == threads_) return false;
  if (waits_for_bytes != nullptr)
    waits_for_bytes->fail("waits at a barrier of copies for what nothing brings");
  if (at_barrier < threads_) fail_unmet(of_a_warp);
  count_all();
  ++meetings_.back()->of_block.met;
  for (Thread& thread : all_) thread.state = State::ready;
  return true;
}

void Block::fail_unmet(bool of_a_warp) const {
  const auto waiting = std::find_if(all_.begin(), all_.end(), [&](const Thread& t) {
    return of_a_warp ? t.state != State::done && t.state != State::at_block_barrier
                     : t.state == State::at_block_barrier;
  });
  waiting->fail(of_a_warp ? "waits at a warp's shuffle, vote or barrier, which not all of its lanes reach"
                          : "waits at a barrier that not all threads of the block reach");
}

// Ends all threads where they stand, unwinding their stacks.
void Block::abandon() noexcept {
  abandoned_ = true;
  for (Thread& thread : all_) {
    if (thread.begun && thread.state != State::done) go_on(thread);
  }
}

void Block::begin(Index3 index) {
  // Where races are looked for, nothing is used again within a launch: a block is not to be ordered after the
  // one before it.
  if (shared_.empty() || sanitizers::kRaces) {
    shared_.emplace_back(settings_.geometry.shared_bytes, kSharedSkew);
    meetings_.push_back(std::make_unique<Meetings>());
    meetings_.back()->of_warps.resize((threads_ + kWarp - 1) / kWarp);
    sanitizers::release(&start_key_);
  } else {
    shared_.back().forget_contents();
    barriers() = {};
  }
  for (Thread& thread : all_) {
    thread.block = index;
    thread.fiber = &fiber_of(thread.index, blocks_run_);
    thread.state = State::ready;
    thread.begun = false;
    thread.copies.clear();
    thread.groups = 0;
  }
  ++blocks_run_;
}

void Block::check_shared() const {
  if (const auto at = shared_.back().damage()) {
    throw KernelError("a block wrote " + std::to_string(*at) + " bytes into its shared memory of " +
                      std::to_string(shared_.back().size()));
  }
}

void Block::run(Index3 index) {
  begin(index);
  std::mt19937_64 random(settings_.seed + index.x + 65537U * (index.y + 65537ULL * index.z));
  try {
    do {
      if (settings_.threads == Order::shuffled) std::shuffle(order_.begin(), order_.end(), random);
      for (const unsigned t : order_) {
        if (all_[t].state == State::ready) go_on(all_[t]);
        if (failure_) std::rethrow_exception(failure_);
      }
    } while (release());
    count_all();
    check_shared();
    if (const std::string left = barriers().left_over(); !left.empty()) all_.front().fail(left);
  } catch (...) {
    abandon();
    throw;
  }
}

}  // namespace memwall::cuda
