#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "job/messages.h"
#include "workloads/workload.h"

namespace harness::worker {

/// Runs the steps of an initialised Executable one after another. All calls but losses() and updates() are collective.
class Steps {
 public:
  /// All must outlive this. before_step: called with the number of each step before it runs, to inject a test's faults;
  /// steps then run one at a time, and a step's time includes the call. Empty: steps run back to back.
  using BeforeStep = std::function<void(std::int64_t step)>;
  Steps(backend::Executable& executable, const program::Program& program, const program::InputSource& inputs,
        BeforeStep before_step = {})
      : executable_(executable), program_(program), inputs_(inputs), before_step_(std::move(before_step)) {}

  /// Runs `count` more steps and returns how long each took.
  std::vector<double> run(int count);
  struct Profiled {
    std::vector<program::Interval> intervals;
    double loading_s = 0;  // host time spent filling inputs
  };
  /// Runs one more step, which losses() leaves out.
  Profiled run_profiled();
  /// Returns the losses of all steps of run().
  std::vector<float> losses() const;
  /// Returns the number of steps so far that updated the weights: all, unless the Program may skip an update.
  std::int64_t updates() const;
  /// Duration of the first step; 0: run() has not run it.
  double first_step_s() const { return first_step_s_; }
  std::int64_t done() const { return done_; }

  backend::Executable& executable() const { return executable_; }
  const program::Program& program() const { return program_; }
  const program::InputSource& inputs() const { return inputs_; }

 private:
  std::vector<double> run_together(int count);

  backend::Executable& executable_;
  const program::Program& program_;
  const program::InputSource& inputs_;
  BeforeStep before_step_;
  std::int64_t done_ = 0;
  int run_ = 0;  // steps run by run()
  double first_step_s_ = 0;
};

// The tasks of a block that run steps, on an initialised Executable. Collective.

/// Runs the warm-up, then the timed steps, and samples the device during the latter.
job::TimedSamples time_steps(Steps& steps, int warmup_steps, int timed_steps);

/// Runs the warm-up, then `profiled_steps` steps, and offers all of these. `keeps_intervals`: false returns only
/// totals. `ranks`: of the block; rank 0 will hold the communication durations of all at once. `gradients`: of this
/// rank.
job::TimelineSamples record_timeline(Steps& steps, int warmup_steps, int profiled_steps, bool keeps_intervals,
                                     int ranks, const std::vector<workloads::GradientPart>& gradients);

/// Runs one more step on numbers with a known result. Throws Error if the result differs.
void check_outputs(const Steps& steps, const workloads::OutputCheck& check);

/// Everything that a worker makes from its order.
struct Work {
  std::uint64_t program_hash = 0;
  // For a task that runs steps; else absent.
  std::unique_ptr<program::Program> program;  // lowered; before the executable that refers to it
  std::unique_ptr<program::InputSource> inputs;
  std::unique_ptr<backend::Executable> executable;
  std::unique_ptr<workloads::OutputCheck> check;  // of the computed outputs, run last; optional
  Steps::BeforeStep before_step;                  // injects a test's fault; else empty
  /// Runs the task. `steps`: those of the initialised executable; nullptr if there is none.
  std::function<job::TaskSamples(Steps* steps)> task;
};
/// `connections`: of the previous Executable; nullptr if there was none.
using WorkFactory = std::function<Work(const job::WorkerOrder&, std::shared_ptr<backend::Connections> connections)>;

/// Makes the work of an order: the workload's Program on its backend. `around`: for tests.
using AroundOf = std::function<backend::Around(const backend::ExecutableRequest& request)>;
Work make_work(const job::WorkerOrder& order, std::shared_ptr<backend::Connections> connections,
               const AroundOf& around = {});

/// Runs a worker until its supervisor has no more blocks. It talks to the supervisor over descriptors of its own
/// (WorkerChannel). Ends the process with the worker's exit code and does not return.
int run_worker(const WorkFactory& make);

/// The hidden verb `worker`: run_worker() with make_work().
int worker_main();

}  // namespace harness::worker
