#include "load/gguf_architectures.h"

#include <algorithm>

namespace memwall {
namespace {

constexpr auto kGelu = ActivationKind::gelu;
constexpr auto kRelu = ActivationKind::relu;

constexpr const char* kEncoder = "is an encoder, which embeds texts and decodes none";
constexpr const char* kDraft = "is the draft head of another model; name that model's file";
constexpr const char* kDiffusion =
    "a diffusion model refines many tokens in a step; it is counted as one that decodes token by token";

constexpr GgufSliding by_period(std::int32_t period, std::int64_t window = 0) {
  return {.layers = GgufSliding::Layers::by_period, .period = period, .window = window};
}
constexpr GgufSliding full_first(std::int32_t period) {
  return {.layers = GgufSliding::Layers::by_period, .period = period, .full_first = true};
}
constexpr GgufSliding kByKey = {.layers = GgufSliding::Layers::pattern_key};
// Llama 4's key tells only whether there are chunks.
constexpr GgufSliding kLlama4 = {
    .layers = GgufSliding::Layers::by_period, .period = 4, .window = 8192, .chunks = true};
constexpr GgufSliding kExaone4 = {
    .layers = GgufSliding::Layers::by_period, .period = 4, .window = 4096, .only_at = 64};

}  // namespace

// Names: LLM_ARCH_NAMES in src/llama-arch.cpp of github.com/ggml-org/llama.cpp, mid-2026. Windows:
// load_arch_hparams in src/models/*.cpp, whose set_swa_pattern gives the periods; Phi-3's window is read and
// not used there. Activations and rotary embeddings: the graphs in the same files.
const std::vector<GgufArchitecture>& gguf_architectures() {
  static const std::vector<GgufArchitecture> known = {
      {.name = "afmoe", .rotary = GgufRotary::in_windows, .sliding = by_period(4)},
      {.name = "apertus", .activation = kRelu},
      {.name = "arcee", .activation = kRelu},
      {.name = "arctic"},
      {.name = "arwkv7", .rotary = GgufRotary::never},
      {.name = "baichuan"},
      {.name = "bailingmoe"},
      {.name = "bailingmoe2"},
      {.name = "bert", .refusal = kEncoder},
      {.name = "bitnet"},
      {.name = "bloom", .activation = kGelu, .rotary = GgufRotary::never},
      {.name = "chameleon"},
      {.name = "chatglm"},
      {.name = "clip", .refusal = "is a vision or audio tower (mmproj); name the language model's file"},
      {.name = "codeshell", .activation = kGelu},
      {.name = "cogvlm"},
      {.name = "cohere2", .rotary = GgufRotary::in_windows, .sliding = by_period(4)},
      {.name = "cohere2moe", .rotary = GgufRotary::in_windows, .sliding = full_first(4)},
      {.name = "command-r"},
      {.name = "dbrx"},
      {.name = "deci"},
      {.name = "deepseek"},
      {.name = "deepseek2"},
      {.name = "deepseek2-ocr"},
      {.name = "deepseek32"},
      {.name = "deepseek4", .refusal = "caches compressed tokens, which are not read from GGUF files yet"},
      {.name = "dflash", .refusal = kDraft},
      {.name = "dots1"},
      {.name = "dream", .note = kDiffusion},
      {.name = "eagle3", .refusal = kDraft},
      {.name = "ernie4_5"},
      {.name = "ernie4_5-moe"},
      {.name = "eurobert", .refusal = kEncoder},
      {.name = "exaone"},
      {.name = "exaone-moe", .rotary = GgufRotary::in_windows, .sliding = by_period(4)},
      {.name = "exaone4", .rotary = GgufRotary::in_windows, .sliding = kExaone4},
      {.name = "falcon", .activation = kGelu},
      {.name = "falcon-h1"},
      {.name = "gemma", .activation = kGelu},
      {.name = "gemma-embedding", .refusal = kEncoder},
      {.name = "gemma2", .activation = kGelu, .sliding = by_period(2, 4096)},
      {.name = "gemma3", .activation = kGelu, .sliding = by_period(6)},
      {.name = "gemma3n", .activation = kGelu, .sliding = by_period(5)},
      {.name = "gemma4", .activation = kGelu, .sliding = kByKey},
      {.name = "gemma4-assistant", .refusal = kDraft},
      {.name = "glm-dsa"},
      {.name = "glm4"},
      {.name = "glm4moe"},
      {.name = "gpt-oss", .sliding = by_period(2)},
      {.name = "gpt2", .activation = kGelu, .rotary = GgufRotary::never},
      {.name = "gptj", .activation = kGelu},
      {.name = "gptneox", .activation = kGelu},
      {.name = "granite"},
      {.name = "granitehybrid", .rotary = GgufRotary::by_key},
      {.name = "granitemoe"},
      {.name = "grok", .activation = kGelu},
      {.name = "grovemoe"},
      {.name = "hunyuan-dense"},
      {.name = "hunyuan-moe"},
      {.name = "hunyuan_vl"},
      {.name = "hy_v3"},
      {.name = "internlm2"},
      {.name = "jais", .rotary = GgufRotary::never},
      {.name = "jais2", .activation = kRelu},
      {.name = "jamba", .rotary = GgufRotary::never},
      {.name = "jina-bert-v2", .refusal = kEncoder},
      {.name = "jina-bert-v3", .refusal = kEncoder},
      {.name = "kimi-linear", .rotary = GgufRotary::never},
      {.name = "laguna", .sliding = full_first(4)},
      {.name = "lfm2"},
      {.name = "lfm2moe"},
      {.name = "llada", .note = kDiffusion},
      {.name = "llada-moe", .note = kDiffusion},
      {.name = "llama"},
      {.name = "llama-embed", .refusal = kEncoder},
      {.name = "llama4", .rotary = GgufRotary::in_windows, .sliding = kLlama4},
      {.name = "maincoder"},
      {.name = "mamba", .rotary = GgufRotary::never},
      {.name = "mamba2", .rotary = GgufRotary::never},
      {.name = "mellum", .sliding = by_period(4)},
      {.name = "mimo2", .sliding = kByKey},
      {.name = "minicpm"},
      {.name = "minicpm3"},
      {.name = "minimax-m2"},
      {.name = "mistral3"},
      {.name = "mistral4"},
      {.name = "modern-bert", .refusal = kEncoder},
      {.name = "mpt", .activation = kGelu, .rotary = GgufRotary::never},
      {.name = "nemotron", .activation = kRelu},
      {.name = "nemotron_h", .activation = kRelu, .rotary = GgufRotary::never},
      {.name = "nemotron_h_moe", .activation = kRelu, .rotary = GgufRotary::never},
      {.name = "neo-bert", .refusal = kEncoder},
      {.name = "nomic-bert", .refusal = kEncoder},
      {.name = "nomic-bert-moe", .refusal = kEncoder},
      {.name = "olmo"},
      {.name = "olmo2", .sliding = by_period(4)},
      {.name = "olmoe"},
      {.name = "openelm"},
      {.name = "orion"},
      {.name = "paddleocr"},
      {.name = "pangu-embedded"},
      {.name = "phi2", .activation = kGelu},
      {.name = "phi3"},
      {.name = "phimoe"},
      {.name = "plamo"},
      {.name = "plamo2"},
      {.name = "plamo3", .sliding = by_period(8)},
      {.name = "plm", .activation = kRelu},
      {.name = "qwen"},
      {.name = "qwen2"},
      {.name = "qwen2moe"},
      {.name = "qwen2vl"},
      {.name = "qwen3"},
      {.name = "qwen35"},
      {.name = "qwen35moe"},
      {.name = "qwen3moe"},
      {.name = "qwen3next"},
      {.name = "qwen3vl"},
      {.name = "qwen3vlmoe"},
      {.name = "refact", .rotary = GgufRotary::never},
      {.name = "rnd1", .note = kDiffusion},
      {.name = "rwkv6", .rotary = GgufRotary::never},
      {.name = "rwkv6qwen2", .rotary = GgufRotary::never},
      {.name = "rwkv7", .rotary = GgufRotary::never},
      {.name = "seed_oss"},
      {.name = "smallthinker",
       .activation = kRelu,
       .rotary = GgufRotary::in_windows,
       .sliding = full_first(4)},
      {.name = "smollm3", .rotary = GgufRotary::three_of_four},
      {.name = "stablelm"},
      {.name = "starcoder", .activation = kGelu, .rotary = GgufRotary::never},
      {.name = "starcoder2", .activation = kGelu},
      {.name = "step35", .sliding = kByKey},
      {.name = "t5", .refusal = "has an encoder and a decoder; decoders alone are read"},
      {.name = "t5encoder", .refusal = kEncoder},
      {.name = "talkie"},
      {.name = "wavtokenizer-dec", .refusal = "decodes audio, not text"},
      {.name = "xverse"},
  };
  return known;
}

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
  const std::vector<GgufArchitecture>& known = gguf_architectures();
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const GgufArchitecture& a) { return name == a.name; });
  return found == known.end() ? nullptr : &*found;
}

}  // namespace memwall
