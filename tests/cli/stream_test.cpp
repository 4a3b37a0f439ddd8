// Grids: written one result at a time, refused where they are too large, the same document as ever.
#include "cli/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "input/error.h"
#include "report/rows.h"
#include "tests/checkpoint/safetensors_writer.h"
#include "tests/cli/process.h"

namespace memwall {
namespace {

using ::testing::HasSubstr;

JsonSequence sequence(const std::vector<Json>& items) {
  return [=](const std::function<void(const Json&)>& take) {
    for (const Json& item : items) take(item);
  };
}

std::string streamed(const std::vector<Json>& items, const Json& document) {
  const TemporaryFolder folder;
  Output output(folder / "o.json");
  write_json(output, document, "results", sequence(items));
  return content_of(folder / "o.json");
}

TEST(Stream, JsonIsTheWholeDocumentByteByByte) {
  Json empty;
  empty["schema"] = "memwall.estimate/1";
  empty["trap"] = "\n  \"results\": []";
  empty["nested"] = {{"results", Json::array()}};
  empty["results"] = Json::array();
  empty["warnings"] = Json::array();
  const std::vector<Json> items = {
      {{"a", 1}, {"b", {{"c", "x\ny"}}}}, Json::array({1, 2}), 7, Json::object()};
  EXPECT_EQ(streamed({}, empty), empty.dump(2) + "\n");
  Json whole = empty;
  whole["results"] = items;
  EXPECT_EQ(streamed(items, empty), whole.dump(2) + "\n");
}

TEST(Stream, RowsHaveTheColumnsOfAllOfThem) {
  const std::vector<Json> rows = {{{"a", 1}}, {{"a", "x"}, {"b", 2}}};
  const TemporaryFolder folder;
  Output csv(folder / "o.csv");
  write_rows(csv, OutputFormat::csv, sequence(rows));
  EXPECT_EQ(content_of(folder / "o.csv"), "a,b\n1,\nx,2\n");
  Output md(folder / "o.md");
  write_rows(md, OutputFormat::md, sequence(rows));
  EXPECT_EQ(content_of(folder / "o.md"), to_markdown(rows));
}

TEST(Stream, TooManyCombinationsAreRefusedWithTheirCount) {
  EXPECT_NO_THROW(require_combinations({{"batches", 100}, {"contexts", 100}}, 10'000, "a table"));
  const auto message = [](const std::vector<ListLength>& lists) -> std::string {
    try {
      require_combinations(lists, 10'000, "a table");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(
      message({{"cards", 1}, {"batches", 101}, {"contexts", 100}}),
      "10,100 results (101 batches × 100 contexts) are more than the 10,000 that a table takes at once; ask "
      "for fewer");
  const std::size_t large = std::size_t{1} << 32;  // the product wraps to 0 in 64 bits
  EXPECT_THAT(message({{"batches", large}, {"contexts", large}}),
              HasSubstr("18,446,744,073,709,551,616 results"));
}

std::string list_to(int most) {
  std::string list = "1";
  for (int i = 2; i <= most; ++i) list += "," + std::to_string(i);
  return list;
}

TEST(Grids, AreRefusedBeforeTheModelIsRead) {
  const std::string many = list_to(4000);
  const Finished csv =
      run("estimate no-such-model --card h200 --format csv --batch " + many + " --context " + many);
  expect_refused(csv, "csv");
  EXPECT_THAT(csv.err,
              HasSubstr("16,000,000 results (4,000 batches × 4,000 contexts) are more than the 10,000,000"));
  const Finished table =
      run("estimate no-such-model --card h200 --batch " + list_to(101) + " --context " + list_to(100));
  expect_refused(table, "table");
  EXPECT_THAT(table.err, HasSubstr("10,100 results"));
  const Finished measure =
      run("measure no-such-model --batch " + list_to(2000) + " --context " + list_to(2000));
  expect_refused(measure, "measure");
  EXPECT_THAT(measure.err, HasSubstr("4002000 workloads"));
}

// 40,000 results were 150 MB as a whole.
TEST(Grids, TakeNoMoreMemoryThanTheirLists) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer maps terabytes";
#endif
  const std::string many = list_to(200);
  for (const std::string format : {"csv", "md", "json"}) {
    ::setenv("MEMWALL_DATA", MEMWALL_SOURCE_DIR, 1);
    const Finished done =
        Process({"sh", "-c",
                 "ulimit -v 120000; exec \"$0\" estimate llama-3.2-1b --card h200 --format " + format +
                     " --batch " + many + " --context " + many,
                 MEMWALL_EXECUTABLE})
            .wait();
    EXPECT_EQ(done.status, 0) << format << done.err;
    if (format == "csv") {
      EXPECT_EQ(lines_of(done.out).size(), 40'001U);
    }
    if (format == "md") {
      EXPECT_EQ(lines_of(done.out).size(), 40'002U);
    }
    if (format == "json") {
      EXPECT_EQ(Json::parse(done.out)["results"].size(), 40'000U);
    }
  }
}

// 100,000 tensors were 80 MB more as a whole.
TEST(BareCheckpoints, TakeNoMoreMemoryThanTheirHeaders) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer maps terabytes";
#endif
  const TemporaryFolder folder;
  SafetensorsWriter file;
  for (int i = 0; i < 100'000; ++i) file.add("t" + std::to_string(i), "F32", {1, 2});
  file.write(folder / "model.safetensors");
  for (const std::string format : {"csv", "json"}) {
    const Finished done =
        Process({"sh", "-c", "ulimit -v 120000; exec \"$0\" inspect --format " + format + " \"$1\"",
                 MEMWALL_EXECUTABLE, folder / "model.safetensors"})
            .wait();
    EXPECT_EQ(done.status, 0) << format << done.err;
    if (format == "csv") {
      EXPECT_EQ(lines_of(done.out).size(), 100'001U);
      EXPECT_EQ(lines_of(done.out)[1], "t0,1x2,F32,8");
      continue;
    }
    const Json json = Json::parse(done.out);
    ASSERT_EQ(json["tensors"].size(), 100'000U);
    EXPECT_EQ(json["tensors"][0], Json({{"name", "t0"}, {"shape", {1, 2}}, {"type", "F32"}, {"bytes", 8}}));
  }
}

TEST(Grids, HelpThatCannotBeWrittenIsAnErrorToo) {
  const Finished done = Process({"sh", "-c", "exec \"$0\" --help >/dev/full", MEMWALL_EXECUTABLE}).wait();
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.err, HasSubstr("standard output cannot be written"));
}

}  // namespace
}  // namespace memwall
