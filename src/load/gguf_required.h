// The tensors that a GGUF file must hold. What llama.cpp would not load without is named itself, where it
// would else be taken for a model of another kind: without ffn_gate an MLP looks ungated, without output the
// lm_head looks tied.
#pragma once

#include "load/gguf_sorted.h"

namespace memwall {

// Throws InputError naming the first tensor that is missing.
void require_gguf_tensors(const GgufSorted& sorted);

}  // namespace memwall
