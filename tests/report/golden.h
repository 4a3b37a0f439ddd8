// Whole outputs compared with files under tests/data/golden. MEMWALL_UPDATE_GOLDEN=1 writes them anew: read
// the difference before committing it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "paths.h"

namespace memwall {

inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(MEMWALL_TEST_DATA "/golden/") + name;
  const char* update = std::getenv("MEMWALL_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::ofstream out(path, std::ios::binary);
    out << text;
    ASSERT_TRUE(out.flush()) << path << " cannot be written";
    return;
  }
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in) << path << " is missing; MEMWALL_UPDATE_GOLDEN=1 writes it";
  const std::string golden{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text, golden) << path << "; MEMWALL_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace memwall
