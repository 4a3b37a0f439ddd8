#include "cuda/fused_attention.h"

namespace memwall::cuda {

bool is_fused_attention(const FusedTask&) { return false; }
std::vector<Variant> fused_attention_variants(const FusedTask&, Context&) { return {}; }
Footprint fused_attention_footprint(const FusedTask&, Context&) { return {}; }
std::unique_ptr<Operands> place_fused_attention(const FusedTask&, Context&, std::int64_t, std::uint64_t) {
  return nullptr;
}

}  // namespace memwall::cuda
