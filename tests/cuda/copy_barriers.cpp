#include "tests/cuda/copy_barriers.h"

#include <cstring>

#include "tests/cuda/sanitizers.h"

namespace memwall::cuda {
namespace {

// PTX ISA, "mbarrier: Contents": what the count of arrivals and that of bytes can hold.
constexpr unsigned kMostArrivals = (1U << 20) - 1;
constexpr unsigned kMostBytes = (1U << 20) - 1;

// Unseen by the thread sanitizer, which took note of the poison: as if the thread that asked had written.
void arrive(std::byte* to, const std::vector<std::byte>& bytes) {
  volatile std::byte* target = to;
  for (const std::byte b : bytes) *target++ = b;
}

}  // namespace

std::string CopyBarriers::find(const void* barrier, std::uint64_t held, Barrier*& found) {
  const auto at = barriers_.find(barrier);
  if (at == barriers_.end()) return "uses a barrier of copies that was not made";
  found = &at->second;
  return held == word(found->arrivals) ? "" : "uses a barrier of copies that was written over";
}

std::string CopyBarriers::make(const void* barrier, unsigned arrivals, unsigned thread) {
  if (arrivals == 0 || arrivals > kMostArrivals) return "makes a barrier of copies of no such arrivals";
  Barrier made;
  made.arrivals = made.awaited = arrivals;
  made.maker = thread;
  return barriers_.emplace(barrier, made).second ? "" : "makes a barrier of copies a second time";
}

void CopyBarriers::fence(unsigned thread) {
  for (auto& [at, barrier] : barriers_) barrier.fenced = barrier.fenced || barrier.maker == thread;
}

std::string CopyBarriers::expect(const void* at, std::uint64_t held, unsigned bytes) {
  Barrier* barrier = nullptr;
  if (const std::string fault = find(at, held, barrier); !fault.empty()) return fault;
  // On a GPU the phase may have ended by now, or not: only a wait tells.
  if (barrier->awaited == 0) return "arrives at a barrier of copies again before it waits for the phase";
  if (bytes > kMostBytes) return "expects more bytes than a barrier of copies counts";
  sanitizers::release(&barrier->key);
  --barrier->awaited;
  barrier->expected += bytes;
  ++changes_;
  return "";
}

std::string CopyBarriers::copy(void* to, const void* from, std::size_t bytes, const void* at,
                               std::uint64_t held) {
  Barrier* barrier = nullptr;
  if (const std::string fault = find(at, held, barrier); !fault.empty()) return fault;
  if (!barrier->fenced) return "copies to a barrier before a fence makes it known to copies";
  std::memset(to, 0xFF, bytes);
  const auto* source = static_cast<const std::byte*>(from);
  barrier->copies.push_back({static_cast<std::byte*>(to), {source, source + bytes}});
  sanitizers::release(&barrier->key);
  ++changes_;
  return "";
}

std::string CopyBarriers::ended(const void* at, std::uint64_t held, unsigned parity, bool& yes) {
  Barrier* barrier = nullptr;
  if (const std::string fault = find(at, held, barrier); !fault.empty()) return fault;
  if (barrier->phase % 2 == parity) {
    for (const Copy& copy : barrier->copies) {
      arrive(copy.to, copy.bytes);
      barrier->expected -= static_cast<std::int64_t>(copy.bytes.size());
    }
    barrier->copies.clear();
    if (barrier->awaited == 0 && barrier->expected < 0)
      return "waits at a barrier that expects " + std::to_string(-barrier->expected) +
             " bytes fewer than are copied";
    if (barrier->awaited == 0 && barrier->expected == 0) {
      ++barrier->phase;
      barrier->awaited = barrier->arrivals;
      ++changes_;
    }
  }
  yes = barrier->phase % 2 != parity;
  if (yes) sanitizers::acquire(&barrier->key);
  return "";
}

std::string CopyBarriers::left_over() const {
  for (const auto& [at, barrier] : barriers_) {
    if (!barrier.copies.empty()) return "ends with a bulk copy that nothing waits for";
  }
  return "";
}

}  // namespace memwall::cuda
