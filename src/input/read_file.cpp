#include "input/read_file.h"

#include <fmt/format.h>

#include "input/error.h"
#include "input/regular_file.h"

namespace memwall {

std::string read_text_file(const std::string& path, std::size_t most_bytes) {
  const RegularFile file(path);
  std::string text(most_bytes + 1, '\0');
  text.resize(file.read_at(0, text.data(), text.size()));
  if (text.size() > most_bytes) {
    throw InputError(fmt::format("{}: is longer than {} bytes; this is no such file", path, most_bytes));
  }
  return text;
}

}  // namespace memwall
