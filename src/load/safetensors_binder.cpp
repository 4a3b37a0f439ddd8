#include "load/safetensors_binder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "format/checked.h"
#include "input/error.h"
#include "input/json.h"

namespace memwall {
namespace {

// Norms before the feed-forward come first: where there is one, post_attention_layernorm is another.
bool goes_first(const StoredModule& module) { return module.path.starts_with("pre_"); }

}  // namespace

Binder::Binder(const std::string& file, std::string place, const std::vector<Block>& blocks,
               StoredModules& modules, BindingNotes& notes)
    : file_(file), place_(std::move(place)), modules_(modules), notes_(notes) {
  for (const Block& block : blocks) drafts_.emplace_back(block);
}

void Binder::fail(const std::string& message) const {
  throw InputError(fmt::format("{}: {}", file_, message));
}

std::string Binder::path_of(const StoredModule& module) const { return excerpt(module.weight().main().name); }

void Binder::fail_shape(const StoredModule& module, const Draft& draft, const Tensor& tensor) const {
  const std::string wanted =
      fmt::format("the configuration makes {} of {} {}", draft.name_of(tensor), place_, shape_text(tensor));
  const std::int64_t count = module.count();
  if (count > 1 && tensor.copies > 1 && count != tensor.copies)
    fail(fmt::format("{} has {} of '{}', but {}", place_, count, excerpt(module.path), wanted));
  const WeightHint hint{.elements = 0, .in = is_matrix(tensor.role) ? tensor.in : 0};
  const WeightReading reading = read_weight(module.weight(), hint);
  const std::string shape =
      reading.shape.empty() ? fmt::format("{} values", reading.elements) : shape_text(reading.shape);
  fail(fmt::format("'{}' is {}{}, but {}", path_of(module), shape,
                   count > 1 ? fmt::format(" in {} tensors", count) : "", wanted));
}

std::vector<Draft*> Binder::order(const Candidates& candidates) {
  std::vector<Draft*> drafts;
  for (Draft& draft : drafts_) drafts.push_back(&draft);
  if (candidates.side == Side::any) return drafts;
  std::stable_partition(drafts.begin(), drafts.end(), [&](const Draft* draft) {
    return draft->feeds() == (candidates.side == Side::feeding);
  });
  return drafts;
}

Slot* Binder::find_slot(const StoredModule& module, const std::string& name, Fit fit) {
  std::int32_t before = 0;  // of the same name
  for (Draft* draft : order(*module.candidates)) {
    Slot* slot = draft->find(name);
    if (slot == nullptr) continue;
    if (module.ordinal >= 0 && before++ != module.ordinal) continue;
    if (slot->is_free() && fit_of(module, slot->tensor) == fit) return slot;
  }
  return nullptr;
}

std::unordered_set<std::string> Binder::free_names() {
  std::unordered_set<std::string> names;
  for (Draft& draft : drafts_) {
    for (const Slot& slot : draft.slots()) {
      if (slot.is_free()) names.insert(slot.tensor.name);
    }
  }
  return names;
}

void Binder::by_name() {
  std::vector<StoredModule*> modules;
  for (StoredModule& module : modules_.all()) {
    if (!module.used && !module.bias && !module.weight().only_scales()) modules.push_back(&module);
  }
  std::stable_partition(modules.begin(), modules.end(),
                        [](const StoredModule* module) { return goes_first(*module); });
  const std::unordered_set<std::string> free = free_names();
  for (const Fit fit : {Fit::exact, Fit::loose}) {
    for (StoredModule* module : modules) {
      if (module->used) continue;
      for (const std::string& name : module->candidates->names) {
        if (!free.contains(name)) continue;
        Slot* slot = find_slot(*module, name, fit);
        if (slot == nullptr) continue;
        if (fit == Fit::loose && !is_matrix(slot->tensor.role)) notes_.resized.add(path_of(*module));
        Draft::bind(*slot, *module);
        break;
      }
    }
  }
}

StoredModule* Binder::module_for(const std::string& name) {
  for (StoredModule& module : modules_.all()) {
    if (!module.used && !module.bias && module.may_be(name)) return &module;
  }
  return nullptr;
}

Slot* Binder::slot_for(const std::string& name) {
  for (Draft& draft : drafts_) {
    if (Slot* slot = draft.find(name)) return slot;
  }
  return nullptr;
}

void Binder::fuse() {
  const bool anything = std::any_of(modules_.all().begin(), modules_.all().end(),
                                    [](const StoredModule& module) { return !module.used && !module.bias; });
  if (!anything) return;
  for (Draft& draft : drafts_) {
    for (const std::string& prefix : fusion_prefixes()) {
      for (const Fusion& fusion : fusions()) {
        std::vector<std::string> parts;
        for (const char* part : fusion.parts) parts.push_back(prefix + part);
        if (!fuse(draft, prefix + fusion.whole, parts)) split(draft, prefix + fusion.whole, parts);
      }
    }
  }
}

// One stored tensor for several of the configuration's.
bool Binder::fuse(Draft& draft, const std::string& whole, const std::vector<std::string>& parts) {
  const Slot* first = draft.find(parts.front());
  if (first == nullptr) return false;
  Tensor fused = first->tensor;
  fused.name = whole;
  fused.out = 0;
  bool bias = false;
  std::vector<std::string> replaced = parts;
  for (const std::string& part : parts) {
    const Slot* slot = draft.find(part);
    if (slot == nullptr || !slot->is_free() || slot->tensor.in != fused.in) return false;
    fused.out = checked_add(fused.out, slot->tensor.out);
    bias = bias || draft.find(part + ".bias") != nullptr;
    replaced.push_back(part + ".bias");
  }
  StoredModule* module = module_for(whole);
  if (module == nullptr) return false;
  if (fit_of(*module, fused) == Fit::none) fail_shape(*module, draft, fused);
  std::vector<Tensor> tensors{fused};
  if (bias) {
    tensors.push_back({.name = whole + ".bias",
                       .role = Role::bias,
                       .out = fused.out,
                       .copies = fused.copies,
                       .format = fused.format,
                       .read = fused.read});
  }
  draft.replace(replaced, std::move(tensors));
  Draft::bind(*draft.find(whole), *module);
  return true;
}

// Several stored tensors for one of the configuration's.
bool Binder::split(Draft& draft, const std::string& whole, const std::vector<std::string>& parts) {
  const Slot* slot = draft.find(whole);
  if (slot == nullptr || !slot->is_free()) return false;
  const Tensor fused = slot->tensor;
  const std::int64_t columns = checked_mul(fused.in, fused.copies);
  const auto count = static_cast<std::int64_t>(parts.size());
  std::vector<Tensor> tensors;
  std::vector<StoredModule*> modules;
  std::int64_t rows = 0;
  for (const std::string& part : parts) {
    StoredModule* module = module_for(part);
    if (module == nullptr || std::find(modules.begin(), modules.end(), module) != modules.end()) return false;
    // Halves are alike: their packing can be told from how many values they should hold.
    const std::int64_t elements =
        count == 2 && parts.back().ends_with("up_proj") ? fused.elements() / count : 0;
    Tensor tensor = fused;
    tensor.name = part;
    if (columns > 0)
      tensor.out = elements_in(*module, elements, is_matrix(fused.role) ? fused.in : 0) / columns;
    rows = checked_add(rows, tensor.out);
    tensors.push_back(std::move(tensor));
    modules.push_back(module);
  }
  if (rows != fused.out) fail_shape(*modules.front(), draft, fused);
  draft.replace({whole, whole + ".bias"}, std::move(tensors));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Slot& part = *draft.find(parts[i]);
    if (fit_of(*modules[i], part.tensor) == Fit::none) fail_shape(*modules[i], draft, part.tensor);
    Draft::bind(part, *modules[i]);
  }
  return true;
}

// A module of a tensor's name whose shape was not the tensor's.
void Binder::check_mismatches() {
  const std::unordered_set<std::string> free = free_names();
  for (StoredModule& module : modules_.all()) {
    if (module.used || module.bias || module.weight().only_scales()) continue;
    for (const std::string& name : module.candidates->names) {
      if (!free.contains(name)) continue;
      for (Draft* draft : order(*module.candidates)) {
        const Slot* slot = draft->find(name);
        if (slot != nullptr && slot->is_free()) fail_shape(module, *draft, slot->tensor);
      }
    }
  }
}

void Binder::by_shape() {
  check_mismatches();
  constexpr std::size_t kMostCompared = 256;
  std::vector<StoredModule*> modules;
  for (StoredModule& module : modules_.all()) {
    if (!module.used && !module.bias && modules.size() < kMostCompared) modules.push_back(&module);
  }
  for (Draft& draft : drafts_) {
    for (const Slot& wanted : draft.slots()) {
      if (!wanted.is_free() || !is_matrix(wanted.tensor.role)) continue;
      const Tensor like = wanted.tensor;
      std::vector<Slot*> slots;
      for (Draft& other : drafts_) {
        for (Slot& slot : other.slots()) {
          const Tensor& tensor = slot.tensor;
          if (slot.is_free() && tensor.role == like.role && tensor.out == like.out && tensor.in == like.in &&
              tensor.copies == like.copies) {
            slots.push_back(&slot);
          }
        }
      }
      std::vector<StoredModule*> fitting;
      for (StoredModule* module : modules) {
        if (!module->used && fit_of(*module, like) == Fit::exact) fitting.push_back(module);
      }
      if (fitting.size() != slots.size()) continue;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        notes_.by_shape.add(fmt::format("{} as {}", path_of(*fitting[i]), slots[i]->tensor.name));
        Draft::bind(*slots[i], *fitting[i]);
      }
    }
  }
}

}  // namespace memwall
