#include "tests/cuda/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "tests/cuda/sanitizers.h"

#ifndef MEMWALL_FIBER_UCONTEXT
// Keeps on the stack what a call must preserve, leaves its pointer in *from and goes on where `to` was left
// so. swapcontext does the same with a system call each time for the signal mask, which made launches 20
// times slower.
extern "C" void memwall_switch_stacks(void** from, void* to);
asm(R"(
.text
.globl memwall_switch_stacks
.hidden memwall_switch_stacks
.type memwall_switch_stacks, @function
memwall_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size memwall_switch_stacks, .-memwall_switch_stacks
)");
#endif

namespace memwall::cuda {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;
constexpr std::size_t kPage = 4096;

thread_local Fiber* entering = nullptr;

}  // namespace

Fiber::Fiber()
    : stack_(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0)) {
  if (stack_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(stack_, kPage, PROT_NONE);  // a kernel that outgrows the stack shall not go on
#ifdef MEMWALL_FIBER_UCONTEXT
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_;
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = nullptr;
  makecontext(&inside_, &Fiber::loop, 0);
#else
  // As memwall_switch_stacks leaves a stack: six registers, and where to return to; above it no caller.
  auto* top = reinterpret_cast<std::uintptr_t*>(static_cast<std::byte*>(stack_) + kStackBytes);
  top[-1] = 0;
  top[-2] = reinterpret_cast<std::uintptr_t>(&Fiber::loop);
  inside_ = top - 8;
#endif
  inside_thread_ = sanitizers::create_thread();
}

Fiber::~Fiber() {
  sanitizers::destroy_thread(inside_thread_);
  sanitizers::unpoison(stack_, kStackBytes);
  munmap(stack_, kStackBytes);
}

void Fiber::loop() {
  Fiber* fiber = entering;
  sanitizers::finish_switch(nullptr, &fiber->outside_stack_, &fiber->outside_bytes_);
  for (;;) {
    fiber->work_(fiber->argument_);
    fiber->leave();
  }
}

void Fiber::start(void (*work)(void*) noexcept, void* argument) {
  work_ = work;
  argument_ = argument;
  resume();
}

void Fiber::resume() {
  entering = this;
  outside_thread_ = sanitizers::this_thread();
  sanitizers::start_switch(&outside_fake_, stack_, kStackBytes);
  sanitizers::switch_thread(inside_thread_);
#ifdef MEMWALL_FIBER_UCONTEXT
  swapcontext(&outside_, &inside_);
#else
  memwall_switch_stacks(&outside_, inside_);
#endif
  sanitizers::finish_switch(outside_fake_, nullptr, nullptr);
}

void Fiber::leave() {
  sanitizers::start_switch(&inside_fake_, outside_stack_, outside_bytes_);
  sanitizers::switch_thread(outside_thread_);
#ifdef MEMWALL_FIBER_UCONTEXT
  swapcontext(&inside_, &outside_);
#else
  memwall_switch_stacks(&inside_, outside_);
#endif
  sanitizers::finish_switch(inside_fake_, &outside_stack_, &outside_bytes_);
}

}  // namespace memwall::cuda
