// Which experts a step's tokens go to: seeded draws, each token's experts distinct, all equally likely, as
// the expectation in docs/formulas.md assumes.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace memwall {

struct RoutedExpert {
  std::int64_t id = 0;
  std::vector<std::int64_t> tokens;  // at least one

  bool operator==(const RoutedExpert&) const = default;
};

// One routing of all tokens: the experts that got any, in ascending order.
struct Routing {
  std::vector<RoutedExpert> experts;

  std::int64_t touched() const { return static_cast<std::int64_t>(experts.size()); }
};

// Throws std::invalid_argument unless 1 <= per_token <= experts and there is a token.
Routing draw_routing(std::int64_t tokens, std::int64_t experts, std::int64_t per_token,
                     std::mt19937_64& random);

// The launches' routings, and which of the `matrices` held each runs on.
//
// Whole layers: the matrices are layers of all experts, turn % layers is the launch's layer, and its matrices
// are those of the experts drawn. Else the launches rotate through the matrices, as many at a time as one may
// touch, so that each finds its own as cold as in a step that runs every layer in between.
class ExpertDraws {
 public:
  ExpertDraws(std::int64_t tokens, std::int64_t experts, std::int64_t per_token, bool whole_layers,
              std::int64_t matrices, std::uint64_t seed);

  const Routing& routing(std::int64_t turn) const;
  // Bytes that the draws take at most: their lists grow by doubling.
  static std::int64_t bytes(std::int64_t tokens, std::int64_t per_token);

  // All routings; routing(turn) is the draw(turn)-th.
  const std::vector<Routing>& draws() const { return draws_; }
  std::size_t draw(std::int64_t turn) const;
  // The matrix of the launch's first expert: of expert 0 where layers are whole.
  std::int64_t first_matrix(std::int64_t turn) const { return turn * a_layer_ % matrices_; }

  // Of routing(turn).experts[index].
  std::int64_t matrix(std::int64_t turn, std::size_t index) const;

 private:
  static constexpr std::int64_t kDraws = 32;  // launches after which the same are used again

  bool whole_layers_;
  std::int64_t matrices_;
  std::int64_t a_layer_;  // matrices
  std::int64_t layers_;
  std::vector<Routing> draws_;
};

}  // namespace memwall
