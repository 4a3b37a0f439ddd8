#include "bench/routing.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "format/checked.h"

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
  for (std::int64_t id = 0; id < experts; ++id) {
    std::vector<std::int64_t>& tokens_of = by_expert[static_cast<std::size_t>(id)];
    if (!tokens_of.empty()) routing.experts.push_back({id, std::move(tokens_of)});
  }
  return routing;
}

ExpertDraws::ExpertDraws(std::int64_t tokens, std::int64_t experts, std::int64_t per_token, bool whole_layers,
                         std::int64_t matrices, std::uint64_t seed)
    : whole_layers_(whole_layers),
      matrices_(matrices),
      a_layer_(whole_layers ? experts : std::min(experts, tokens * per_token)),
      layers_(std::max<std::int64_t>(1, matrices / a_layer_)) {
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < kDraws; ++i)
    draws_.push_back(draw_routing(tokens, experts, per_token, random));
}

std::int64_t ExpertDraws::bytes(std::int64_t tokens, std::int64_t per_token) {
  constexpr auto kToken = static_cast<std::int64_t>(sizeof(std::int64_t));
  return checked_mul(checked_mul(tokens, per_token), 2 * kToken * kDraws);
}

// Layers draw apart, and each anew when its turn comes round.
std::size_t ExpertDraws::draw(std::int64_t turn) const {
  return static_cast<std::size_t>(turn / layers_ + turn % layers_) % draws_.size();
}

const Routing& ExpertDraws::routing(std::int64_t turn) const { return draws_[draw(turn)]; }

std::int64_t ExpertDraws::matrix(std::int64_t turn, std::size_t index) const {
  const std::int64_t within =
      whole_layers_ ? routing(turn).experts[index].id : static_cast<std::int64_t>(index);
  return (turn * a_layer_ + within) % matrices_;
}

}  // namespace memwall
