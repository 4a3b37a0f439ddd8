#include "bench/routing.h"

#include <numeric>
#include <stdexcept>
#include <utility>

namespace memwall {

Routing draw_routing(std::int64_t tokens, std::int64_t experts, std::int64_t per_token,
                     std::mt19937_64& random) {
  if (tokens < 1 || per_token < 1 || per_token > experts)
    throw std::invalid_argument("a routing needs a token, and no more experts a token than there are");
  std::vector<std::vector<std::int64_t>> by_expert(static_cast<std::size_t>(experts));
  // The first per_token places of a partial Fisher-Yates shuffle are distinct and even whatever order the
  // shuffle starts from, so each token's goes on from the one before it.
  std::vector<std::int64_t> order(static_cast<std::size_t>(experts));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int64_t i = 0; i < per_token; ++i) {
      const std::int64_t j = std::uniform_int_distribution<std::int64_t>(i, experts - 1)(random);
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(j)]);
      by_expert[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])].push_back(token);
    }
  }
  Routing routing;
  for (std::vector<std::int64_t>& tokens_of : by_expert) {
    if (!tokens_of.empty()) routing.tokens_of.push_back(std::move(tokens_of));
  }
  return routing;
}

}  // namespace memwall
