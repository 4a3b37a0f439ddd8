// What the tensors of a Model's blocks are called in checkpoints: families name the same part differently.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memwall {

// What kind of block a module's path tells of.
enum class Side : std::uint8_t {
  any,
  mixing,   // "self_attn."
  feeding,  // "mlp."
};

// The names that a stored module may have in a block, the likeliest first.
struct Candidates {
  Side side = Side::any;
  bool attention_itself = false;  // the path is "self_attn": what is stored there belongs to no weight
  std::vector<std::string> names;
};

// Answers by path, as StoredPath has it; each is worked out once.
class CandidateTable {
 public:
  const Candidates& of(const std::string& path, bool outside);

 private:
  std::unordered_map<std::string, Candidates> inside_;
  std::unordered_map<std::string, Candidates> outside_;
};

// A tensor that some files store as several, and the other way round.
struct Fusion {
  const char* whole;
  std::vector<const char*> parts;
};
const std::vector<Fusion>& fusions();

// The prefixes of a block's names under which fusions hold: "", "experts.", "shared_expert.".
const std::vector<std::string>& fusion_prefixes();

}  // namespace memwall
