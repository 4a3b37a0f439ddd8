// What the sanitizers must be told where they watch fibers and guarded memory; nothing in other builds.
//
// MEMWALL_RACES is the thread sanitizer on kernels alone (tests/cuda/races): the executor's own files are not
// instrumented there, and a switch of fibers orders nothing, so that only what a kernel calls does. In a
// build that is instrumented as a whole a switch orders everything.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || defined(MEMWALL_RACES)
#include <sanitizer/tsan_interface.h>
#define MEMWALL_THREAD_SANITIZER
#endif

namespace memwall::cuda::sanitizers {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddress = true;
inline void poison(const void* begin, std::size_t bytes) { __asan_poison_memory_region(begin, bytes); }
inline void unpoison(const void* begin, std::size_t bytes) { __asan_unpoison_memory_region(begin, bytes); }
inline void start_switch(void** fake, const void* stack, std::size_t bytes) {
  __sanitizer_start_switch_fiber(fake, stack, bytes);
}
inline void finish_switch(void* fake, const void** stack, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(fake, stack, bytes);
}
#else
inline constexpr bool kAddress = false;
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
inline void start_switch(void**, const void*, std::size_t) {}
inline void finish_switch(void*, const void**, std::size_t*) {}
#endif

#if defined(MEMWALL_RACES)
inline constexpr bool kRaces = true;
// What was done before a release of a key comes before what is done after an acquire of it.
inline void release(void* key) { __tsan_release(key); }
inline void acquire(void* key) { __tsan_acquire(key); }
#else
inline constexpr bool kRaces = false;
inline void release(void*) {}
inline void acquire(void*) {}
#endif

#if defined(MEMWALL_THREAD_SANITIZER)
inline void* create_thread() { return __tsan_create_fiber(0); }
inline void destroy_thread(void* thread) { __tsan_destroy_fiber(thread); }
inline void* this_thread() { return __tsan_get_current_fiber(); }
// To stand right before the switch itself.
inline __attribute__((always_inline)) void switch_thread(void* thread) {
  __tsan_switch_to_fiber(thread, kRaces ? __tsan_switch_to_fiber_no_sync : 0U);
}
#else
inline void* create_thread() { return nullptr; }
inline void destroy_thread(void*) {}
inline void* this_thread() { return nullptr; }
inline void switch_thread(void*) {}
#endif

}  // namespace memwall::cuda::sanitizers
