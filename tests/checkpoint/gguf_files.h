// A folder for the GGUF files of a test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "checkpoint/gguf.h"
#include "tests/checkpoint/gguf_writer.h"
#include "tests/support.h"
#include "tests/temporary_folder.h"

namespace memwall {

class GgufFiles : public testing::Test {
 protected:
  std::string path(const std::string& name = "model.gguf") const { return folder_ / name; }

  void write_bytes(std::string_view bytes) const {
    std::filesystem::remove(path());  // some file systems wait for the disk where a file is overwritten
    std::ofstream(path(), std::ios::binary) << bytes;
  }
  Gguf read(const GgufWriter& writer) const {
    writer.write(path());
    return read_gguf(path());
  }
  // The refusal of what `writer` writes, without the file's name in front.
  std::string refusal(const GgufWriter& writer) const {
    return without_path(error_of([&] { read(writer); }));
  }
  std::string refusal_of_bytes(std::string_view bytes) const {
    write_bytes(bytes);
    return without_path(error_of([&] { read_gguf(path()); }));
  }

 private:
  std::string without_path(const std::string& message) const {
    const std::string prefix = path() + ": ";
    EXPECT_TRUE(message.starts_with(prefix)) << message;
    return message.substr(std::min(prefix.size(), message.size()));
  }

  TemporaryFolder folder_;
};

}  // namespace memwall
