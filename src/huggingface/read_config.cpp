#include "huggingface/read_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "huggingface/family.h"
#include "huggingface/plan.h"
#include "huggingface/quantization.h"
#include "input/error.h"
#include "model/join_layers.h"

namespace memwall {
namespace {

Format read_dtype(const Config& config, std::vector<std::string>& notes) {
  const json::Value* value = config.find({"dtype", "torch_dtype"}, true);
  std::string name = value == nullptr ? "" : json::as_text(config.file(), *value, "dtype");
  if (name.rfind("torch.", 0) == 0) name = name.substr(6);
  if (name == "float32" || name == "float") return {FormatKind::f32, 0, false};
  if (name == "float16" || name == "half") return {FormatKind::f16, 0, false};
  if (name != "bfloat16") {
    notes.push_back(name.empty() || name == "auto" ? "the configuration states no dtype: bf16 is assumed"
                                                   : fmt::format("dtype {} is read as bf16", excerpt(name)));
  }
  return {FormatKind::bf16, 0, false};
}

void add_notes(const Config& config, const Plan& plan, Model& model) {
  const std::int64_t mtp = draft_layers(config);
  if (mtp > 0)
    model.extras.push_back(
        {.what = fmt::format("{} multi-token-prediction layer{}", mtp, mtp > 1 ? "s" : "")});
  if (config.find(
          {"vision_config", "vision_tower", "visual", "vision_tower_config", "vlm_config.vision_config"},
          true) != nullptr)
    model.extras.push_back({.what = "a vision tower"});
  if (config.find({"audio_config", "audio_encoder"}, true) != nullptr)
    model.extras.push_back({.what = "an audio encoder"});
  model.warnings.insert(model.warnings.end(), plan.notes.begin(), plan.notes.end());
}

// The tables before the layers, and what some families have between them and the first layer.
Block embedding_of(const Plan& plan) {
  const std::int64_t hidden = plan.common.hidden_size;
  Common common = plan.common;
  if (plan.head.width > 0) common.hidden_size = plan.head.width;
  Block block = embedding_block(common, plan.head.vocab_size + plan.extra_vocab, 0);
  if (plan.positions > 0)
    block.tensors.push_back(embedding_block(plan.common, 1, plan.positions).tensors.back());
  if (plan.head.width > 0) add_linear(block, plan.common, "project_in", hidden, plan.head.width);
  block.tensors.insert(block.tensors.end(), plan.embedding_parts.begin(), plan.embedding_parts.end());
  return block;
}

// The same behind the layers.
Block head_of(const Plan& plan) {
  HeadSpec spec = plan.head;
  if (!plan.lm_head) spec.vocab_size = 0;
  Block block = head_block(plan.common, spec);
  const auto lm_head = [&] {
    return std::find_if(block.tensors.begin(), block.tensors.end(),
                        [](const Tensor& tensor) { return tensor.role == Role::lm_head; });
  };
  if (plan.head.width > 0) {
    Block projection;
    add_linear(projection, plan.common, "project_out", plan.head.width, plan.common.hidden_size);
    block.tensors.insert(lm_head(), projection.tensors.begin(), projection.tensors.end());
  }
  block.tensors.insert(lm_head(), plan.output_parts.begin(), plan.output_parts.end());
  block.tensors.insert(block.tensors.begin(), plan.head_parts.begin(), plan.head_parts.end());
  return block;
}

Model build(const Config& config, const Family& family, const std::string& name, bool known) {
  std::vector<std::string> notes;
  const Format dtype = read_dtype(config, notes);
  const Plan plan = read_plan(config, family, dtype);
  if (!known) refuse_beyond_rules(config);

  Model model;
  model.name = model.title = name;
  model.architecture = config.outer_type().empty() ? config.type() : config.outer_type();
  model.file = config.file();
  model.hidden_size = plan.common.hidden_size;
  model.vocab_size = plan.head.vocab_size;
  model.max_context =
      config.integer_or({"max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len",
                         "max_sequence_length", "model_max_length", "context_length"},
                        0);
  model.layers = plan.layers;
  model.weights = model.head = dtype;
  model.kv = dtype.kind == FormatKind::f32 ? KvFormat::bf16 : *find_kv_format(format_name(dtype));

  model.blocks.push_back(embedding_of(plan));
  LayerJoiner layers;
  for (std::int32_t i = 0; i < plan.layers; ++i) {
    const LayerPlan layer = plan_layer(config, family, plan, i);
    std::vector<Block> blocks;
    if (family.mixer != nullptr) {
      blocks = family.mixer(config, plan, layer);
    } else {
      blocks.push_back(common_attention(plan, layer));
    }
    std::vector<Block> rest = family.feed_forward != nullptr ? family.feed_forward(config, plan, layer)
                                                             : common_feed_forward(plan, layer);
    blocks.insert(blocks.end(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
    layers.add(i, std::move(blocks));
  }
  layers.finish(model.blocks);
  model.blocks.push_back(head_of(plan));
  model.warnings = notes;
  add_notes(config, plan, model);
  apply_quantization(config, model);

  if (const std::string unread = known ? unread_keys_warning(config) : ""; !unread.empty()) {
    model.approximate = true;
    model.warnings.insert(model.warnings.begin(), unread);
  }
  if (!known) {
    model.approximate = true;
    const std::vector<std::string> why = unknown_family_warnings(config);
    model.warnings.insert(model.warnings.begin(), why.begin(), why.end());
  }
  check_sums(model);
  return model;
}

// Keys are looked up one by one, layer by layer: what is no configuration must not take minutes.
void check_size(const json::Document& document) {
  constexpr std::size_t kMostKeys = 4096;
  const auto check = [&](const json::Value& value) {
    if (value.kind == json::Kind::object && value.keys.size() > kMostKeys) {
      json::fail(document.file, value,
                 fmt::format("{} keys are more than a configuration has", value.keys.size()));
    }
  };
  check(document.root);
  for (std::size_t i = 0; i < document.root.keys.size(); ++i) {
    const std::string& key = document.root.keys[i];
    if (key.size() > 6 && key.compare(key.size() - 6, 6, "config") == 0) check(document.root.items[i]);
  }
}

// Names as the zoo has them: the folder's name for a downloaded config.json, else the file's.
std::string name_of(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path file(path);
  std::string name = file.stem().string();
  if (file.filename() == "config.json" || name.empty()) {
    std::error_code ignored;
    const fs::path folder = fs::absolute(file, ignored).parent_path();
    std::string found = folder.filename().string();
    // "." and ".." name no folder: its own name does.
    if (found.empty() || found == "." || found == "..")
      found = fs::canonical(folder, ignored).filename().string();
    if (!found.empty()) name = found;
  }
  return excerpt(name);
}

}  // namespace

Model model_from_config(json::Document document, const std::string& name) {
  check_size(document);
  Config config(std::move(document));
  const std::string text_type = wrapped_type(config.type().empty() ? config.outer_type() : config.type());
  const Family* family = find_family(config.type());
  if (family == nullptr && config.nested()) family = find_family(config.outer_type());
  if (family == nullptr) family = find_family(text_type);
  // The first Mamba checkpoints name no type.
  if (config.type().empty() && config.has({"ssm_cfg"})) family = find_family("mamba_ssm");
  if (family == nullptr) refuse_encoders(config);
  refuse_cross_attention(config);
  config.set_defaults(class_defaults(text_type));
  read_hidden_size(config);
  config.set_layers(read_layer_count(config), draft_layers(config));
  try {
    return build(config, family != nullptr ? *family : unknown_family(), name, family != nullptr);
  } catch (const std::overflow_error&) {
    config.fail("its sizes multiply to more than 2^63 - 1 bytes");
  }
}

Model load_config(const std::string& path) { return model_from_config(json::load(path), name_of(path)); }

}  // namespace memwall
