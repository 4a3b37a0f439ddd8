#include "huggingface/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "format/checked.h"
#include "huggingface/quantization_scheme.h"
#include "input/error.h"

namespace memwall {
namespace {

// What the patterns of one file may cost together: about half a second. Real files need 3,000,000 at most.
constexpr std::int64_t kSteps = 60'000'000;

Roles roles_of(const Tensor& tensor) {
  // One row, and DeepSeek-V4's hyper-connections: left alone as routers are.
  if (tensor.name == "shared_expert.gate" || tensor.name.ends_with("hc.fn") || tensor.name == "hc_head.fn") {
    return kRouters;
  }
  switch (tensor.role) {
    case Role::linear:
      return kLinears;
    case Role::expert:
      return kExperts;
    case Role::router:
      return kRouters;
    case Role::lm_head:
      return kHead;
    case Role::embedding:
      return kEmbedding;
    default:
      return 0;
  }
}

class Application {
 public:
  Application(QuantizationScheme scheme, const QuantizedModel& quantized, Model& model)
      : scheme_(std::move(scheme)),
        model_(model),
        names_(quantized.type),
        roots_(path_roots(quantized.type, quantized.nested)),
        used_(scheme_.rules.size(), false) {
    formats_.emplace_back();
    for (const QuantizationRule& rule : scheme_.rules) {
      auto at = std::find(formats_.begin(), formats_.end(), rule.format);
      if (at == formats_.end()) at = formats_.insert(at, rule.format);
      format_of_rule_.push_back(static_cast<std::uint16_t>(at - formats_.begin()));
    }
  }

  void run() {
    std::vector<Block> blocks;
    for (Block& block : model_.blocks) split(std::move(block), blocks);
    model_.blocks = std::move(blocks);
    if (scheme_.kv) model_.kv = *scheme_.kv;
    model_.warnings.insert(model_.warnings.end(), scheme_.warnings.begin(), scheme_.warnings.end());
    doubt();
    name_formats();
    if (!quantises()) {
      model_.warnings.push_back(fmt::format(
          "its quantization_config quantises no linear: all of them stay {}", format_name(model_.weights)));
    }
  }

 private:
  // What makes the bytes doubtful. Modules that are to have a format and that the model lacks would else go
  // unseen; those that are to stay may be a vision tower's.
  void doubt() {
    for (std::size_t r = 0; r < used_.size(); ++r) {
      const QuantizationRule& rule = scheme_.rules[r];
      if (used_[r] || !rule.format || !rule.modules || rule.modules->empty()) continue;
      scheme_.doubts.push_back(
          fmt::format("its quantization_config names modules as {} that this model does not have",
                      format_name(rule.format->format)));
    }
    if (scheme_.doubts.empty()) return;
    model_.approximate = true;
    model_.warnings.insert(model_.warnings.end(), scheme_.doubts.begin(), scheme_.doubts.end());
  }

  // A pattern that leaves out more than was meant, or a method for parts the model lacks, would else go
  // unseen.
  bool quantises() const {
    for (const Block& block : model_.blocks) {
      for (const Tensor& tensor : block.tensors) {
        const bool weight = tensor.role == Role::linear || tensor.role == Role::expert;
        if (weight && (!is_plain_float(tensor.format) || tensor.stored_bytes >= 0)) return true;
      }
    }
    return false;
  }

  using Row = std::vector<std::uint16_t>;  // of one layer: an index in formats_ for each tensor

  std::vector<Row> rows_of(const Block& block) {
    const std::size_t layers = block.layers.empty() ? 1 : block.layers.size();
    std::vector<Row> rows(layers, Row(block.tensors.size(), 0));
    for (std::size_t r = 0; r < scheme_.rules.size(); ++r) {
      QuantizationRule& rule = scheme_.rules[r];
      const auto set = [&](std::size_t layer, std::size_t tensor) {
        const Tensor& given = block.tensors[tensor];
        if ((roles_of(given) & rule.roles) == 0) return;
        used_[r] = true;
        if (!given.tied && given.in % rule.divisor == 0) rows[layer][tensor] = format_of_rule_[r];
      };
      if (rule.modules) {
        rule.modules->mark(block, names_.of(block), roots_, budget_, set);
        continue;
      }
      for (std::size_t layer = 0; layer < layers; ++layer) {
        for (std::size_t tensor = 0; tensor < block.tensors.size(); ++tensor) set(layer, tensor);
      }
    }
    return rows;
  }

  // One block for the layers whose tensors have the same formats. They stay side by side: what a layer runs
  // keeps its order.
  void split(Block block, std::vector<Block>& blocks) {
    const std::vector<Row> rows = rows_of(block);
    const std::vector<std::int32_t> layers = std::move(block.layers);
    block.layers.clear();
    std::map<Row, std::size_t> block_of;
    for (std::size_t layer = 0; layer < rows.size(); ++layer) {
      const auto [at, is_new] = block_of.try_emplace(rows[layer], blocks.size());
      if (is_new) {
        blocks.push_back(block);
        for (std::size_t tensor = 0; tensor < block.tensors.size(); ++tensor) {
          const std::optional<StoredAs>& as = formats_[rows[layer][tensor]];
          if (as) store(*as, blocks.back().tensors[tensor]);
        }
      }
      if (!layers.empty()) blocks[at->second].layers.push_back(layers[layer]);
    }
  }

  static void store(const StoredAs& as, Tensor& tensor) {
    tensor.format = as.format;
    tensor.stored_bytes = as.is_plain() ? -1 : checked_mul(as.bytes(tensor.out, tensor.in), tensor.copies);
  }

  // A tied head's format, and the model's own: the one that most of the linears' weights have, and the
  // head's.
  void name_formats() {
    std::vector<std::pair<Format, double>> weights;
    std::optional<Format> head;
    std::int64_t head_bytes = -1;
    for (Block& block : model_.blocks) {
      for (Tensor& tensor : block.tensors) {
        if (tensor.role == Role::lm_head && tensor.tied && head) {  // the embedding's
          tensor.format = *head;
          tensor.stored_bytes = head_bytes;
        }
        if (tensor.role == Role::lm_head || (tensor.role == Role::embedding && !head)) {
          head = tensor.format;
          head_bytes = tensor.stored_bytes;
        }
        if ((roles_of(tensor) & kEveryLayer) == 0) continue;
        auto at = std::find_if(weights.begin(), weights.end(),
                               [&](const auto& known) { return known.first == tensor.format; });
        if (at == weights.end()) at = weights.insert(at, {tensor.format, 0.0});
        const double layers = block.layers.empty() ? 1 : static_cast<double>(block.layers.size());
        at->second += layers * static_cast<double>(tensor.out) * static_cast<double>(tensor.in) *
                      static_cast<double>(tensor.copies);
      }
    }
    const auto most = std::max_element(weights.begin(), weights.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != weights.end()) model_.weights = most->first;
    if (head) model_.head = *head;
  }

  QuantizationScheme scheme_;
  Model& model_;
  NameTable names_;
  PathRoots roots_;
  std::vector<bool> used_;                        // by rule: some tensor is what it names
  std::vector<std::optional<StoredAs>> formats_;  // the first: as it is
  std::vector<std::uint16_t> format_of_rule_;
  ModuleList::Budget budget_{kSteps};
};

void apply(const QuantizationSection& section, const QuantizedModel& quantized, Model& model) {
  if (section.value().kind != json::Kind::object) section.fail("a quantisation is described by an object");
  try {
    QuantizationScheme scheme = read_quantization(section, quantized);
    if (const std::vector<std::string> keys = section.unasked(); !keys.empty()) {
      std::string names;
      for (const std::string& key : keys) names += (names.empty() ? "" : ", ") + excerpt(key);
      scheme.doubts.push_back(
          fmt::format("its quantization_config has keys that are not understood: {}", names));
    }
    Application(std::move(scheme), quantized, model).run();
  } catch (const std::length_error&) {
    section.fail("its lists of modules hold more patterns than are worked through");
  }
}

// mlx-lm writes its settings as "quantization", older releases there alone. Its files hold what that says,
// whatever the quantization_config of the model it was made from said.
const json::Value* settings_of(const Config& config) {
  const json::Value* mlx = config.find({"quantization"}, true);
  const bool is_mlx = mlx != nullptr && mlx->kind == json::Kind::object &&
                      mlx->find("group_size") != nullptr && mlx->find("bits") != nullptr;
  if (is_mlx) return mlx;
  return config.find({"quantization_config", "compression_config", "quantization"}, true);
}

}  // namespace

void apply_quantization(const Config& config, Model& model) {
  const json::Value* value = settings_of(config);
  const QuantizedModel quantized{.type = config.type(),
                                 .expert_dtype = config.text_or({"expert_dtype"}, ""),
                                 .dtype = model.weights,
                                 .nested = config.nested()};
  if (value != nullptr) return apply(QuantizationSection(config.file(), *value), quantized, model);
  QuantizationScheme older = read_older(config, quantized);
  if (!older.rules.empty()) return Application(std::move(older), quantized, model).run();
  model.approximate = model.approximate || !older.doubts.empty();
  model.warnings.insert(model.warnings.end(), older.doubts.begin(), older.doubts.end());
}

void apply_quantization_file(const std::string& path, Model& model) {
  apply_quantization(json::load(path), model);
}

void apply_quantization(const json::Document& document, Model& model) {
  const json::Value* inner = document.root.find("quantization");
  apply(QuantizationSection(document.file, inner != nullptr ? *inner : document.root),
        {.type = model.architecture, .expert_dtype = "", .dtype = model.weights, .nested = true}, model);
}

}  // namespace memwall
