#include "bench/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <istream>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "bench/out_of_memory.h"
#include "bench/topology.h"
#include "input/error.h"

namespace memwall {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

[[noreturn]] void throw_no_memory(std::size_t bytes) {
  constexpr double mib = 1 << 20;
  const double size = static_cast<double>(bytes) / mib;
  char text[32];
  if (size >= 1024) {
    std::snprintf(text, sizeof text, "%.1f GiB", size / 1024);
  } else {
    std::snprintf(text, sizeof text, "%.1f MiB", size);
  }
  throw OutOfMemory(std::string("needs ") + text + " that this machine does not have");
}

// The finaliser of splitmix64: word `index` of the sequence that starts at `seed`.
std::uint64_t splitmix64(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

// The values of indices that share their upper 32 bits, which went into `key` with the seed. One half of
// the key goes in before the hash and one within: with the first alone, all keys would give the same
// sequence from different starts. No branch and 32-bit lanes throughout, for the vectoriser.
void fill_with_key(float* values, std::size_t count, std::uint64_t key, std::uint32_t first_index) {
  const auto before = static_cast<std::uint32_t>(key);
  const auto within = static_cast<std::uint32_t>(key >> 32);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t x = (first_index + static_cast<std::uint32_t>(i)) ^ before;
    x = (x ^ (x >> 16)) * 0x7feb352dU + within;
    x = (x ^ (x >> 15)) * 0x846ca68bU;
    x ^= x >> 16;
    // The upper 24 bits, which a float holds exactly, as a signed number.
    values[i] = static_cast<float>(static_cast<std::int32_t>(x) >> 8) * 0x1p-23F;
  }
}

struct AddressRange {
  std::uintptr_t first = 0;
  std::uintptr_t last = 0;
};

// The head line of a mapping: "7f0000000000-7f0000200000 rw-p ...", in hexadecimal.
bool parse_mapping(const std::string& line, AddressRange& range) {
  const char* const end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, range.first, 16);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return false;
  const auto last = std::from_chars(first.ptr + 1, end, range.last, 16);
  return last.ec == std::errc() && (last.ptr == end || *last.ptr == ' ');
}

}  // namespace

HugeBuffer::HugeBuffer(std::size_t bytes) {
  if (bytes == 0) return;
  // The kernel would grant more than there is and kill the process once it touches it.
  const std::int64_t available = available_memory_bytes();
  if (available > 0 && bytes > static_cast<std::uint64_t>(available)) throw_no_memory(bytes);
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) throw_no_memory(bytes);

  // A huge page more than needed, so that an aligned stretch lies in it. What is left over at its end is a
  // small page at least: one stays as a guard. It stops a kernel that runs over, and keeps the system
  // from merging two buffers into one mapping, whose huge pages smaps could not tell apart.
  const std::size_t rounded = (bytes + huge_page - 1) / huge_page * huge_page;
  const std::size_t reserved = rounded + huge_page;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const mapping = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw_no_memory(bytes);
  auto* const start = static_cast<std::byte*>(mapping);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(start) % huge_page;
  const std::size_t head = misaligned == 0 ? 0 : huge_page - misaligned;
  const std::size_t tail = huge_page - head - page;
  if (head > 0) munmap(start, head);
  if (tail > 0) munmap(start + reserved - tail, tail);

  data_ = start + head;
  size_ = bytes;
  mapped_ = rounded + page;
  mprotect(data_ + rounded, page, PROT_NONE);
  // A kernel without huge pages refuses: then they are small, and huge_share() says so.
  madvise(data_, rounded, MADV_HUGEPAGE);
}

HugeBuffer::~HugeBuffer() {
  if (data_ != nullptr) munmap(data_, mapped_);
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  HugeBuffer taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  std::swap(mapped_, taken.mapped_);
  return *this;
}

double HugeBuffer::huge_share() const {
  if (data_ == nullptr) return 0;
  std::ifstream smaps("/proc/self/smaps");
  const auto first = reinterpret_cast<std::uintptr_t>(data_);
  return huge_share_in(smaps, first, first + size_);
}

double huge_share_in(std::istream& smaps, std::uintptr_t first, std::uintptr_t last) {
  double resident = 0;
  double huge = 0;
  AddressRange mapping;
  bool overlaps = false;
  for (std::string line; std::getline(smaps, line);) {
    if (parse_mapping(line, mapping)) {
      overlaps = mapping.first < last && first < mapping.last;
    } else if (overlaps) {
      std::istringstream fields(line);
      std::string key;
      double kib = 0;
      if (!(fields >> key >> kib)) continue;
      if (key == "Rss:") resident += kib;
      if (key == "AnonHugePages:") huge += kib;
    }
  }
  return resident > 0 ? std::min(1.0, huge / resident) : 0;
}

void fill_random_bits(std::span<std::uint64_t> words, std::uint64_t seed, std::uint64_t first_index) {
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = splitmix64(seed, first_index + i);
}

void fill_random_floats(std::span<float> values, std::uint64_t seed, std::uint64_t first_index) {
  constexpr std::uint64_t period = std::uint64_t{1} << 32;
  std::size_t done = 0;
  while (done < values.size()) {
    const std::uint64_t index = first_index + done;
    const std::uint64_t to_next_key = period - index % period;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(values.size() - done, to_next_key));
    fill_with_key(values.data() + done, count, splitmix64(seed, index / period),
                  static_cast<std::uint32_t>(index % period));
    done += count;
  }
}

}  // namespace memwall
