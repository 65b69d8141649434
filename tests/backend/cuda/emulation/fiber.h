#pragma once

#include <cstddef>
#include <functional>

namespace harness::emulation {

/// A piece of work with a stack of its own, on the host thread that resumes it. When the work has ended, the next
/// resume() starts it again from the beginning. It may be destroyed in the middle; what then lies on its stack is
/// forgotten, not destroyed.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Before the first resume(). The work lets no exception out.
  void start(std::function<void()> work);
  /// Runs the work until it suspends or ends. Not from inside a fiber.
  void resume();
  /// From inside the work: back to resume().
  void suspend();

 private:
  struct Context;
  static void enter(void* fiber);
  void arrived_in_fiber();
  void must_be_within_its_stack() const;

  std::function<void()> work_;
  char* memory_ = nullptr;
  std::size_t stack_bytes_ = 0;
  Context* context_;
  // For AddressSanitizer: the stack that resumed, and the fake stacks of both.
  const void* outer_stack_ = nullptr;
  std::size_t outer_bytes_ = 0;
  void* outer_fake_ = nullptr;
  void* own_fake_ = nullptr;
  bool leaves_for_good_ = false;
};

}  // namespace harness::emulation
