#include <algorithm>
#include <array>

#include "huggingface/family.h"

namespace memwall {
namespace {

std::array<const std::vector<Family>*, 16> tables() {
  return {&dense_families(),     &gpt_families(),       &layer_norm_families(), &gemma_families(),
          &per_layer_families(), &moe_families(),       &sparse_families(),     &latent_families(),
          &indexed_families(),   &hyper_families(),     &mamba_families(),      &zamba_families(),
          &linear_families(),    &recurrent_families(), &rwkv_families(),       &factorized_families()};
}

}  // namespace

const Family* find_family(const std::string& model_type) {
  for (const std::vector<Family>* table : tables()) {
    for (const Family& family : *table) {
      const auto same = [&](const char* type) { return model_type == type; };
      if (std::any_of(family.types.begin(), family.types.end(), same)) return &family;
    }
  }
  return nullptr;
}

}  // namespace memwall
