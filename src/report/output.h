// Where results go: standard output, or a file written whole or not at all.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "report/table.h"
#include "report/temporary_file.h"

namespace memwall {

enum class OutputFormat { table, json, csv, md };

// "table", "json", "csv" or "md". Throws InputError.
OutputFormat parse_output_format(std::string_view word);

class Output {
 public:
  // An empty path means standard output. A file's temporary twin is made at once, so that a path that
  // cannot be written is refused before a minute of measuring. Throws InputError.
  explicit Output(std::string path);
  ~Output();  // what was not finished leaves nothing behind
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Writes all of `text`, which others may follow. Throws RunError. Where standard output is a pipe that
  // nobody reads any more, the process ends as SIGPIPE would end it.
  void append(std::string_view text);
  // After the last of them: a file appears under its name only now. Throws RunError.
  void finish();
  bool is_file() const { return temporary_ != nullptr; }  // one that is replaced whole
  // What there is until now, whole, under the file's name, which a later text replaces: a process that is
  // killed leaves it. Of files alone. Throws RunError.
  void snapshot(std::string_view text) const;
  // One text that is all there is.
  void write(std::string_view text);

  // Colour where standard output is a terminal that can, and NO_COLOR is not set (no-color.org).
  Style style() const;

 private:
  [[noreturn]] void fail(int error) const;
  void append_to(int descriptor, std::string_view text) const;

  std::string path_;
  std::unique_ptr<TemporaryFile> temporary_;  // of a file that is replaced whole
  int descriptor_ = -1;                       // where the text goes
};

}  // namespace memwall
