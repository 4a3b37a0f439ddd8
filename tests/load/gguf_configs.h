// The same small model as a GGUF file and as a config.json: both readers must make the same of it.
#pragma once

#include <string>
#include <variant>

#include "tests/huggingface/families_support.h"
#include "tests/load/gguf_models.h"
#include "tests/model/round_trip.h"

namespace memwall {

// A configuration of the sizes that SmallGguf has.
inline Model small_config(const std::string& type, const std::string& keys) {
  const Model model = read_text(R"({"model_type": ")" + type +
                                R"(", "hidden_size": 64, "vocab_size": 128, "num_attention_heads": 4,
      "torch_dtype": "float16", "tie_word_embeddings": false, )" +
                                keys + "}");
  EXPECT_FALSE(model.approximate) << (model.warnings.empty() ? "" : model.warnings.front());
  return model;
}

// Of one sequence. llama.cpp keeps the inputs of convolutions in f32, engines of other files in 16 bits; so
// elements are compared.
inline std::int64_t state_elements(const Model& model) {
  std::int64_t elements = 0;
  for (const Block& block : model.blocks) {
    for (const Block::Placed& placed : block.states) {
      if (const auto* state = std::get_if<RecurrentState>(&placed.state))
        elements += block_count(block) * (state->elements + state->conv_elements);
    }
  }
  return elements;
}

// `fewer`: parameters that a converter multiplies together.
inline void expect_same(const Model& file, const Model& config, std::int64_t fewer = 0) {
  EXPECT_FALSE(file.approximate) << (file.warnings.empty() ? "" : file.warnings.front());
  EXPECT_EQ(file.layers, config.layers);
  EXPECT_EQ(count_parameters(file).total, count_parameters(config).total - fewer);
  EXPECT_EQ(count_parameters(file).active, count_parameters(config).active - fewer);
  EXPECT_EQ(kv_bytes_per_token(file), kv_bytes_per_token(config));
  for (const std::int64_t context : {1, 24, 1000}) {
    EXPECT_EQ(kv_cache_bytes(file, context), kv_cache_bytes(config, context)) << context;
  }
  EXPECT_EQ(state_elements(file), state_elements(config));
  expect_round_trip(file);
}

}  // namespace memwall
