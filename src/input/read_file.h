// Reading a small text file, with errors a person can act on.
#pragma once

#include <cstddef>
#include <string>

namespace memwall {

// The whole file. Throws InputError where it is missing, a folder, unreadable, or longer than `most_bytes`.
std::string read_text_file(const std::string& path, std::size_t most_bytes);

}  // namespace memwall
