// Models that are no decoders, called so before any of their keys is asked for.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "huggingface/family.h"
#include "model/not_decoders.h"

namespace memwall {
namespace {

// By model_type, those of Hugging Face transformers 5.24 and of well-known repositories.
constexpr std::array kEncoders = {
    "albert",
    "align_text_model",
    "altclip",
    "bert",
    "bert-generation",
    "big_bird",
    "bros",
    "camembert",
    "canine",
    "chinese_clip",
    "clap",
    "clip",
    "clip_text_model",
    "clipseg",
    "convbert",
    "data2vec-text",
    "deberta",
    "deberta-v2",
    "distilbert",
    "electra",
    "ernie",
    "ernie_m",
    "esm",
    "eurobert",
    "flaubert",
    "fnet",
    "funnel",
    "gte",
    "hubert",
    "ibert",
    "jina_bert",
    "jina_embeddings_v3",
    "layoutlm",
    "layoutlmv2",
    "layoutlmv3",
    "lilt",
    "longformer",
    "luke",
    "markuplm",
    "megatron-bert",
    "metaclip_2",
    "mobilebert",
    "modernbert",
    "modernvbert",
    "mpnet",
    "mra",
    "neobert",
    "new",
    "nezha",
    "nomic_bert",
    "nystromformer",
    "qdqbert",
    "reformer",
    "rembert",
    "retribert",
    "roberta",
    "roberta-prelayernorm",
    "roc_bert",
    "roformer",
    "sew",
    "siglip",
    "siglip2",
    "siglip2_text_model",
    "siglip_text_model",
    "splinter",
    "squeezebert",
    "t5_encoder",
    "tapas",
    "ultrabert",
    "vit",
    "wav2vec2",
    "wav2vec2-bert",
    "wavlm",
    "xlm",
    "xlm-roberta",
    "xlm-roberta-flash",
    "xlm-roberta-xl",
    "xmod",
    "yoso",
};

constexpr std::array kEncoderDecoders = {
    "bart",
    "bigbird_pegasus",
    "blenderbot",
    "blenderbot-small",
    "encoder-decoder",
    "florence2",
    "fsmt",
    "led",
    "longt5",
    "m2m_100",
    "marian",
    "mbart",
    "moonshine",
    "moonshine_streaming",
    "mt5",
    "mvp",
    "nllb-moe",
    "nllb_moe",
    "nougat",
    "pegasus",
    "pegasus_x",
    "pix2struct",
    "plbart",
    "pop2piano",
    "prophetnet",
    "rag",
    "seamless_m4t",
    "seamless_m4t_v2",
    "speech-encoder-decoder",
    "speech_to_text",
    "speecht5",
    "switch_transformers",
    "t5",
    "t5gemma",
    "t5gemma2",
    "udop",
    "umt5",
    "vision-encoder-decoder",
    "whisper",
    "xlm-prophetnet",
};

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

template <std::size_t N>
bool names(const std::array<const char*, N>& list, const std::string& type) {
  return std::any_of(list.begin(), list.end(), [&](const char* name) { return type == name; });
}

}  // namespace

void refuse_encoders(const Config& config) {
  const std::vector<std::string> architectures = config.architectures();
  const bool decodes = config.flag_or({"is_decoder"}, false);
  const bool masked = std::any_of(architectures.begin(), architectures.end(),
                                  [](const std::string& name) { return ends_with(name, "ForMaskedLM"); });
  for (const std::string& type : {config.type(), config.outer_type()}) {
    const std::string name = excerpt(type);
    if (names(kEncoderDecoders, type))
      config.fail(fmt::format("model_type '{}' {}", name, kIsEncoderDecoder));
    if (names(kEncoders, type)) config.fail(fmt::format("model_type '{}' {}", name, kIsEncoder));
  }
  const std::string name = excerpt(config.type());
  if (config.flag_or({"is_encoder_decoder"}, false))
    config.fail(fmt::format("model_type '{}' {}", name, kIsEncoderDecoder));
  if (masked && !decodes) config.fail(fmt::format("model_type '{}' {}", name, kIsEncoder));
}

void refuse_cross_attention(const Config& config) {
  if (config.flag_or({"is_encoder_decoder"}, false)) {
    config.fail_about({"is_encoder_decoder"},
                      fmt::format("is_encoder_decoder is true: the model {}", kIsEncoderDecoder));
  }
  if (config.flag_or({"add_cross_attention"}, false)) {
    config.fail_about(
        {"add_cross_attention"},
        "add_cross_attention is true: layers that attend to an encoder's output are not counted; "
        "memwall counts decoder-only models");
  }
}

}  // namespace memwall
