// Finds the tensors of one layer's blocks, or of those before and after all layers, among what is stored.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "load/safetensors_draft.h"
#include "load/safetensors_modules.h"
#include "load/safetensors_notes.h"
#include "model/model.h"

namespace memwall {

class Binder {
 public:
  // `place` names them in messages: "layer 3", "the model". `file` is what the messages begin with.
  Binder(const std::string& file, std::string place, const std::vector<Block>& blocks, StoredModules& modules,
         BindingNotes& notes);

  // The steps, in this order. Each throws InputError where the shapes stored contradict the configuration.
  void by_name();  // where a module's name and shape are a tensor's
  void fuse();     // q_proj, k_proj and v_proj in place of a qkv_proj, and the other way round
  // Throws where a module has the name of a tensor that was not found, but another shape. Part of the next.
  void check_mismatches();
  void by_shape();  // linears of unknown names, where shapes leave no doubt
  void biases();
  void belongings();  // what is stored inside a bound module, scales of caches, masks
  void missing();     // throws InputError where a matrix was not found; removes norms, biases, parameters
  std::vector<Draft>& drafts() { return drafts_; }
  // What is left is counted as read in every step.
  std::vector<Block> finish();

  StoredModule* module_for(const std::string& name);  // unused, by the first of its names
  Slot* slot_for(const std::string& name);

 private:
  // The drafts that a module of these candidates is looked for in, the likeliest first.
  std::vector<Draft*> order(const Candidates& candidates);
  Slot* find_slot(const StoredModule& module, const std::string& name, Fit fit);
  bool fuse(Draft& draft, const std::string& whole, const std::vector<std::string>& parts);
  bool split(Draft& draft, const std::string& whole, const std::vector<std::string>& parts);
  std::unordered_set<std::string> free_names();
  void index_bound();
  Slot* owner_of(const StoredModule& bias);
  void bind_bias(StoredModule& bias, Slot& owner);
  void keep_unknown(StoredModule& module, std::size_t kept);
  std::string path_of(const StoredModule& module) const;
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_shape(const StoredModule& module, const Draft& draft, const Tensor& tensor) const;

  const std::string& file_;
  std::string place_;
  std::vector<Draft> drafts_;
  StoredModules& modules_;
  BindingNotes& notes_;
  std::unordered_map<std::string, Slot*> bound_;  // by the module's path and number
};

}  // namespace memwall
