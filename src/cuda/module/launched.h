// Which kernels ran since the host last waited: a kernel that fails is noticed only then.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace memwall::cuda {

// "ReadKernel<4>" of the compiler's name of a function whose template argument Kernel it is.
inline std::string kernel_name(std::string_view pretty) {
  const std::string_view before = "Kernel = ";
  if (const auto at = pretty.find(before); at != std::string_view::npos) {
    pretty.remove_prefix(at + before.size());
    pretty = pretty.substr(0, pretty.find_first_of(";]"));
  }
  std::string name(pretty);
  const std::string_view space = "memwall::cuda::";
  for (auto at = name.find(space); at != std::string::npos; at = name.find(space))
    name.erase(at, space.size());
  return name;
}

// Cheap enough for every launch: it keeps pointers to names that live as long as the program, the last few
// distinct ones.
class Launched {
 public:
  void add(const char* name) {
    for (const char* known : names_)
      if (known == name) return;
    names_[next_] = name;
    next_ = (next_ + 1) % names_.size();
  }
  void clear() { names_ = {}; }
  // " in one of: ReadKernel<4>, cublas gemmEx"; empty where nothing was launched.
  std::string words() const {
    std::string words;
    for (const char* name : names_) {
      if (name == nullptr) continue;
      words += words.empty() ? "" : ", ";
      words += kernel_name(name);
    }
    return words.empty() ? words : " in one of: " + words;
  }

 private:
  std::array<const char*, 8> names_{};
  std::size_t next_ = 0;
};

}  // namespace memwall::cuda
