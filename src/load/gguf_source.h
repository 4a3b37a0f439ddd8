// The metadata of a GGUF file as the builders of a model's blocks ask for them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf.h"
#include "load/gguf_architectures.h"
#include "model/model.h"

namespace memwall {

inline constexpr std::int64_t kMostGgufSize = std::int64_t{1} << 31;  // of a width or a number of things
inline constexpr Range kGgufSize{1, kMostGgufSize};
inline constexpr Range kGgufCount{0, kMostGgufSize};  // where zero means that there is none

class GgufSource {
 public:
  // Throws InputError where the file holds no language model.
  explicit GgufSource(const Gguf& file);

  const Gguf& file() const { return file_; }
  const std::string& name() const { return name_; }                        // of the architecture
  const GgufArchitecture& architecture() const { return *architecture_; }  // for an unknown one: none's
  bool is_known() const { return known_; }
  std::int64_t hidden_size() const { return hidden_size_; }
  std::int32_t blocks() const { return blocks_; }  // of the file, those for multi-token prediction included
  std::int32_t layers() const { return layers_; }  // that a decode step runs
  NormKind norm() const { return norm_; }          // of those that have a bias, where it is layer

  // Keys are named without the architecture in front.
  std::string key(std::string_view suffix) const { return name_ + "." + std::string(suffix); }
  bool has(std::string_view suffix) const { return file_.has(key(suffix)); }
  std::int64_t integer(std::string_view suffix, Range range = kGgufSize) const;
  std::int64_t integer_or(std::string_view suffix, std::int64_t fallback, Range range = kGgufCount) const;
  // A layer's value of a key that holds one for all layers or a list of one each.
  std::int64_t at(std::string_view suffix, std::int32_t layer, Range range = kGgufSize) const;
  std::int64_t at_or(std::string_view suffix, std::int32_t layer, std::int64_t fallback,
                     Range range = kGgufCount) const;

  // What layer `layer` reads back: a window or a chunk, or neither.
  struct Reach {
    std::int64_t window = 0;
    std::int64_t chunk = 0;
    bool is_bounded() const { return window > 0 || chunk > 0; }
  };
  Reach reach(std::int32_t layer) const;
  bool is_rotary(std::int32_t layer) const;

  // Throws InputError "FILE: message".
  [[noreturn]] void fail(const std::string& message) const;

 private:
  void check_kind() const;
  void read_architecture();
  // Throws InputError where it is a list of another length than the layers'.
  const std::vector<std::int64_t>& values(std::string_view suffix, Range range) const;
  bool slides(std::int32_t layer) const;

  const Gguf& file_;
  std::string name_;
  const GgufArchitecture* architecture_ = nullptr;
  bool known_ = true;
  std::int64_t hidden_size_ = 0;
  std::int32_t blocks_ = 0;
  std::int32_t layers_ = 0;
  NormKind norm_ = NormKind::rms;
  std::int64_t window_ = 0;
  mutable std::map<std::string, std::vector<std::int64_t>> lists_;  // each checked and copied once
};

}  // namespace memwall
