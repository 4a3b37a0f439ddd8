// Composite models: whose class of the language model they take where its own configuration names none. The
// classes of Hugging Face transformers 5.24 (the text_config of models/NAME/configuration_NAME.py), and the
// first LLaVA's, whose language model's keys stand beside its own.
#include <algorithm>

#include "huggingface/family.h"

namespace memwall {
namespace {

struct Wrapper {
  const char* type;
  const char* text;
};

constexpr Wrapper kWrappers[] = {
    {"apertus1p5", "apertus1p5_text"},
    {"audioflamingo3", "qwen2"},
    {"aya_vision", "cohere2"},
    {"blip-2", "opt"},
    {"cohere2_vision", "cohere2"},
    {"colpali", "gemma"},
    {"colqwen2", "qwen2_vl_text"},
    {"cosmos3_omni", "qwen3_vl_text"},
    {"deepseek_vl", "llama"},
    {"deepseek_vl_hybrid", "llama"},
    {"dots3_note", "dots3_note_text"},
    {"ernie4_5_vl_moe", "ernie4_5_vl_moe_text"},
    {"exaone4_5", "exaone4"},
    {"fast_vlm", "qwen2"},
    {"fun_asr_nano", "qwen3"},
    {"fuyu", "persimmon"},
    {"gemma3", "gemma3_text"},
    {"gemma3n", "gemma3n_text"},
    {"gemma4", "gemma4_text"},
    {"gemma4_unified", "gemma4_unified_text"},
    {"gemma4_unified_assistant", "gemma4_unified_text"},
    {"glm46v", "glm4v_text"},
    {"glm4v", "glm4v_text"},
    {"glm4v_moe", "glm4v_moe_text"},
    {"glm5_next", "glm5_next_text"},
    {"glm_ocr", "glm_ocr_text"},
    {"glmasr", "llama"},
    {"glmga", "glm4v_text"},
    {"got_ocr2", "qwen2"},
    {"granite_speech", "granite"},
    {"granite_speech_plus", "granite"},
    {"hunyuan_vl", "hunyuan_vl_text"},
    {"hy_v4_vl", "hy_v4_vl_text"},
    {"hyperclovax_vision_v2", "hyperclovax"},
    {"idefics2", "mistral"},
    {"idefics3", "llama"},
    {"instructblip", "opt"},
    {"instructblipvideo", "opt"},
    {"internvl", "qwen2"},
    {"janus", "llama"},
    {"jev", "qwen3_5_text"},
    {"kimi_k25", "deepseek_v3"},
    {"lfm2_vl", "lfm2"},
    {"lfm3_vl", "lfm3"},
    {"lighton_ocr", "qwen3"},
    {"llama4", "llama4_text"},
    {"llava", "llama"},
    {"llava_llama", "llama"},
    {"llava_mistral", "mistral"},
    {"llava_next", "llama"},
    {"llava_next_video", "llama"},
    {"llava_onevision", "qwen2"},
    {"llava_qwen", "qwen2"},
    {"minicpm_ocr", "qwen3_5_text"},
    {"minicpmv4_6", "qwen3_5_text"},
    {"minicpmv4_7", "qwen3_5_text"},
    {"minimax_m3_vl", "minimax_m3_vl_text"},
    {"mistral3", "mistral"},
    {"mistral_large4", "mistral_large4_text"},
    {"mllama", "mllama_text_model"},
    {"molmo2", "molmo2_text"},
    {"moss_transcribe_diarize", "qwen3"},
    {"muse_glimmer", "muse_glimmer_text"},
    {"muse_spark", "muse_spark_text"},
    {"musicflamingo", "qwen2"},
    {"nemo_speechlm", "nemotron_h"},
    {"nemotron_h_omni", "nemotron_h"},
    {"omniasr", "llama"},
    {"ovis2", "qwen2"},
    {"paligemma", "gemma"},
    {"perception_lm", "llama"},
    {"pp_chart2table", "qwen2"},
    {"qianfan_ocr", "qwen3"},
    {"qwen2_5_omni", "qwen2_5_omni_text"},
    {"qwen2_5_omni_thinker", "qwen2_5_omni_text"},
    {"qwen2_5_vl", "qwen2_5_vl_text"},
    {"qwen2_audio", "qwen2"},
    {"qwen2_vl", "qwen2_vl_text"},
    {"qwen3_5", "qwen3_5_text"},
    {"qwen3_5_moe", "qwen3_5_moe_text"},
    {"qwen3_asr", "qwen3"},
    {"qwen3_omni_moe", "qwen3_omni_moe_text"},
    {"qwen3_omni_moe_thinker", "qwen3_omni_moe_text"},
    {"qwen3_vl", "qwen3_vl_text"},
    {"qwen3_vl_moe", "qwen3_vl_moe_text"},
    {"shieldgemma2", "gemma3_text"},
    {"smolvlm", "llama"},
    {"step3_vl", "step3_text"},
    {"step3p7", "step3p5"},
    {"vibevoice", "qwen2"},
    {"vibevoice_asr", "qwen2"},
    {"video_llama_3", "qwen2"},
    {"video_llava", "llama"},
    {"vipllava", "llama"},
    {"voxtral", "llama"},
};

}  // namespace

std::string wrapped_type(const std::string& model_type) {
  const auto* const row = std::find_if(std::begin(kWrappers), std::end(kWrappers),
                                       [&](const Wrapper& wrapper) { return model_type == wrapper.type; });
  return row == std::end(kWrappers) ? model_type : row->text;
}

}  // namespace memwall
