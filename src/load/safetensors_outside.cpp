#include "load/safetensors_outside.h"

#include <utility>

#include "input/json.h"
#include "load/safetensors_binder.h"

namespace memwall {
namespace {

constexpr const char* kEmbedding = "embed_tokens";
constexpr const char* kHead = "lm_head";

// A tied head is the embedding. Some files store it again, some store it under the head's name alone, and
// some have no head though the configuration does not say that it is tied.
void settle_head(Binder& binder, BindingNotes& notes, Model& model) {
  Slot* head = binder.slot_for(kHead);
  if (head == nullptr) return;
  StoredModule* stored = binder.module_for(kHead);
  StoredModule* embedding = binder.module_for(kEmbedding);
  if (head->tensor.tied && stored != nullptr) {
    if (embedding != nullptr) {
      notes.add_extra(Region::head_copy, *stored);
      stored->used = true;
    } else if (Slot* table = binder.slot_for(kEmbedding);
               table != nullptr && fit_of(*stored, table->tensor) != Fit::none) {
      Draft::bind(*table, *stored);
    }
  } else if (!head->tensor.tied && stored == nullptr && embedding != nullptr) {
    head->tensor.tied = true;
    model.warnings.emplace_back("no lm_head is stored: the embedding is taken for it");
  }
}

// A further table of rows by token, such as Gemma 3n's per-layer embeddings: a step reads a row.
void take_tables(Binder& binder, StoredModules& modules) {
  Draft& draft = binder.drafts().front();
  for (StoredModule& module : modules.all()) {
    const bool embeds = module.path.find("embed") != std::string::npos || module.path.starts_with("wte");
    if (module.used || module.bias || !embeds || module.path.find("norm") != std::string::npos) continue;
    const WeightReading reading = read_weight(module.weight());
    constexpr std::int64_t kFewestRows = 64;  // of what is no projection of a few channels
    if (reading.shape.size() != 2 || reading.shape.front() < kFewestRows || reading.shape.back() < 1 ||
        module.count() > 1) {
      continue;
    }
    Slot& slot = draft.append({.name = excerpt(module.path),
                               .role = Role::embedding,
                               .out = reading.shape.front(),
                               .in = reading.shape.back(),
                               .format = reading.format,
                               .read = Read::gathered});
    Draft::bind(slot, module);
  }
}

}  // namespace

OutsideBlocks bind_outside(const std::string& file, const Block& embedding, const Block& head,
                           StoredModules& modules, BindingNotes& notes, Model& model) {
  Binder binder(file, "model", {embedding, head}, modules, notes);
  settle_head(binder, notes, model);
  binder.by_name();
  binder.check_mismatches();
  binder.biases();
  binder.belongings();
  take_tables(binder, modules);
  binder.missing();

  // What is left is read in every step, where the head is.
  std::swap(binder.drafts().front(), binder.drafts().back());
  std::vector<Block> blocks = binder.finish();
  OutsideBlocks result{.embedding = std::move(blocks.back()), .head = std::move(blocks.front())};
  const Tensor* table = result.embedding.find(kEmbedding);
  for (Tensor& tensor : result.head.tensors) {
    if (table == nullptr || tensor.role != Role::lm_head || !tensor.tied) continue;
    tensor.out = table->out;
    tensor.format = table->format;
    tensor.stored_bytes = table->stored_bytes;
  }
  return result;
}

}  // namespace memwall
