// The other way round from blocks.h: from a block's tensors and states to the spec that makes them.
#pragma once

#include <optional>

#include "model/blocks.h"

namespace memwall {

// Each gives the spec whose block has the same tensors but for their formats; nothing where there is none.
std::optional<AttentionSpec> attention_spec_of(const Block& block, const Common& common);
std::optional<MlpSpec> mlp_spec_of(const Block& block, const Common& common);
std::optional<MoeSpec> moe_spec_of(const Block& block, const Common& common);

// Equal but for the tensors' formats and stored bytes.
bool same_shapes(const Block& a, const Block& b);

}  // namespace memwall
