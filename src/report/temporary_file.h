// A file that is made under a temporary name beside its own and renamed when it is whole.
#pragma once

#include <optional>
#include <string>

#include "bench/interrupt.h"

namespace memwall {

class TemporaryFile {
 public:
  // Beside `target`, with its permissions where it exists, else those of any new file. A signal that ends the
  // process removes it. Throws std::system_error.
  explicit TemporaryFile(const std::string& target);
  ~TemporaryFile();  // removes it, unless it was renamed
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& target() const { return target_; }
  void rename_to_target();  // closes it; throws std::system_error

 private:
  std::string target_;
  std::string name_;
  int descriptor_ = -1;
  std::optional<RemovedWhenEnded> removed_;  // until it is renamed
};

}  // namespace memwall
