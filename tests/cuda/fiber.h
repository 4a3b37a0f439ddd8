// A stack of its own, entered and left by hand: what a kernel's thread runs on.
#pragma once

#include <cstddef>

#if !defined(__x86_64__) || defined(MEMWALL_UCONTEXT)
#define MEMWALL_FIBER_UCONTEXT
#include <ucontext.h>
#endif

namespace memwall::cuda {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs work(argument) on the fiber until it ends or calls leave(). To be called while the fiber has no work
  // left, that is, in the beginning and after an earlier work's end.
  void start(void (*work)(void*) noexcept, void* argument);
  // Goes on behind the leave() that it stopped at, until the next or the end.
  void resume();
  // Called on the fiber: goes on behind the start() or resume() that entered it.
  void leave();

 private:
  [[noreturn]] static void loop();

  void* stack_;
  void (*work_)(void*) noexcept = nullptr;
  void* argument_ = nullptr;
#ifdef MEMWALL_FIBER_UCONTEXT
  ucontext_t inside_{};
  ucontext_t outside_{};
#else
  void* inside_ = nullptr;   // stack pointers
  void* outside_ = nullptr;  //
#endif
  // What the sanitizers know the two stacks by.
  void* inside_fake_ = nullptr;
  void* outside_fake_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_bytes_ = 0;
  void* inside_thread_ = nullptr;
  void* outside_thread_ = nullptr;
};

}  // namespace memwall::cuda
