#include "bench/interrupt.h"

#include <atomic>
#include <csignal>

namespace memwall {
namespace {

// Read by all threads, written by whichever the signal comes to; lock-free, so a handler may.
std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int signal) {
  g_interrupted.store(true, std::memory_order_relaxed);
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  g_interrupted = false;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  g_interrupted = false;
}

bool interrupted() { return g_interrupted.load(std::memory_order_relaxed); }

}  // namespace memwall
