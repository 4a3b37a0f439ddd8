// What a block's threads ask for, on their own fibers.
#include <algorithm>
#include <cstring>

#include "tests/cuda/block.h"
#include "tests/cuda/fiber.h"
#include "tests/cuda/sanitizers.h"

namespace memwall::cuda {
namespace {

// What a GPU asks of an access's address: a multiple of the size, of 16 bytes at most.
bool aligned(const void* address, std::size_t bytes) {
  const std::size_t alignment = std::min<std::size_t>(16, bytes & (~bytes + 1));
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

}  // namespace

void Block::Thread::body() noexcept {
  sanitizers::acquire(&owner->start_key_);
  try {
    owner->settings_.body(owner->shared_.back().data());
    if (!copies.empty()) fail("ends with an asynchronous copy that nothing waits for");
  } catch (const Abandoned&) {
  } catch (...) {
    if (!owner->failure_) owner->failure_ = std::current_exception();
  }
  state = State::done;
  sanitizers::release(&owner->end_key_);
}

void Block::Thread::wait(State at) {
  state = at;
  fiber->leave();
  if (owner->abandoned_) throw Abandoned{};
}

// The thread is released before it sleeps and acquires when it wakes, which is after all have come: `met`
// grows in between.
void Block::Thread::sync_threads() {
  void* key = owner->meetings_.back()->of_block.key();
  sanitizers::release(key);
  wait(State::at_block_barrier);
  sanitizers::acquire(key);
}

void Block::Thread::sync_warp() {
  void* key = owner->meetings_.back()->of_warps[index / kWarp].key();
  sanitizers::release(key);
  wait(State::at_warp_barrier);
  sanitizers::acquire(key);
}

// Shuffles and votes hand over values but order no memory (CUDA C++ programming guide, "Warp Shuffle
// Functions").
std::uint64_t Block::Thread::exchange(std::uint64_t brought, unsigned lane) {
  value = brought;
  from = lane;
  wait(State::at_exchange);
  return result;
}

std::uint32_t Block::Thread::ballot(bool vote) {
  value = vote ? 1 : 0;
  wait(State::at_ballot);
  return static_cast<std::uint32_t>(result);
}

const std::uint64_t* Block::Thread::show(const std::uint64_t* brought, std::size_t count) {
  own = brought;
  words = count;
  wait(State::at_show);
  return owner->shown_.data() + index / kWarp * kWarp * kMostWords;
}

void Block::Thread::fail(const std::string& what) const {
  throw KernelError("thread " + std::to_string(index) + " of block (" + std::to_string(block.x) + ", " +
                    std::to_string(block.y) + ", " + std::to_string(block.z) + ") " + what);
}

void Block::Thread::check_global(const void* address, std::size_t bytes, const char* what) const {
  if (!aligned(address, bytes))
    fail(std::string(what) + " " + std::to_string(bytes) +
         " bytes at an address that is not a multiple of them");
  if (owner->settings_.memory != nullptr) owner->settings_.memory->check(address, bytes, what);
}

void Block::Thread::reads(const void* address, std::size_t bytes, bool streaming) {
  check_global(address, bytes, "reads");
  if (owner->settings_.counter == nullptr) return;
  owner->accesses_[index].push_back({.address = reinterpret_cast<std::uintptr_t>(address),
                                     .bytes = static_cast<std::uint32_t>(bytes),
                                     .streaming = streaming});
}

void Block::Thread::writes(const void* address, std::size_t bytes) {
  check_global(address, bytes, "writes");
  if (owner->settings_.counter == nullptr) return;
  owner->accesses_[index].push_back({.address = reinterpret_cast<std::uintptr_t>(address),
                                     .bytes = static_cast<std::uint32_t>(bytes),
                                     .write = true});
}

void Block::Thread::check_shared(const void* address, std::size_t bytes, std::size_t alignment,
                                 const char* what) const {
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0)
    fail(std::string(what) + " a misaligned address");
  const GuardedBytes& shared = owner->shared_.back();
  const auto* target = static_cast<const std::byte*>(address);
  if (target < shared.data() || target + bytes > shared.data() + shared.size())
    fail(std::string(what) + " an address beyond its block's shared memory");
}

// From here to the wait the target holds neither what it did nor what it will.
void Block::Thread::copy_async(void* to, const void* from_global, std::size_t bytes) {
  check_shared(to, bytes, bytes, "copies asynchronously to");
  std::memset(to, 0xFF, bytes);
  copies.push_back({to, from_global, bytes, groups});
}

void Block::Thread::wait_copies(int groups_left) {
  std::erase_if(copies, [&](const PendingCopy& copy) {
    if (copy.group >= groups - groups_left) return false;
    std::memcpy(copy.to, copy.from, copy.bytes);
    return true;
  });
}

std::uint64_t Block::Thread::make_barrier(const void* barrier, unsigned arrivals) {
  check_shared(barrier, 8, 8, "makes a barrier of copies at");
  fail_if(owner->barriers().make(barrier, arrivals, index));
  return CopyBarriers::word(arrivals);
}

void Block::Thread::expect_bytes(const void* barrier, std::uint64_t word, unsigned bytes) {
  fail_if(owner->barriers().expect(barrier, word, bytes));
}

void Block::Thread::copy_bulk(void* to, const void* from_global, std::size_t bytes, const void* barrier,
                              std::uint64_t word) {
  if (bytes == 0 || bytes % 16 != 0) fail("copies in bulk what is no multiple of 16 bytes");
  check_shared(to, bytes, 16, "copies in bulk to");
  reads(from_global, bytes, true);
  fail_if(owner->barriers().copy(to, from_global, bytes, barrier, word));
}

void Block::Thread::wait_for_bytes(const void* barrier, std::uint64_t word, unsigned parity) {
  for (bool ended = false;;) {
    fail_if(owner->barriers().ended(barrier, word, parity, ended));
    if (ended) return;
    changes = owner->barriers().changes();
    wait(State::at_copies);
  }
}

}  // namespace memwall::cuda
