#include "backend/cuda/emulation/fiber.h"

#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define HARNESS_FIBER_ASAN 1
#endif

#if defined(__x86_64__)

// swapcontext() makes a system call for the signal mask at every switch, and a kernel's barrier is 1024 switches. These
// registers are callee-saved in the System V ABI: only they and the stack pointer have to be switched.
extern "C" void harness_fiber_switch(void** save, void* to);
asm(R"(
.text
.globl harness_fiber_switch
.hidden harness_fiber_switch
.type harness_fiber_switch, @function
harness_fiber_switch:
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
.size harness_fiber_switch, . - harness_fiber_switch
.globl harness_fiber_first
.hidden harness_fiber_first
.type harness_fiber_first, @function
harness_fiber_first:
  movq %r12, %rdi
  xorl %ebp, %ebp
  call *%r13
  ud2
.size harness_fiber_first, . - harness_fiber_first
)");
extern "C" void harness_fiber_first();

namespace harness::emulation {

struct Fiber::Context {
  void *inside = nullptr, *outside = nullptr;

  void prepare(char* stack, std::size_t bytes, void (*enter)(void*), void* argument) {
    auto top = reinterpret_cast<std::uintptr_t>(stack + bytes) & ~std::uintptr_t{15};
    auto* slot = reinterpret_cast<void**>(top) - 9;  // r15 r14 r13 r12 rbx rbp, return address; then aligned
    for (int i = 0; i < 9; ++i) slot[i] = nullptr;
    slot[2] = reinterpret_cast<void*>(enter);
    slot[3] = argument;
    slot[6] = reinterpret_cast<void*>(&harness_fiber_first);
    inside = slot;
  }
  void go_in() { harness_fiber_switch(&outside, inside); }
  void go_out() { harness_fiber_switch(&inside, outside); }
};

}  // namespace harness::emulation

#else

#include <ucontext.h>

namespace harness::emulation {

struct Fiber::Context {
  ucontext_t inside{}, outside{};
  void (*enter)(void*) = nullptr;
  void* argument = nullptr;

  static void first(unsigned high, unsigned low) {
    auto* self = reinterpret_cast<Context*>(static_cast<std::uintptr_t>(high) << 32 | low);
    self->enter(self->argument);
  }
  void prepare(char* stack, std::size_t bytes, void (*function)(void*), void* value) {
    enter = function;
    argument = value;
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = bytes;
    inside.uc_link = nullptr;
    const auto self = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this));
    makecontext(&inside, reinterpret_cast<void (*)()>(&first), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
  }
  void go_in() { swapcontext(&outside, &inside); }
  void go_out() { swapcontext(&inside, &outside); }
};

}  // namespace harness::emulation

#endif

namespace harness::emulation {
namespace {

constexpr std::size_t stack_size = 256 * 1024;  // of address space; only touched pages take memory
constexpr std::size_t end_of_stack = 64;
[[maybe_unused]] constexpr auto intact = [] {
  std::array<char, end_of_stack> pattern{};
  for (char& c : pattern) c = 0x5a;
  return pattern;
}();

}  // namespace

// A process may have some 65000 mappings (vm.max_map_count), and tests have tens of thousands of fibers. Adjacent
// stacks count as one mapping only without protected pages between them. An overflow is therefore detected, not
// prevented: by AddressSanitizer, otherwise by a pattern at the stack's end that is checked after every resume.
Fiber::Fiber() : stack_bytes_(stack_size), context_(new Context) {
  void* memory =
      mmap(nullptr, stack_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    delete context_;
    throw std::bad_alloc();
  }
  madvise(memory, stack_bytes_, MADV_NOHUGEPAGE);  // only a few pages of a stack are touched
  memory_ = static_cast<char*>(memory);
#ifdef HARNESS_FIBER_ASAN
  __asan_poison_memory_region(memory_, end_of_stack);
#else
  std::memcpy(memory_, intact.data(), end_of_stack);
#endif
}

Fiber::~Fiber() {
#ifdef HARNESS_FIBER_ASAN
  if (own_fake_ != nullptr) {
    leaves_for_good_ = true;
    resume();
  }
  __asan_unpoison_memory_region(memory_, stack_bytes_);  // frames that never returned
#endif
  munmap(memory_, stack_bytes_);
  delete context_;
}

void Fiber::must_be_within_its_stack() const {
#ifndef HARNESS_FIBER_ASAN
  if (std::memcmp(memory_, intact.data(), end_of_stack) == 0) return;
  std::fputs("emulated kernel: a thread overflowed its stack\n", stderr);
  std::abort();  // the overflow may have overwritten any memory below the stack
#endif
}

void Fiber::start(std::function<void()> work) {
  work_ = std::move(work);
  context_->prepare(memory_, stack_bytes_, &Fiber::enter, this);
}

void Fiber::enter(void* fiber) {
  auto* self = static_cast<Fiber*>(fiber);
  self->arrived_in_fiber();
  for (;;) {
    self->work_();
    self->suspend();
  }
}

void Fiber::arrived_in_fiber() {
#ifdef HARNESS_FIBER_ASAN
  __sanitizer_finish_switch_fiber(own_fake_, &outer_stack_, &outer_bytes_);
#endif
}

void Fiber::resume() {
#ifdef HARNESS_FIBER_ASAN
  __sanitizer_start_switch_fiber(&outer_fake_, memory_, stack_bytes_);
#endif
  context_->go_in();
#ifdef HARNESS_FIBER_ASAN
  __sanitizer_finish_switch_fiber(outer_fake_, nullptr, nullptr);
#endif
  must_be_within_its_stack();
}

void Fiber::suspend() {
#ifdef HARNESS_FIBER_ASAN
  __sanitizer_start_switch_fiber(&own_fake_, outer_stack_, outer_bytes_);
#endif
  context_->go_out();
  arrived_in_fiber();
#ifdef HARNESS_FIBER_ASAN
  // The fake stack for use-after-return detection takes 3 MB of address space. Only a switch out of the fiber that
  // saves no fake stack (nullptr) frees it.
  if (leaves_for_good_) {
    __sanitizer_start_switch_fiber(nullptr, outer_stack_, outer_bytes_);
    context_->go_out();
  }
#endif
}

}  // namespace harness::emulation
