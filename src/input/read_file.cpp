#include "input/read_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "input/error.h"

namespace memwall {

std::string read_text_file(const std::string& path, std::size_t most_bytes) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) {
    throw InputError(fmt::format("{}: is a folder; name a file", path));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw InputError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno == 0 ? EIO : errno)));
  }
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) throw InputError(fmt::format("{}: cannot be read: input error", path));
  if (text.size() > most_bytes) {
    throw InputError(fmt::format("{}: is longer than {} bytes; this is no such file", path, most_bytes));
  }
  return text;
}

}  // namespace memwall
