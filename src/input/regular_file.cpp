#include "input/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "input/error.h"

namespace memwall {
namespace {

[[noreturn]] void fail_unreadable(const std::string& path, int error) {
  throw InputError(fmt::format("{}: cannot be read: {}", path, std::strerror(error)));
}

void require_regular(const std::string& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) throw InputError(fmt::format("{}: is a folder; name a file", path));
  if (!S_ISREG(status.st_mode)) throw InputError(fmt::format("{}: is a pipe or a device; name a file", path));
}

}  // namespace

RegularFile::RegularFile(const std::string& path) : path_(path) {
  struct stat status = {};
  // Asked before opening too: opening a device can already do something.
  if (stat(path.c_str(), &status) != 0) fail_unreadable(path, errno);
  require_regular(path, status);
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_unreadable(path, errno);
  try {
    if (fstat(descriptor_, &status) != 0) fail_unreadable(path, errno);
    require_regular(path, status);
  } catch (...) {
    close(descriptor_);
    throw;
  }
  size_ = status.st_size;
}

RegularFile::~RegularFile() { close(descriptor_); }

std::size_t RegularFile::read_at(std::int64_t offset, char* buffer, std::size_t count) const {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got =
        pread(descriptor_, buffer + done, count - done, offset + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_unreadable(path_, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace memwall
