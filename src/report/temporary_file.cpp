#include "report/temporary_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace memwall {
namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& target) : target_(target), name_(target + ".XXXXXX") {
  struct stat status {};
  const bool exists = ::stat(target_.c_str(), &status) == 0;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const SignalsHeld held;
  descriptor_ = ::mkostemp(name_.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail(errno, target_);
  removed_.emplace(name_);
  // mkostemp makes private files; a result is as readable as any file the user makes.
  ::fchmod(descriptor_, exists ? status.st_mode & 0777 : 0666 & ~mask);
}

TemporaryFile::~TemporaryFile() {
  const SignalsHeld held;
  if (descriptor_ >= 0) ::close(descriptor_);
  if (removed_) ::unlink(name_.c_str());
  removed_.reset();
}

void TemporaryFile::rename_to_target() {
  const SignalsHeld held;
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0 || ::rename(name_.c_str(), target_.c_str()) != 0) fail(errno, target_);
  removed_.reset();
}

}  // namespace memwall
