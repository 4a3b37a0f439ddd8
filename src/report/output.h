// Where results go: standard output, or a file written whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "report/table.h"

namespace memwall {

enum class OutputFormat { table, json, csv, md };

// "table", "json", "csv" or "md". Throws InputError.
OutputFormat parse_output_format(std::string_view word);

class Output {
 public:
  // An empty path means standard output. A file's temporary twin is made at once, so that a path that
  // cannot be written is refused before a minute of measuring. Throws InputError.
  explicit Output(std::string path);
  ~Output();  // what was not written leaves nothing behind
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Writes all of `text`; a file appears under its name only then. Throws RunError.
  void write(std::string_view text);

  // Colour where standard output is a terminal that can, and NO_COLOR is not set (no-color.org).
  Style style() const;

 private:
  std::string path_;
  std::string target_;  // the file itself, where path_ is a symbolic link to it
  std::string temporary_;
  int descriptor_ = -1;
};

}  // namespace memwall
