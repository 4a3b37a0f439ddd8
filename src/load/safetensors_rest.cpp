// The second half of binding: what belongs to the weights that were found, what is missing, what is left.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "format/checked.h"
#include "input/error.h"
#include "input/json.h"
#include "load/safetensors_binder.h"

namespace memwall {
namespace {

constexpr std::string_view kBias = ".bias";
constexpr int kMostDepth = 4;  // of what is inside of a weight's module

std::string key_of(const StoredModule& module) { return fmt::format("{}:{}", module.path, module.ordinal); }

bool is_integer(const StoredTensor& tensor) {
  return tensor.type == "I64" || tensor.type == "I32" || tensor.type == "I16";
}

}  // namespace

// Slots must not move afterwards, but by insert_behind, after which this is called again.
void Binder::index_bound() {
  bound_.clear();
  for (Draft& draft : drafts_) {
    for (Slot& slot : draft.slots()) {
      if (slot.stored != nullptr) bound_.emplace(key_of(*slot.stored), &slot);
    }
  }
}

Slot* Binder::owner_of(const StoredModule& bias) {
  if (const auto found = bound_.find(key_of(bias)); found != bound_.end()) return found->second;
  for (const std::string& name : bias.candidates->names) {
    const bool whole = !bias.bias;  // "gate.e_score_correction_bias": the name is the bias' own
    if (whole && !name.ends_with(kBias)) continue;
    const std::string owner = whole ? name.substr(0, name.size() - kBias.size()) : name;
    for (Draft* draft : order(*bias.candidates)) {
      Slot* slot = draft->find(owner);
      if (slot != nullptr && slot->tensor.role != Role::parameter) return slot;
    }
  }
  return nullptr;
}

void Binder::bind_bias(StoredModule& bias, Slot& owner) {
  Draft& draft = *std::find_if(drafts_.begin(), drafts_.end(), [&](Draft& one) {
    return &owner >= one.slots().data() && &owner < one.slots().data() + one.slots().size();
  });
  const std::string name = owner.tensor.name;
  for (const char* suffix : {".bias", "_bias"}) {
    Slot* slot = draft.find(name + suffix);
    if (slot == nullptr) continue;
    if (!slot->is_free()) return;
    if (fit_of(bias, slot->tensor) == Fit::none) {
      // A vocabulary's padding.
      if (owner.tensor.role != Role::lm_head) fail_shape(bias, draft, slot->tensor);
      slot->tensor.out = bias.elements();
    }
    return Draft::bind(*slot, bias);
  }
  // The configuration tells of no bias: some tools store one for every linear.
  Tensor tensor{.name = name + std::string(kBias),
                .role = Role::bias,
                .out = owner.tensor.out,
                .copies = owner.tensor.copies,
                .format = {},
                .read = owner.tensor.read};
  if (owner.tensor.role == Role::parameter || owner.tensor.role == Role::lm_head)
    tensor.out = bias.elements();
  if (fit_of(bias, tensor) == Fit::none) fail_shape(bias, draft, tensor);
  if (owner.tensor.norm != NormKind::none) owner.tensor.norm = NormKind::layer;
  Draft::bind(draft.insert_behind(owner, std::move(tensor)), bias);
  index_bound();
}

void Binder::biases() {
  index_bound();
  for (StoredModule& module : modules_.all()) {
    if (module.used) continue;
    const bool own_name =
        !module.bias && std::any_of(module.candidates->names.begin(), module.candidates->names.end(),
                                    [](const std::string& name) { return name.ends_with(kBias); });
    if (!module.bias && !own_name) continue;
    if (module.candidates->attention_itself) {
      // GPT-2's and its kin's causal mask is called the attention's bias.
      notes_.add_extra(Region::mask, module);
      module.used = true;
      continue;
    }
    if (Slot* owner = owner_of(module)) {
      bind_bias(module, *owner);
      continue;
    }
    for (const std::string& name : module.candidates->names) {
      // A module's only tensor, such as one bias for all experts.
      Slot* slot = find_slot(module, name + std::string(kBias), Fit::exact);
      if (slot == nullptr) continue;
      Draft::bind(*slot, module);
      break;
    }
  }
}

void Binder::belongings() {
  for (StoredModule& module : modules_.all()) {
    if (module.used) continue;
    // A table by token: each step reads a row of it.
    const StoredTensor& values = module.weight().main();
    if (is_integer(values) && values.shape.size() == 2 && values.shape.front() > 4096 && module.count() == 1)
      continue;
    std::string path = module.path;
    Slot* owner = nullptr;
    for (int depth = 0; owner == nullptr && depth < kMostDepth; ++depth) {
      const std::size_t dot = path.rfind('.');
      if (dot == std::string::npos) break;
      path.resize(dot);
      const auto found = bound_.find(fmt::format("{}:{}", path, module.ordinal));
      if (found != bound_.end() && is_matrix(found->second->tensor.role)) owner = found->second;
    }
    if (owner != nullptr) {
      owner->more_bytes = checked_add(owner->more_bytes, module.bytes());
      module.used = true;
    } else if (module.weight().only_scales()) {
      notes_.add_extra(Region::scales, module);
      module.used = true;
    }
  }
}

void Binder::missing() {
  for (Draft& draft : drafts_) {
    std::vector<std::string> removed;
    for (const Slot& slot : draft.slots()) {
      if (!slot.is_free()) continue;
      const Tensor& tensor = slot.tensor;
      const std::string name = draft.name_of(tensor);
      if (is_matrix(tensor.role) && tensor.role != Role::positions && tensor.read != Read::never) {
        NameList left;
        for (const StoredModule& module : modules_.all()) {
          if (!module.used && !module.bias) left.add(module.path);
        }
        const std::string rest = modules_.empty() ? std::string("; nothing is stored of it")
                                 : left.empty()
                                     ? std::string()
                                     : fmt::format("; what is not understood there: {}", left.text());
        fail(fmt::format("the configuration's {} has {}, but no tensor of that name is stored{}", place_,
                         name, rest));
      }
      notes_.removed(name);
      removed.push_back(tensor.name);
    }
    if (removed.empty()) continue;
    draft.replace(removed, {});
    for (const std::string& name : removed) {
      if (!name.ends_with(kBias)) continue;
      Slot* owner = draft.find(name.substr(0, name.size() - kBias.size()));
      if (owner != nullptr && owner->tensor.norm == NormKind::layer)
        owner->tensor.norm = NormKind::layer_no_bias;
    }
  }
}

// A layer with many of them keeps the first apart and the others as one.
void Binder::keep_unknown(StoredModule& module, std::size_t kept) {
  constexpr std::size_t kMostKept = 64;
  const StoredTensor& values = module.weight().main();
  // Tables of indices are no weights, and a step reads a row.
  if (!is_integer(values)) notes_.unknown.add(path_of(module));
  module.used = true;
  if (drafts_.empty()) drafts_.emplace_back(Block{.kind = BlockKind::shapes});
  Draft& draft = drafts_.front();
  const std::int64_t elements = module.elements();
  if (kept >= kMostKept) {
    Slot* others = draft.find("others");
    if (others == nullptr)
      others = &draft.append({.name = "others", .role = Role::parameter, .format = {}, .stored_bytes = 0});
    others->tensor.out = checked_add(others->tensor.out, elements);
    others->tensor.stored_bytes = checked_add(others->tensor.stored_bytes, module.bytes());
    return;
  }
  const WeightReading reading = read_weight(module.weight());
  Tensor tensor{
      .name = excerpt(module.path), .role = Role::parameter, .out = elements, .format = reading.format};
  if (module.bias) tensor.name += kBias;
  const bool matrix = reading.shape.size() > 1 && reading.shape.back() > 1 && elements > reading.shape.back();
  if (is_integer(values)) {
    tensor.read = Read::never;
  } else if (matrix) {
    tensor.role = Role::linear;
    tensor.in = reading.shape.back();
    tensor.out = elements / tensor.in;
  }
  Draft::bind(draft.append(std::move(tensor)), module);
}

std::vector<Block> Binder::finish() {
  std::size_t kept = 0;
  for (StoredModule& module : modules_.all()) {
    if (module.used) continue;
    // CogVLM has a second set of weights in each layer, for the tokens of images.
    if (module.path.find("vision") != std::string::npos) {
      notes_.add_extra(Region::vision, module);
    } else {
      keep_unknown(module, kept++);
    }
  }
  std::vector<Block> blocks;
  for (Draft& draft : drafts_) blocks.push_back(std::move(draft).block());
  return blocks;
}

}  // namespace memwall
