// A file opened for reading at any place: a regular one only, since reading a pipe or a device may block
// forever and has no size to check against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace memwall {

class RegularFile {
 public:
  // Throws InputError where the path is missing, unreadable, or no regular file.
  explicit RegularFile(const std::string& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }  // when it was opened

  // Fills `buffer` from `offset` on; fewer than `count` bytes only at the file's end. Throws InputError where
  // reading fails.
  std::size_t read_at(std::int64_t offset, char* buffer, std::size_t count) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace memwall
