// The blocks of one layer, from its tensors. Each function takes what it understands, adds what blocks that
// makes, and leaves the rest to the next.
#pragma once

#include <string>
#include <vector>

#include "load/gguf_tensors.h"
#include "model/model.h"

namespace memwall {

// Attention over the K and V of every token, where the layer has it.
void add_attention(GgufTensors& tensors, std::vector<Block>& blocks);
// Multi-head latent attention.
void add_latent_attention(GgufTensors& tensors, std::vector<Block>& blocks);
// DeepSeek-V4's latent attention of a window and of compressed tokens.
void add_compressed_attention(GgufTensors& tensors, std::vector<Block>& blocks);
// State-space layers, delta nets, short convolutions and RWKV's time mixing.
void add_recurrence(GgufTensors& tensors, std::vector<Block>& blocks);
// MiniMax-01's lightning attention (arXiv 2501.08313): a linear attention with a fixed decay a head.
void add_lightning_attention(GgufTensors& tensors, std::vector<Block>& blocks);
// Qwen4's embeddings of n-grams, mixed into the residual streams of one layer by a convolution, whose taps
// are the length of an n-gram apart.
void add_ngram_embedding(GgufTensors& tensors, std::vector<Block>& blocks);
// MLPs, experts, and both side by side.
void add_feed_forward(GgufTensors& tensors, std::vector<Block>& blocks);
// Adapters of which each token uses one.
void add_adapters(GgufTensors& tensors, std::vector<Block>& blocks);
// What Gemma 3n and 4 have beside them: per-layer embeddings, alternating updates.
void add_side_paths(GgufTensors& tensors, std::vector<Block>& blocks);

// How a block's input comes from the residual streams, where that is more than one sum: the first thing that
// the block of `part`, "attn" or "ffn", reads; and the same before the final norm.
void add_residual_mixing(GgufBlock& block, const std::string& part);
void add_last_residual_mixing(GgufBlock& block);

// All of them, in the order they run. A tensor that none understands is counted as read in every step, and
// its name added to `unknown`. Throws InputError where the layer's tensors contradict the metadata, or the
// layer mixes tokens in a way that is not known.
std::vector<Block> gguf_layer(GgufTensors& tensors, std::vector<std::string>& unknown);

// What is left in `tensors`, counted as read in every step.
void add_unknown(GgufTensors& tensors, std::vector<Block>& blocks, std::vector<std::string>& unknown);

// True where post_attention_norm is the norm before the feed-forward, as in gpt-oss and Qwen3-Next, and not
// one of the attention's output, as in Gemma 2: then another norm stands before or after the feed-forward.
bool post_attention_norm_is_next(const GgufTensors& tensors);

}  // namespace memwall
