#include "huggingface/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

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
  Application(QuantizationScheme scheme, Model& model) : scheme_(std::move(scheme)), model_(model) {
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
    name_formats();
    if (!quantises()) {
      model_.warnings.push_back(fmt::format(
          "its quantization_config quantises no linear: all of them stay {}", format_name(model_.weights)));
    }
  }

 private:
  // A pattern that leaves out more than was meant, or a method for parts the model lacks, would else go
  // unseen.
  bool quantises() const {
    for (const Block& block : model_.blocks) {
      for (const Tensor& tensor : block.tensors) {
        const bool weight = tensor.role == Role::linear || tensor.role == Role::expert;
        if (weight && !is_plain_float(tensor.format)) return true;
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
        const bool applies = (roles_of(block.tensors[tensor]) & rule.roles) != 0;
        if (applies && !block.tensors[tensor].tied) rows[layer][tensor] = format_of_rule_[r];
      };
      if (rule.modules) {
        rule.modules->mark(block, names_.of(block), budget_, set);
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
          const std::optional<Format>& format = formats_[rows[layer][tensor]];
          if (!format) continue;
          blocks.back().tensors[tensor].format = *format;
          blocks.back().tensors[tensor].stored_bytes = -1;
        }
      }
      if (!layers.empty()) blocks[at->second].layers.push_back(layers[layer]);
    }
  }

  // A tied head's format, and the model's own: the one that most of the linears' weights have, and the
  // head's.
  void name_formats() {
    std::vector<std::pair<Format, double>> weights;
    std::optional<Format> head;
    for (Block& block : model_.blocks) {
      for (Tensor& tensor : block.tensors) {
        if (tensor.role == Role::lm_head && tensor.tied && head) tensor.format = *head;  // the embedding's
        if (tensor.role == Role::lm_head || (tensor.role == Role::embedding && !head)) head = tensor.format;
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
  std::vector<std::optional<Format>> formats_;  // the first: as it is
  std::vector<std::uint16_t> format_of_rule_;
  NameTable names_;
  ModuleList::Budget budget_{kSteps};
};

void apply(const QuantizationSection& section, const QuantizedModel& quantized, Model& model) {
  if (section.value().kind != json::Kind::object) section.fail("a quantisation is described by an object");
  try {
    Application(read_quantization(section, quantized), model).run();
  } catch (const std::length_error&) {
    section.fail("its lists of modules hold more patterns than are worked through");
  }
}

}  // namespace

void apply_quantization(const Config& config, Model& model) {
  const json::Value* value = config.find({"quantization_config", "compression_config"}, true);
  if (value == nullptr) return;
  QuantizedModel quantized{.type = config.type(), .expert_dtype = config.text_or({"expert_dtype"}, "")};
  apply(QuantizationSection(config.file(), *value), quantized, model);
}

void apply_quantization_file(const std::string& path, Model& model) {
  apply_quantization(json::load(path), model);
}

void apply_quantization(const json::Document& document, Model& model) {
  const json::Value* inner = document.root.find("quantization");
  apply(QuantizationSection(document.file, inner != nullptr ? *inner : document.root),
        {.type = model.architecture, .expert_dtype = ""}, model);
}

}  // namespace memwall
