#include "bench/interrupt.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

namespace memwall {
namespace {

constexpr std::array kEndings = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

// Read and written by handlers, so lock-free.
std::atomic<bool> g_guarded{false};
std::atomic<bool> g_interrupted{false};
std::atomic<const char*> g_file{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<const char*>::is_always_lock_free);

int g_users = 0;                                           // guards and files that need the handlers
std::array<struct sigaction, kEndings.size()> g_before{};  // what the signals did before the first of them

void restore_actions() {
  for (std::size_t i = 0; i < kEndings.size(); ++i) ::sigaction(kEndings[i], &g_before[i], nullptr);
}

// Calls only what is async-signal-safe (signal-safety(7)).
void on_signal(int signal) {
  const bool asks = signal != SIGQUIT;  // which wants an end at once
  if (asks && g_guarded.load() && !g_interrupted.exchange(true)) return;
  const int error = errno;
  if (const char* file = g_file.exchange(nullptr)) ::unlink(file);
  restore_actions();
  ::raise(signal);  // delivered when this handler returns
  errno = error;
}

void use_handlers() {
  if (g_users++ > 0) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kEndings.size(); ++i) {
    ::sigaction(kEndings[i], nullptr, &g_before[i]);
    if (g_before[i].sa_handler != SIG_IGN) ::sigaction(kEndings[i], &action, nullptr);
  }
}

void leave_handlers() {
  if (--g_users == 0) restore_actions();
}

}  // namespace

InterruptGuard::InterruptGuard() {
  g_interrupted = false;
  g_guarded = true;
  use_handlers();
}

InterruptGuard::~InterruptGuard() {
  leave_handlers();
  g_guarded = false;
  g_interrupted = false;
}

bool interrupted() { return g_interrupted.load(std::memory_order_relaxed); }

RemovedWhenEnded::RemovedWhenEnded(std::string path)
    : path_(std::move(path)), outer_(g_file.exchange(path_.c_str())) {
  use_handlers();
}

RemovedWhenEnded::~RemovedWhenEnded() {
  g_file = outer_;
  leave_handlers();
}

void leave_files_to_parent() { g_file = nullptr; }

SignalsHeld::SignalsHeld() {
  sigset_t endings;
  sigemptyset(&endings);
  for (const int signal : kEndings) sigaddset(&endings, signal);
  ::pthread_sigmask(SIG_BLOCK, &endings, &before_);
}

SignalsHeld::~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace memwall
