// Probes of memory bandwidth over elements [first, last) of f32 arrays, after STREAM (McCalpin).
// Bytes are counted as STREAM does: an ordinary store also reads its line first (write-allocate), and
// that read is not counted.
#pragma once

#include <cstdint>

namespace memwall::cpu {

// Reads the range as `streams` (1, 2, 4 or 8) concurrent sequential streams and returns a sum that
// depends on every element, so that nothing is elided. Bound by memory, not by its own additions:
// independent wide accumulators in every stream. Throws std::invalid_argument for another `streams`.
float read(const float* a, std::int64_t first, std::int64_t last, int streams);

// Each writes every element of its output in the range, and nothing else; inputs and output do not overlap.
// A non-temporal store bypasses the caches, so that its line is not read first.
enum class Stores : std::uint8_t { ordinary, nontemporal };
// False where the instruction set has none: then these are ordinary stores in disguise.
bool has_nontemporal_stores();
void copy(const float* a, float* b, std::int64_t first, std::int64_t last, Stores stores);  // b = a
void scale(const float* a, float* b, float s, std::int64_t first, std::int64_t last,
           Stores stores);  // b = s a
void add(const float* a, const float* b, float* c, std::int64_t first, std::int64_t last,
         Stores stores);  // c = a + b
void triad(const float* a, const float* b, float* c, float s, std::int64_t first, std::int64_t last,
           Stores stores);  // c = a + s b

}  // namespace memwall::cpu
