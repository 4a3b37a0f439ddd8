#include "report/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "input/error.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

// A folder of its own for every test.
class OutputFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "memwall-output.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.push_back(entry.path().filename().string());
    return found;
  }

  static std::string content(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static unsigned mode(const std::string& file) {
    struct stat status {};
    EXPECT_EQ(::stat(file.c_str(), &status), 0);
    return status.st_mode & 0777;
  }

  fs::path folder_;
};

// The message of the InputError that opening the path throws.
std::string refusal(const std::string& path) {
  try {
    const Output output(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST_F(OutputFile, IsWrittenWhole) {
  const std::string text(3'000'000, 'x');
  Output output(path("result"));
  output.write(text);
  EXPECT_EQ(content(path("result")), text);
  EXPECT_EQ(names(), std::vector<std::string>{"result"});
}

TEST_F(OutputFile, AppearsOnlyWhenWritten) {
  {
    Output output(path("result"));
    EXPECT_FALSE(fs::exists(path("result")));
    EXPECT_EQ(names().size(), 1U);  // its temporary twin: the folder can be written
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(OutputFile, AnOldResultStaysUntilTheNewOneIsWhole) {
  std::ofstream(path("result")) << "old";
  { const Output output(path("result")); }
  EXPECT_EQ(content(path("result")), "old");
  Output output(path("result"));
  EXPECT_EQ(content(path("result")), "old");
  output.write("new");
  EXPECT_EQ(content(path("result")), "new");
  EXPECT_EQ(names().size(), 1U);
}

TEST_F(OutputFile, PermissionsFollowTheUmask) {
  const mode_t before = ::umask(027);
  Output(path("narrow")).write("x");
  ::umask(0);
  Output(path("wide")).write("x");
  ::umask(before);
  EXPECT_EQ(mode(path("narrow")), 0640U);
  EXPECT_EQ(mode(path("wide")), 0666U);
}

TEST_F(OutputFile, AnExistingFileKeepsItsPermissions) {
  std::ofstream(path("result")) << "old";
  fs::permissions(path("result"), fs::perms::owner_read | fs::perms::owner_write);
  Output(path("result")).write("new");
  EXPECT_EQ(mode(path("result")), 0600U);
}

TEST_F(OutputFile, GoesThroughASymbolicLink) {
  std::ofstream(path("real")) << "old";
  fs::create_symlink("real", path("link"));
  Output(path("link")).write("new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("real")), "new");
  EXPECT_EQ(names().size(), 2U);
}

TEST_F(OutputFile, RefusesWhatCannotBeWritten) {
  EXPECT_NE(refusal(path("none/result")).find("none/result cannot be written: No such file"),
            std::string::npos);
  EXPECT_NE(refusal(folder_.string()).find("cannot be written: Is a directory"), std::string::npos);
  EXPECT_NE(refusal("/proc/memwall-test"), "");
  std::ofstream(path("file")) << "x";
  EXPECT_NE(refusal(path("file/below")).find("Not a directory"), std::string::npos);
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
}

TEST_F(OutputFile, RefusesAFolderOrFileThatIsReadOnly) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  std::ofstream(path("file")) << "x";
  fs::permissions(path("file"), fs::perms::owner_read);
  EXPECT_NE(refusal(path("file")).find("Permission denied"), std::string::npos);
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_NE(refusal(path("result")).find("Permission denied"), std::string::npos);
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(OutputFile, AFullDeviceFailsTheRun) {
  Output output("/dev/full");
  EXPECT_THROW(output.write("x"), RunError);
}

TEST_F(OutputFile, ADeviceIsWrittenInPlace) {
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(::stat("/dev/null", &before), 0);
  Output("/dev/null").write("x");
  ASSERT_EQ(::stat("/dev/null", &after), 0);
  EXPECT_TRUE(S_ISCHR(after.st_mode));
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(OutputFile, ANamedPipeIsWrittenInPlace) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  Output(path("pipe")).write("text");
  char read[8] = {};
  EXPECT_EQ(::read(reader, read, sizeof read), 4);
  EXPECT_STREQ(read, "text");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST_F(OutputFile, ANameUnderDevIsWrittenInPlaceWhateverItStandsFor) {
  // As /dev/stdout is when a shell sends it to a file: a link to that file, which must not be replaced.
  const int file = ::open(path("redirected").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  const std::string name = "/dev/fd/" + std::to_string(file);
  if (!fs::exists(name)) GTEST_SKIP() << "no /dev/fd here";
  Output(name).write("text");
  char read[8] = {};
  EXPECT_EQ(::pread(file, read, sizeof read, 0), 4) << "the file was replaced under its writer";
  EXPECT_STREQ(read, "text");
  ::close(file);
  EXPECT_EQ(content(path("redirected")), "text");
  EXPECT_EQ(names().size(), 1U);
}

// A snapshot is a whole file under the name, until the next one or the end.
TEST_F(OutputFile, ASnapshotStandsUntilTheNext) {
  const std::string file = path("result");
  {
    Output output(file);
    ASSERT_TRUE(output.is_file());
    output.snapshot("one of some length");
    EXPECT_EQ(content(file), "one of some length");
    output.snapshot("two");
    EXPECT_EQ(content(file), "two");
  }
  EXPECT_EQ(content(file), "two");
  EXPECT_EQ(names(), std::vector<std::string>{"result"});
  Output output(file);
  output.snapshot("three");
  output.write("the end");
  EXPECT_EQ(content(file), "the end");
  EXPECT_FALSE(Output("/dev/null").is_file());
  EXPECT_FALSE(Output("").is_file());
}

// Behind one a signal still removes what is not finished.
TEST_F(OutputFile, ASignalBehindASnapshotLeavesIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    Output output(path("result"));
    output.snapshot("so far");
    output.append("unfinished");
    std::raise(SIGTERM);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(names(), std::vector<std::string>{"result"});
  EXPECT_EQ(content(path("result")), "so far");
}

TEST(Output, WritesToStandardOutput) {
  ::testing::internal::CaptureStdout();
  Output("").write("to the reader\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "to the reader\n");
}

TEST(Output, HasNoColourWhereItIsNoTerminal) {
  EXPECT_FALSE(Output("/dev/null").style().colour);
  ::testing::internal::CaptureStdout();  // a file
  EXPECT_FALSE(Output("").style().colour);
  ::testing::internal::GetCapturedStdout();
}

TEST(OutputFormat, FourWords) {
  EXPECT_EQ(parse_output_format("table"), OutputFormat::table);
  EXPECT_EQ(parse_output_format("json"), OutputFormat::json);
  EXPECT_EQ(parse_output_format("csv"), OutputFormat::csv);
  EXPECT_EQ(parse_output_format("md"), OutputFormat::md);
  for (const char* word : {"", "JSON", "xml", "json "})
    EXPECT_THROW(parse_output_format(word), InputError) << word;
}

}  // namespace
}  // namespace memwall
