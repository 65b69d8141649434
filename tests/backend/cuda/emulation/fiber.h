#pragma once

#include <cstddef>
#include <functional>

namespace harness::emulation {

/// Work with its own stack, which runs on the host thread that resumes it. After the work has ended, the next resume()
/// starts it again from the beginning. A fiber may be destroyed while it is suspended: the objects on its stack are
/// then dropped without running their destructors.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Call before the first resume(). The work must not let an exception escape.
  void start(std::function<void()> work);
  /// Runs the work until it suspends or ends. Must not be called from inside a fiber.
  void resume();
  /// Called from inside the work: returns to the caller of resume().
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
  // For AddressSanitizer: the resuming thread's stack, and the fake stacks of both sides.
  const void* outer_stack_ = nullptr;
  std::size_t outer_bytes_ = 0;
  void* outer_fake_ = nullptr;
  void* own_fake_ = nullptr;
  bool leaves_for_good_ = false;
};

}  // namespace harness::emulation
