// Checkpoints saved without a language model's head: base models, classifiers, reward models. Sources:
// modeling_layers.py of Hugging Face transformers 5.24 (Generic...), and the modelling code in the
// repositories of Qwen2.5-Math-RM, Qwen2.5-Math-PRM, InternLM2-Reward and Open Assistant's reward models.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "format/checked.h"
#include "huggingface/families_parts.h"
#include "huggingface/plan.h"

namespace memwall {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string letters_of(const std::string& name) {
  std::string letters;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

// MistralModel of mistral: the class without a head. Some repositories' own code names a class so that has
// one.
bool is_base(const Config& config, const std::string& name) {
  if (config.type() == "chatglm" || !ends_with(name, "Model")) return false;
  const std::string stem = letters_of(name.substr(0, name.size() - 5));
  const std::string& outer = config.outer_type();
  return stem == letters_of(config.type()) || (wrapped_type(outer) != outer && stem == letters_of(outer));
}

std::int64_t label_count(const Config& config) {
  constexpr Range kLabels{1, 1 << 20};
  if (const json::Value* count = config.find({"num_labels"}, true))
    return json::as_integer(config.file(), *count, "num_labels", kLabels);
  const json::Value* names = config.find({"id2label"}, true);
  if (names == nullptr) return 2;  // PreTrainedConfig's default
  if (names->kind != json::Kind::object || names->items.empty())
    config.fail_at(*names, "id2label must be an object with a name for each label");
  return static_cast<std::int64_t>(names->items.size());
}

}  // namespace

void replace_head(const Config& config, Plan& plan) {
  const std::vector<std::string> architectures = config.architectures();
  if (architectures.empty()) return;
  const std::string& name = architectures.front();
  const std::int64_t hidden = plan.head.width > 0 ? plan.head.width : plan.common.hidden_size;
  Block part;
  std::string what = "a base model";
  if (ends_with(name, "ForSequenceClassification")) {
    what = fmt::format("a classifier of {} labels", label_count(config));
    add_linear(part, plan.common, "score", label_count(config), hidden);
  } else if (ends_with(name, "ForTokenClassification")) {
    what = fmt::format("a classifier of {} labels", label_count(config));
    add_linear(part, plan.common, "score", label_count(config), hidden, true);
  } else if (ends_with(name, "ForQuestionAnswering")) {
    what = "a model that marks answers";
    add_linear(part, plan.common, "qa_outputs", 2, hidden, true);
  } else if (name == "Qwen2ForRewardModel" || name == "Qwen2ForProcessRewardModel") {
    what = "a reward model";
    add_linear(part, plan.common, "score.0", hidden, hidden, true);
    add_linear(part, plan.common, "score.2", name == "Qwen2ForRewardModel" ? 1 : 2, hidden, true);
  } else if (name == "GPTNeoXRewardModel") {  // Open Assistant's
    what = "a reward model";
    add_linear(part, plan.common, "out_proj", 1, hidden, true);
  } else if (name == "InternLM2ForRewardModel") {
    what = "a reward model";
    add_linear(part, plan.common, "v_head", 1, hidden);
  } else if (name.find("RewardModel") != std::string::npos) {
    what = "a reward model, whose head is taken to be one vector,";
    add_linear(part, plan.common, "v_head", 1, hidden);
  } else if (!is_base(config, name)) {
    return;
  }
  plan.lm_head = false;
  plan.output_parts.insert(plan.output_parts.end(), part.tensors.begin(), part.tensors.end());
  plan.notes.push_back(
      fmt::format("{} is {} without an lm_head: it decodes no tokens as stored", excerpt(name), what));
}

}  // namespace memwall
