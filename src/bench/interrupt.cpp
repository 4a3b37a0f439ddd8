#include "bench/interrupt.h"

#include <csignal>

namespace memwall {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void on_signal(int signal) {
  g_interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  g_interrupted = 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool interrupted() { return g_interrupted != 0; }

}  // namespace memwall
