// Real configurations against an independent count (shared/data/README.md); skipped where they are not at
// hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "huggingface/read_config.h"
#include "paths.h"

namespace memwall {
namespace {

const std::string kConfigs = MEMWALL_SOURCE_DIR "/../shared/data/configs";

using Row = std::map<std::string, std::string>;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

std::vector<Row> read_rows() {
  std::ifstream file(kConfigs + "/expected.csv");
  std::string line;
  std::vector<Row> rows;
  if (!std::getline(file, line)) return rows;
  const std::vector<std::string> names = cells_of(line);
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line);
    Row row;
    for (std::size_t i = 0; i < names.size() && i < cells.size(); ++i) row[names[i]] = cells[i];
    rows.push_back(row);
  }
  return rows;
}

// Of a model whose cache is 16-bit.
struct Counts {
  std::int64_t total = 0;
  std::int64_t active = 0;
  std::int64_t kv = 0;

  bool operator==(const Counts&) const = default;
};

void PrintTo(const Counts& counts, std::ostream* out) {
  *out << counts.total << " parameters, " << counts.active << " active, " << counts.kv << " B of KV a token";
}

Counts counts_of(const std::string& file) {
  Model model = load_config(kConfigs + "/hf/" + file);
  EXPECT_FALSE(model.approximate) << file;
  model.kv = KvFormat::f16;
  const ParameterCount count = count_parameters(model);
  return {count.total, count.active, kv_bytes_per_token(model)};
}

// Where the modelling code proves the table wrong.
const std::map<std::string, Counts>& corrected() {
  static const std::map<std::string, Counts> counts = {
      // GPTNeoXRewardModel has no lm_head: a linear of 2048 and its bias stand in its place.
      {"OpenAssistant__oasst-rm-2.1-pythia-1.4b.json", {1311594497, 1208604673, 196608}},
  };
  return counts;
}

TEST(RealConfigs, CountsAreExact) {
  if (!std::filesystem::exists(kConfigs)) GTEST_SKIP() << kConfigs << " is not here";
  const std::vector<Row> rows = read_rows();
  ASSERT_GT(rows.size(), 100U);
  for (const Row& row : rows) {
    const std::string& file = row.at("file");
    SCOPED_TRACE(file);
    const auto correction = corrected().find(file);
    if (correction != corrected().end()) {
      EXPECT_EQ(counts_of(file), correction->second);
      continue;
    }
    ASSERT_NE(row.at("agreement").rfind("UNSUPPORTED", 0), 0U) << "no count of its own";
    const Counts expected{std::stoll(row.at("text_parameters")), std::stoll(row.at("read_per_token_b1")),
                          std::stoll(row.at("kv_bytes_per_token_16bit"))};
    EXPECT_EQ(counts_of(file), expected);
  }
}

// None of them has a key that the reader ought to know.
TEST(RealConfigs, HaveNoUnreadSizes) {
  if (!std::filesystem::exists(kConfigs)) GTEST_SKIP() << kConfigs << " is not here";
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs + "/hf")) {
    if (entry.path().extension() != ".json") continue;
    for (const std::string& warning : load_config(entry.path().string()).warnings)
      EXPECT_EQ(warning.find("is known, but not with"), std::string::npos) << entry.path() << warning;
  }
}

}  // namespace
}  // namespace memwall
