// The barriers in a block's shared memory at which bulk copies arrive (kernels/cuda/bulk_copy.cuh), as a GPU
// may run them: bytes arrive no earlier than a wait for the phase that they belong to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/geometry.h"

namespace memwall::cuda {

// Of one block. Functions return what the kernel did wrong, in words that follow "thread 3 of block (0, 0, 0)
// "; empty where nothing.
class CopyBarriers {
 public:
  // What a barrier's memory holds while it is one.
  static std::uint64_t word(unsigned arrivals) { return 0x6A09E667F3BCC908U ^ arrivals; }

  std::string make(const void* barrier, unsigned arrivals, unsigned thread);
  // Of the barriers that the thread made: copies may use them now.
  void fence(unsigned thread);
  std::string expect(const void* barrier, std::uint64_t held, unsigned bytes);
  // `to` is poisoned. The bytes are taken at once, and arrive later.
  std::string copy(void* to, const void* from, std::size_t bytes, const void* barrier, std::uint64_t held);
  // Whether the phase of that parity has ended; what belongs to the phase that runs arrives first where the
  // wait is for it.
  std::string ended(const void* barrier, std::uint64_t held, unsigned parity, bool& yes);
  // Of a block that has ended.
  std::string left_over() const;

  // Grows with whatever may end a phase.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Copy {
    std::byte* to;
    std::vector<std::byte> bytes;
  };
  struct Barrier {
    unsigned arrivals = 0;
    unsigned maker = 0;
    bool fenced = false;
    std::uint64_t phase = 0;
    unsigned awaited = 0;       // arrivals of this phase still to come
    std::int64_t expected = 0;  // bytes told less bytes that have arrived
    std::vector<Copy> copies;   // asked for in this phase
    char key = 0;               // orders those that arrive before those that wait (sanitizers.h)
  };

  std::string find(const void* barrier, std::uint64_t held, Barrier*& found);

  std::map<const void*, Barrier> barriers_;
  std::uint64_t changes_ = 0;
};

}  // namespace memwall::cuda
