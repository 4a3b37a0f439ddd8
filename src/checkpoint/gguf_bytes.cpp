#include "checkpoint/gguf_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "input/error.h"

namespace memwall {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF's numbers are copied as they stand");

constexpr std::size_t kBufferBytes = 256 << 10;

}  // namespace

GgufBytes::GgufBytes(const RegularFile& file, GgufBudget& budget)
    : file_(file), budget_(budget), buffer_(new char[kBufferBytes]) {}

std::string GgufBytes::text(std::uint64_t length) {
  if (length > static_cast<std::uint64_t>(left())) fail_at_end(length);
  keep(length);
  std::string text;
  text.reserve(static_cast<std::size_t>(length));
  while (text.size() < length) {
    if (next_ == end_) refill(1);
    const std::size_t count = std::min(end_ - next_, static_cast<std::size_t>(length) - text.size());
    text.append(buffer_.get() + next_, count);
    next_ += count;
  }
  return text;
}

void GgufBytes::skip(std::uint64_t length) {
  if (length <= end_ - next_) {
    next_ += static_cast<std::size_t>(length);
    return;
  }
  if (length > static_cast<std::uint64_t>(left())) fail_at_end(length);
  const std::int64_t target = position() + static_cast<std::int64_t>(length);
  spend(target - buffer_begin_);
  buffer_begin_ = target;
  next_ = end_ = 0;
}

void GgufBytes::keep(std::uint64_t bytes) {
  if (bytes > static_cast<std::uint64_t>(budget_.kept_bytes)) {
    fail(position(), "the header holds more names and values than any model's: 32 MiB in all are read");
  }
  budget_.kept_bytes -= static_cast<std::int64_t>(bytes);
}

void GgufBytes::fail(std::int64_t byte, const std::string& message) const {
  throw InputError(fmt::format("{}: byte {}: {}", file_.path(), byte, message));
}

void GgufBytes::refill(std::size_t needed) {
  spend(static_cast<std::int64_t>(next_));
  std::memmove(buffer_.get(), buffer_.get() + next_, end_ - next_);
  buffer_begin_ += static_cast<std::int64_t>(next_);
  end_ -= next_;
  next_ = 0;
  const std::size_t count = file_.read_at(buffer_begin_ + static_cast<std::int64_t>(end_),
                                          buffer_.get() + end_, kBufferBytes - end_);
  end_ += count;
  if (end_ < needed) fail_at_end(needed);
}

void GgufBytes::spend(std::int64_t bytes) {
  if (bytes > budget_.header_bytes) {
    fail(position(), "the header is longer than any model's: 128 MiB in all are read");
  }
  budget_.header_bytes -= bytes;
}

void GgufBytes::fail_at_end(std::uint64_t needed) const {
  fail(position(),
       fmt::format("the header needs {} bytes more, but the file ends after {}: a damaged file or an "
                   "incomplete download",
                   needed, std::max<std::int64_t>(left(), 0)));
}

}  // namespace memwall
