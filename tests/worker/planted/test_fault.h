#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "job/job.h"
#include "program/memory.h"
#include "program/program.h"
#include "support/delay.h"
#include "worker/worker.h"

namespace harness::test {

/// A deliberate fault, for tests of the fault handling: HARNESS_TEST_FAULT="rank=1,step=3,kind=segfault" with optional
/// "case=NAME" and "seconds=0.2". Kinds: segfault, exit, throw, kill, hang, stop (suspends the process, so that it
/// cannot answer), memory, shared_memory, allocation (1 GiB at once), delay, spin (a delay that keeps its core, so that
/// it does not grow longer: a virtual machine may get a core back late), pretend (with step=every: nothing waits, but
/// every step is reported as longer by this much, so that a planted effect can be many times the noise of any machine).
/// Step -1 is before the Program is built; "step=every" delays every step.
/// "kind=delay,stream=data" instead lengthens each communication on that stream, "stream=compute" each pass of a layer:
/// forward, its gradients, those of its weights (cpu backend).
/// "blocks=even" or "blocks=odd" limits the fault to timed blocks with such a number, so that a case disagrees with
/// itself; "company=yes" to processes that ran another block before. Several delays of every step, or several pretended
/// ones, each with its own conditions, are joined by ";" and add up.
class TestFault {
 public:
  /// Returns no fault unless the text names this rank and case. Throws Error for invalid text.
  static TestFault parse(const std::string& text, int rank, const std::string& case_name);

  void act_before_steps() const;
  /// Wraps `inputs` so that the fault occurs while they are filled, at its step.
  std::unique_ptr<program::InputSource> around(std::unique_ptr<program::InputSource> inputs) const;
  /// Returns the fault to run before its step, for a Program that has no inputs to fill. Empty if the Program has
  /// inputs or the fault concerns no step.
  std::function<void(std::int64_t step)> between_steps(const program::Program& program) const;
  /// Adds the pretended delays to the steps of a block, and to the total of the steps after the warm-up.
  void pretend(job::TimedSamples& samples, int warmup_steps) const;
  /// Whether the backend delays operations.
  bool is_within_step() const { return !stream_.empty(); }
  Delay delay_within_step() const { return {stream_, seconds_}; }

 private:
  friend class FaultyInputs;
  static TestFault parse_one(std::string_view text, int rank, const std::string& case_name);
  void act() const;

  std::string kind_;  // "": none
  std::string stream_;
  std::int64_t step_ = 0;
  bool every_step_ = false;
  double seconds_ = 0.2;
};

/// Returns `make` with the fault that the environment plants in a block. `around`: the operations that its backend
/// delays.
worker::WorkFactory with_faults(
    std::function<worker::Work(const job::WorkerOrder& order, std::shared_ptr<backend::Connections> connections,
                               const worker::AroundOf& around)>
        make);

}  // namespace harness::test
