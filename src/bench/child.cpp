#include "bench/child.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "bench/interrupt.h"
#include "input/error.h"

namespace memwall {
namespace {

std::array<int, 2> connection() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw RunError(fmt::format("two processes cannot be connected: {}", std::strerror(errno)));
  return ends;
}

std::string words_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("it ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("it ended with status {}", WEXITSTATUS(status));
}

}  // namespace

Channel::~Channel() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Channel::send(const nlohmann::json& message) {
  const std::vector<std::uint8_t> body = nlohmann::json::to_cbor(message);
  const std::uint64_t length = body.size();
  std::vector<std::uint8_t> bytes(sizeof length + body.size());
  std::memcpy(bytes.data(), &length, sizeof length);
  std::copy(body.begin(), body.end(), bytes.begin() + sizeof length);
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(descriptor_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;
    at += static_cast<std::size_t>(sent);
  }
}

bool Channel::read_whole(void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::read(descriptor_, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

Channel::Heard Channel::receive(nlohmann::json& message, int milliseconds) {
  pollfd waiting{descriptor_, POLLIN, 0};
  const int ready = ::poll(&waiting, 1, milliseconds);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return Heard::silence;
  std::uint64_t length = 0;
  if (ready < 0 || !read_whole(&length, sizeof length)) return Heard::closed;
  std::vector<std::uint8_t> body(length);
  if (!read_whole(body.data(), body.size())) return Heard::closed;
  message = nlohmann::json::from_cbor(body);
  return Heard::message;
}

Child::Child(const std::function<void(Channel&)>& work) : Child(connection(), work) {}

Child::Child(std::array<int, 2> ends, const std::function<void(Channel&)>& work) : channel_(ends[0]) {
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) {
    const int error = errno;
    ::close(ends[1]);
    throw RunError(fmt::format("no process can be started: {}", std::strerror(error)));
  }
  if (process_ > 0) {
    ::close(ends[1]);
    return;
  }
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before that
  ::close(ends[0]);
  leave_files_to_parent();
  {
    const InterruptGuard guard;  // whether or not the parent has one by now
    Channel channel(ends[1]);
    work(channel);
  }
  ::_exit(0);  // destructors and buffered output are the parent's
}

Child::~Child() { end(true); }

void Child::ask_to_end() {
  if (ended_.empty()) ::kill(process_, SIGTERM);
}

std::string Child::end(bool at_once) {
  using std::chrono::steady_clock;
  if (!ended_.empty()) return ended_;
  constexpr auto kPatience = std::chrono::seconds(3);
  for (const bool kills : {false, true}) {
    if (at_once && !kills) continue;
    if (kills) ::kill(process_, SIGKILL);
    for (const auto start = steady_clock::now(); steady_clock::now() - start < kPatience;) {
      int status = 0;
      if (::waitpid(process_, &status, WNOHANG) == process_) return ended_ = words_of(status);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return ended_ = "it cannot be ended: the driver holds it";
}

}  // namespace memwall
