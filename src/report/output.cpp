#include "report/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "input/error.h"

namespace memwall {

OutputFormat parse_output_format(std::string_view word) {
  if (word == "table") return OutputFormat::table;
  if (word == "json") return OutputFormat::json;
  if (word == "csv") return OutputFormat::csv;
  if (word == "md") return OutputFormat::md;
  throw InputError(fmt::format("--format: '{}' is none of table, json, csv, md", word));
}

Output::Output(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const auto refuse = [&](int error) {
    throw InputError(fmt::format("--output: {} cannot be written: {}", path_, std::strerror(error)));
  };
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) refuse(EISDIR);
  const bool is_stream_name = path_.rfind("/dev/", 0) == 0 || path_.rfind("/proc/", 0) == 0;
  if (exists && (!S_ISREG(status.st_mode) || is_stream_name)) {
    // A device or a pipe is written in place: it cannot be replaced by a file. Nor can /dev/stdout, whatever
    // standard output is.
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) refuse(errno);
    return;
  }
  if (exists && ::access(path_.c_str(), W_OK) != 0) refuse(errno);
  // Through a symbolic link to what it names, so that the link stays.
  std::error_code unresolved;
  target_ = exists ? std::filesystem::canonical(path_, unresolved).string() : path_;
  if (unresolved) refuse(unresolved.value());
  temporary_ = target_ + ".XXXXXX";
  descriptor_ = ::mkstemp(temporary_.data());
  if (descriptor_ < 0) {
    const int error = errno;
    temporary_.clear();
    refuse(error);
  }
  // mkstemp makes private files; a result is as readable as any file the user makes.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(descriptor_, exists ? status.st_mode & 0777 : 0666 & ~mask);
}

Output::~Output() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void Output::write(std::string_view text) {
  const std::string name = path_.empty() ? "standard output" : path_;
  const int descriptor = path_.empty() ? STDOUT_FILENO : descriptor_;
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw RunError(fmt::format("{} cannot be written: {}", name, std::strerror(errno)));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (temporary_.empty()) return;
  if (::close(descriptor_) != 0 || ::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    descriptor_ = -1;
    throw RunError(fmt::format("{} cannot be written: {}", name, std::strerror(error)));
  }
  descriptor_ = -1;
  temporary_.clear();
}

Style Output::style() const {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused =
      (no_color != nullptr && *no_color != '\0') || (term != nullptr && std::strcmp(term, "dumb") == 0);
  return {.colour = path_.empty() && !refused && ::isatty(STDOUT_FILENO) == 1};
}

}  // namespace memwall
