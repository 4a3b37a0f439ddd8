#include "cuda/operands.h"

namespace memwall::cuda {

std::vector<Variant> variants_of(const AddTask&, Context&) { return {}; }
Footprint footprint_of(const AddTask&, Context&) { return {}; }
std::unique_ptr<Operands> place(const AddTask&, Context&, std::int64_t, std::uint64_t) { return nullptr; }

std::vector<Variant> variants_of(const MatmulTask&, Context&) { return {}; }
Footprint footprint_of(const MatmulTask&, Context&) { return {}; }
std::unique_ptr<Operands> place(const MatmulTask&, Context&, std::int64_t, std::uint64_t) { return nullptr; }

}  // namespace memwall::cuda
