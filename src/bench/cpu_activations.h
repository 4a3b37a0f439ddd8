// The activations that the CPU's operands work on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace memwall {

// All operands placed at a time share them, as ops do in a step: what one reads, the one before it left in
// the cache. With buffers of its own each op of a step found them flushed by the weights read since: the
// elementwise ops of a step of Llama-3.2 1B in q4_0 (22 to 27 ms) took 0.23 and 0.26 ms so, 0.15 and 0.15
// shared, and 0.07 alone (Zen 4, two threads, two interleaved runs).
class Activations {
 public:
  // Room for as many floats. Growing moves them, so a launch asks for the pointers anew.
  void reserve(std::int64_t inputs, std::int64_t outputs);
  // Random in [-1, 1). No op writes them but rotary, which turns pairs of them and so keeps them bounded.
  float* inputs() { return inputs_.data(); }
  float* outputs() { return outputs_.data(); }

 private:
  std::vector<float> inputs_;
  std::vector<float> outputs_;
};

// Those of the operands alive, or new ones.
class SharedActivations {
 public:
  std::shared_ptr<Activations> with_room(std::int64_t inputs, std::int64_t outputs);

 private:
  std::weak_ptr<Activations> alive_;
};

}  // namespace memwall
