#include "load/gguf_architectures.h"

#include <algorithm>

#include "model/not_decoders.h"

namespace memwall {
namespace {

constexpr auto kGelu = ActivationKind::gelu;
constexpr auto kRelu = ActivationKind::relu;

constexpr const char* kSpeech = "makes speech from text; it is no language model to decode with";
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
      {.name = "apertus", .activation = kRelu, .gated = false},
      {.name = "arcee", .activation = kRelu, .gated = false},
      {.name = "arctic"},
      {.name = "arwkv7", .rotary = GgufRotary::never, .own_head = true},
      {.name = "baichuan", .own_head = true},
      {.name = "bailingmoe", .own_head = true},
      {.name = "bailingmoe2", .own_head = true},
      {.name = "bailingmoe3"},
      {.name = "bert", .refusal = kIsEncoder},
      {.name = "bitnet"},
      {.name = "bloom", .activation = kGelu, .rotary = GgufRotary::never, .gated = false},
      {.name = "chameleon"},
      {.name = "chatglm"},
      {.name = "clip", .refusal = "is a vision or audio tower (mmproj); name the language model's file"},
      {.name = "codeshell", .activation = kGelu, .gated = false},
      {.name = "cogvlm"},
      {.name = "cohere2", .rotary = GgufRotary::in_windows, .sliding = by_period(4)},
      {.name = "cohere2moe", .rotary = GgufRotary::in_windows, .sliding = full_first(4)},
      {.name = "command-r"},
      {.name = "dbrx", .own_head = true},
      {.name = "deci"},
      {.name = "deepseek"},
      {.name = "deepseek2"},
      {.name = "deepseek2-ocr"},
      {.name = "deepseek32"},
      {.name = "deepseek4", .own_head = true},
      {.name = "dflash", .refusal = kDraft},
      {.name = "dots1", .own_head = true},
      {.name = "dots3note", .sliding = kByKey},
      {.name = "dream", .note = kDiffusion},
      {.name = "eagle3", .refusal = kDraft},
      {.name = "ernie4_5"},
      {.name = "ernie4_5-moe"},
      {.name = "eurobert", .refusal = kIsEncoder},
      {.name = "exaone"},
      {.name = "exaone-moe", .rotary = GgufRotary::in_windows, .sliding = by_period(4)},
      {.name = "exaone4", .rotary = GgufRotary::in_windows, .sliding = kExaone4},
      {.name = "falcon", .activation = kGelu, .gated = false},
      {.name = "falcon-h1"},
      {.name = "gemma", .activation = kGelu},
      {.name = "gemma-embedding", .refusal = kIsEncoder},
      {.name = "gemma2", .activation = kGelu, .sliding = by_period(2, 4096)},
      {.name = "gemma3", .activation = kGelu, .sliding = by_period(6)},
      {.name = "gemma3n", .activation = kGelu, .sliding = by_period(5)},
      {.name = "gemma4", .activation = kGelu, .sliding = kByKey},
      {.name = "gemma4-assistant", .refusal = kDraft},
      {.name = "glm-dsa"},
      {.name = "glm4"},
      {.name = "glm4moe"},
      {.name = "glm5-next", .rotary = GgufRotary::never, .own_head = true},
      {.name = "gpt-oss", .sliding = by_period(2), .own_head = true},
      {.name = "gpt2", .activation = kGelu, .rotary = GgufRotary::never, .gated = false},
      {.name = "gptj", .activation = kGelu, .gated = false},
      {.name = "gptneox", .activation = kGelu, .gated = false, .own_head = true},
      {.name = "granite"},
      {.name = "granite_swa", .sliding = kByKey},
      {.name = "granitehybrid", .rotary = GgufRotary::by_key},
      {.name = "granitemoe"},
      {.name = "graniteswitch", .rotary = GgufRotary::by_key},
      {.name = "grok", .activation = kGelu},
      {.name = "grovemoe"},
      {.name = "hrm_text", .final_norm = false},
      {.name = "hunyuan-dense"},
      {.name = "hunyuan-moe"},
      {.name = "hunyuan_vl"},
      {.name = "hy_v3"},
      {.name = "hy_v4", .own_head = true},
      {.name = "internlm2", .own_head = true},
      {.name = "jais", .rotary = GgufRotary::never, .own_head = true},
      {.name = "jais2", .activation = kRelu, .gated = false},
      {.name = "jamba", .rotary = GgufRotary::never},
      {.name = "jina-bert-v2", .refusal = kIsEncoder},
      {.name = "jina-bert-v3", .refusal = kIsEncoder},
      {.name = "kimi-k3", .rotary = GgufRotary::never, .own_head = true},
      {.name = "kimi-linear", .rotary = GgufRotary::never, .own_head = true},
      {.name = "laguna", .sliding = full_first(4)},
      {.name = "lfm2"},
      {.name = "lfm2moe"},
      {.name = "llada", .note = kDiffusion},
      {.name = "llada-moe", .own_head = true, .note = kDiffusion},
      {.name = "llama"},
      {.name = "llama-embed", .refusal = kIsEncoder},
      {.name = "llama4", .rotary = GgufRotary::in_windows, .sliding = kLlama4},
      {.name = "maincoder"},
      {.name = "mamba", .rotary = GgufRotary::never},
      {.name = "mamba2", .rotary = GgufRotary::never},
      {.name = "maple", .sliding = kByKey, .own_head = true},
      {.name = "mellum", .sliding = by_period(4), .own_head = true},
      {.name = "mimo2", .sliding = kByKey, .own_head = true},
      {.name = "minicpm"},
      {.name = "minicpm3"},
      {.name = "minimax-01"},
      {.name = "minimax-m2", .own_head = true},
      {.name = "minimax-m3", .own_head = true},
      {.name = "mistral3"},
      {.name = "mistral4"},
      {.name = "modern-bert", .refusal = kIsEncoder},
      {.name = "mpt", .activation = kGelu, .rotary = GgufRotary::never, .gated = false},
      {.name = "muse-glimmer", .rotary = GgufRotary::in_windows, .sliding = by_period(4), .own_head = true},
      {.name = "nanbeige"},
      {.name = "nemotron", .activation = kRelu, .gated = false, .own_head = true},
      {.name = "nemotron_h", .activation = kRelu, .rotary = GgufRotary::never, .gated = false},
      {.name = "nemotron_h_moe", .activation = kRelu, .rotary = GgufRotary::never, .gated = false},
      {.name = "neo-bert", .refusal = kIsEncoder},
      {.name = "nomic-bert", .refusal = kIsEncoder},
      {.name = "nomic-bert-moe", .refusal = kIsEncoder},
      {.name = "olmo", .final_norm = false},
      {.name = "olmo2", .sliding = by_period(4), .own_head = true},
      {.name = "olmoe", .own_head = true},
      {.name = "openelm"},
      {.name = "orion", .own_head = true},
      {.name = "paddleocr"},
      {.name = "pangu-embedded"},
      {.name = "phi2", .activation = kGelu, .gated = false, .own_head = true},
      {.name = "phi3"},
      {.name = "phimoe"},
      {.name = "plamo", .own_head = true},
      {.name = "plamo2"},
      {.name = "plamo3", .sliding = by_period(8)},
      {.name = "plm", .activation = kRelu, .gated = false},
      {.name = "pockettts", .refusal = kSpeech},
      {.name = "qwen", .own_head = true},
      {.name = "qwen2"},
      {.name = "qwen2moe", .own_head = true},
      {.name = "qwen2vl"},
      {.name = "qwen3"},
      {.name = "qwen35"},
      {.name = "qwen35moe"},
      {.name = "qwen3moe"},
      {.name = "qwen3next"},
      {.name = "qwen3tts", .refusal = kSpeech},
      {.name = "qwen3vl"},
      {.name = "qwen3vlmoe"},
      {.name = "qwen4exp", .final_norm = false},
      {.name = "refact", .rotary = GgufRotary::never},
      {.name = "rnd1", .note = kDiffusion},
      {.name = "rwkv6", .rotary = GgufRotary::never, .own_head = true},
      {.name = "rwkv6qwen2", .rotary = GgufRotary::never, .own_head = true},
      {.name = "rwkv7", .rotary = GgufRotary::never, .own_head = true},
      {.name = "seed_oss"},
      {.name = "smallthinker",
       .activation = kRelu,
       .rotary = GgufRotary::in_windows,
       .sliding = full_first(4)},
      {.name = "smollm3", .rotary = GgufRotary::three_of_four},
      {.name = "spark2_5", .activation = kGelu, .sliding = kByKey},
      {.name = "stablelm", .own_head = true},
      {.name = "starcoder", .activation = kGelu, .rotary = GgufRotary::never, .gated = false},
      {.name = "starcoder2", .activation = kGelu, .gated = false},
      {.name = "step35", .sliding = kByKey},
      {.name = "t5", .refusal = kIsEncoderDecoder},
      {.name = "t5encoder", .refusal = kIsEncoder},
      {.name = "talkie", .own_head = true, .final_norm = false},
      {.name = "wavtokenizer-dec", .refusal = "decodes audio, not text"},
      {.name = "whisper", .refusal = kIsEncoderDecoder},
      {.name = "xverse", .own_head = true},
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
