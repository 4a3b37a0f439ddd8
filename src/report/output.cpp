#include "report/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
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
  if (path_.empty()) {
    descriptor_ = STDOUT_FILENO;
    return;
  }
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
  const std::string target = exists ? std::filesystem::canonical(path_, unresolved).string() : path_;
  if (unresolved) refuse(unresolved.value());
  try {
    temporary_ = std::make_unique<TemporaryFile>(target);
  } catch (const std::system_error& error) {
    refuse(error.code().value());
  }
  descriptor_ = temporary_->descriptor();
}

Output::~Output() {
  if (!temporary_ && !path_.empty()) ::close(descriptor_);
}

void Output::fail(int error) const {
  if (path_.empty() && error == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw RunError(fmt::format("{} cannot be written: {}", path_.empty() ? "standard output" : path_,
                             std::strerror(error)));
}

void Output::append(std::string_view text) { append_to(descriptor_, text); }

void Output::append_to(int descriptor, std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Output::finish() {
  if (!temporary_) return;
  try {
    temporary_->rename_to_target();
  } catch (const std::system_error& error) {
    fail(error.code().value());
  }
}

void Output::write(std::string_view text) {
  append(text);
  finish();
}

void Output::snapshot(std::string_view text) const {
  try {
    TemporaryFile file(temporary_->target());
    append_to(file.descriptor(), text);
    file.rename_to_target();
  } catch (const std::system_error& error) {
    fail(error.code().value());
  }
}

Style Output::style() const {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused =
      (no_color != nullptr && *no_color != '\0') || (term != nullptr && std::strcmp(term, "dumb") == 0);
  return {.colour = path_.empty() && !refused && ::isatty(STDOUT_FILENO) == 1};
}

}  // namespace memwall
