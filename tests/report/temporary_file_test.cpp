#include "report/temporary_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <system_error>
#include <vector>

#include "tests/temporary_folder.h"

namespace memwall {
namespace {

// What a child that holds a temporary file and gets the signals ended by.
int signal_that_ended(const std::string& target, const std::vector<int>& signals, bool guarded) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const TemporaryFile file(target);
    {
      const std::optional<InterruptGuard> guard =
          guarded ? std::optional<InterruptGuard>(std::in_place) : std::nullopt;
      for (const int signal : signals) ::raise(signal);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(TemporaryFile, SignalsThatEndTheProcessRemoveIt) {
  const TemporaryFolder folder;
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    EXPECT_EQ(signal_that_ended(folder / "x", {signal}, false), signal);
    EXPECT_EQ(folder.names(), std::vector<std::string>{}) << signal;
  }
}

TEST(TemporaryFile, UnderAGuardTheSecondSignalRemovesIt) {
  const TemporaryFolder folder;
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    EXPECT_EQ(signal_that_ended(folder / "x", {signal, signal}, true), signal);
    EXPECT_EQ(folder.names(), std::vector<std::string>{}) << signal;
  }
  EXPECT_EQ(signal_that_ended(folder / "x", {SIGQUIT}, true), SIGQUIT);
  EXPECT_EQ(folder.names(), std::vector<std::string>{});
}

TEST(TemporaryFile, AnIgnoredSignalStaysIgnored) {
  const TemporaryFolder folder;
  std::signal(SIGHUP, SIG_IGN);
  EXPECT_EQ(signal_that_ended(folder / "x", {SIGHUP}, false), 0);
  EXPECT_EQ(signal_that_ended(folder / "x", {SIGHUP}, true), 0);
  std::signal(SIGHUP, SIG_DFL);
}

TEST(TemporaryFile, AnEndLeavesTheSignalsAsTheyWere) {
  const TemporaryFolder folder;
  {
    TemporaryFile file(folder / "x");
    const InterruptGuard guard;
    file.rename_to_target();
    EXPECT_EQ(folder.names(), std::vector<std::string>{"x"});
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"x"});
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    EXPECT_EQ(action.sa_handler, SIG_DFL) << signal;
  }
}

TEST(TemporaryFile, AFolderThatIsMissing) {
  EXPECT_THROW(TemporaryFile("/no/such/folder/x"), std::system_error);
}

}  // namespace
}  // namespace memwall
