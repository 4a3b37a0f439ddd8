// The bytes of a GGUF header, read once from front to back; and what reading them may cost.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "input/printable.h"
#include "input/regular_file.h"

namespace memwall {

// What all the headers of a model may still take. The largest published ones hold 20 MB, nearly all of it
// a vocabulary that is skipped, and 2,000 tensors.
struct GgufBudget {
  std::int64_t header_bytes = std::int64_t{128} << 20;
  std::int64_t kept_bytes = std::int64_t{32} << 20;
  std::int64_t tensors = 200'000;
};

class GgufBytes {
 public:
  GgufBytes(const RegularFile& file, GgufBudget& budget);

  std::int64_t position() const { return buffer_begin_ + static_cast<std::int64_t>(next_); }
  std::int64_t left() const { return file_.size() - position(); }

  // The next little-endian number. Throws InputError at the end of the file, as all that follow.
  template <typename T>
  T number() {
    T value;
    if (end_ - next_ < sizeof(T)) refill(sizeof(T));
    std::memcpy(&value, buffer_.get() + next_, sizeof(T));
    next_ += sizeof(T);
    return value;
  }

  std::string text(std::uint64_t length);  // counts as kept
  void skip(std::uint64_t length);
  void keep(std::uint64_t bytes);  // takes them from the budget

  // Throws InputError "FILE: byte N: message".
  [[noreturn]] void fail(std::int64_t byte, const std::string& message) const;

 private:
  void refill(std::size_t needed);
  void spend(std::int64_t bytes);
  [[noreturn]] void fail_at_end(std::uint64_t needed) const;

  const RegularFile& file_;
  GgufBudget& budget_;
  std::unique_ptr<char[]> buffer_;
  std::int64_t buffer_begin_ = 0;  // in the file
  std::size_t next_ = 0;           // in the buffer
  std::size_t end_ = 0;
};

}  // namespace memwall
