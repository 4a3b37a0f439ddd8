// Which experts a step's tokens go to: seeded draws, each token's experts distinct, all equally likely, as
// the expectation in docs/formulas.md assumes.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace memwall {

// One routing of all tokens: the tokens of each expert that got any, in the order of the experts.
struct Routing {
  std::vector<std::vector<std::int64_t>> tokens_of;

  std::int64_t touched() const { return static_cast<std::int64_t>(tokens_of.size()); }
};

// Throws std::invalid_argument unless 1 <= per_token <= experts and there is a token.
Routing draw_routing(std::int64_t tokens, std::int64_t experts, std::int64_t per_token,
                     std::mt19937_64& random);

}  // namespace memwall
