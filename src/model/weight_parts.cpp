#include "model/weight_parts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "input/suggest.h"

namespace memwall {
namespace {

// Other words that people have for the parts.
struct PartWord {
  std::string_view word;
  std::string_view part;
};
constexpr std::array kPartWords = {
    PartWord{"attn", "attention"},
    PartWord{"self_attn", "attention"},
    PartWord{"ffn", "mlp"},
    PartWord{"feed_forward", "mlp"},
    PartWord{"dense", "mlp"},
    PartWord{"expert", "experts"},
    PartWord{"moe", "experts"},
    PartWord{"exps", "experts"},
    PartWord{"shared", "shared_experts"},
    PartWord{"shared_expert", "shared_experts"},
    PartWord{"shexp", "shared_experts"},
    PartWord{"head", "lm_head"},
    PartWord{"output", "lm_head"},
    PartWord{"embed", "embedding"},
    PartWord{"embeddings", "embedding"},
    PartWord{"embed_tokens", "embedding"},
    PartWord{"token_embd", "embedding"},
    PartWord{"routers", "router"},
};

// The part's usual word, where it has another.
std::string part_word(std::string_view text) {
  const std::string word = plain_part(text);
  const auto it = std::find_if(kPartWords.begin(), kPartWords.end(),
                               [&](const PartWord& known) { return known.word == word; });
  return it == kPartWords.end() ? word : std::string(it->part);
}

bool attends(const Block& block) {
  return block.kind == BlockKind::attention || block.kind == BlockKind::kv_cache ||
         std::any_of(block.states.begin(), block.states.end(), [](const Block::Placed& placed) {
           return std::holds_alternative<KvState>(placed.state) ||
                  std::holds_alternative<LatentState>(placed.state);
         });
}

// '*' stands for any letters, '?' for one.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // the last '*', and where in the name it has come to
  std::size_t reached = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      reached = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++reached;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool is_pattern(std::string_view part) { return part.find_first_of("*?") != std::string_view::npos; }

}  // namespace

std::string plain_part(std::string_view text) {
  std::string word = lower_case(text);
  std::replace_if(
      word.begin(), word.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return word;
}

std::vector<std::string> parts_of(const Block& block, const Tensor& tensor) {
  switch (tensor.role) {
    case Role::embedding:
    case Role::positions:
      return {"embedding"};
    case Role::lm_head:
      return {"lm_head"};
    case Role::router:
      return {"router"};
    case Role::expert:
      return {"experts"};
    case Role::norm:
    case Role::bias:
    case Role::parameter:
      return {};
    case Role::linear:
      break;
  }
  if (tensor.name.starts_with("shared_expert")) return {"shared_experts"};
  if (block.kind == BlockKind::mlp || block.kind == BlockKind::moe) return {"mlp"};
  std::vector<std::string> parts;
  if (attends(block)) parts.emplace_back("attention");
  if (block.kind == BlockKind::mixer && !block.name.empty()) parts.push_back(plain_part(block.name));
  if (parts.empty())
    parts.emplace_back(block.kind == BlockKind::embedding ? "embedding"
                       : block.kind == BlockKind::head    ? "lm_head"
                                                          : "shapes");
  return parts;
}

bool names_tensor(std::string_view part, const Block& block, const Tensor& tensor) {
  if (matches(part, tensor.name)) return true;
  if (is_pattern(part)) return false;
  const std::vector<std::string> parts = parts_of(block, tensor);
  return std::find(parts.begin(), parts.end(), part_word(part)) != parts.end();
}

std::vector<std::string> weight_parts(const Model& model) {
  std::vector<std::string> all;
  for (const Block& block : model.blocks) {
    for (const Tensor& tensor : block.tensors) {
      for (std::string& part : parts_of(block, tensor)) {
        if (std::find(all.begin(), all.end(), part) == all.end()) all.push_back(std::move(part));
      }
    }
  }
  return all;
}

}  // namespace memwall
