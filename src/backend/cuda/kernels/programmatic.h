#pragma once

namespace harness::cuda {

/// While one with `on` lives, kernels that its thread launches are launched programmatically: the driver may start
/// their blocks while the last blocks of the kernel ahead on the stream still run (programmatic dependent launch). Only
/// for GPUs of compute capability 9.0 and later, and where what stands directly ahead on the stream is a kernel.
///
/// Kernels wait for the work ahead before they touch memory (wait_for_work_ahead() in platform.cuh) and let no later
/// kernel start before their blocks end. So a launch, the set-up of the grid and the way to the first instruction are
/// all that overlaps, and no result can change.
class ProgrammaticLaunches {
 public:
  explicit ProgrammaticLaunches(bool on) : before_(flag()) { flag() = on; }
  ~ProgrammaticLaunches() { flag() = before_; }
  ProgrammaticLaunches(const ProgrammaticLaunches&) = delete;
  ProgrammaticLaunches& operator=(const ProgrammaticLaunches&) = delete;

  static bool on() { return flag(); }

 private:
  static bool& flag() {
    thread_local bool on = false;
    return on;
  }
  bool before_;
};

}  // namespace harness::cuda
