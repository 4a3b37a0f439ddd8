#include "bench/cpu_activations.h"

#include "bench/cpu_data.h"

namespace memwall {

void Activations::reserve(std::int64_t inputs, std::int64_t outputs) {
  constexpr std::uint64_t kSeed = 11;
  if (static_cast<std::size_t>(inputs) > inputs_.size())
    inputs_ = random_floats(static_cast<std::size_t>(inputs), kSeed);
  if (static_cast<std::size_t>(outputs) > outputs_.size()) outputs_.resize(static_cast<std::size_t>(outputs));
}

std::shared_ptr<Activations> SharedActivations::with_room(std::int64_t inputs, std::int64_t outputs) {
  std::shared_ptr<Activations> shared = alive_.lock();
  if (!shared) shared = std::make_shared<Activations>();
  alive_ = shared;
  shared->reserve(inputs, outputs);
  return shared;
}

}  // namespace memwall
