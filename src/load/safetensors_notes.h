// What binding a checkpoint found besides: its extras, and what the user should know.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "load/safetensors_modules.h"
#include "model/model.h"

namespace memwall {

// Names and how many there were, of which the first few are told.
class NameList {
 public:
  void add(const std::string& name);
  bool empty() const { return count_ == 0; }
  // "a, b and 3 more".
  std::string text() const;

 private:
  std::vector<std::string> first_;
  std::int64_t count_ = 0;
};

class BindingNotes {
 public:
  // Stored, but no part of a decode step.
  void add_extra(Region region, const StoredWeight& weight);
  void add_extra(Region region, const StoredModule& module);

  void removed(const std::string& name);  // in the configuration, not in the file: `name` of one layer
  NameList by_shape;                      // found by their shapes alone: "X as Y"
  NameList resized;                       // parameters of another size than the configuration makes
  NameList unknown;                       // counted as read in every step
  NameList elsewhere;                     // of extras that are not understood

  // Puts the extras in place of those that the configuration announced, and the warnings behind its own.
  void finish(Model& model) const;

 private:
  std::array<Extra, kRegions> extras_{};
  std::vector<std::pair<std::string, std::int64_t>> removed_;  // and in how many layers
};

}  // namespace memwall
