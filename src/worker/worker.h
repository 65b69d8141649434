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

/// The steps of an initialised Executable, run one after another. All calls but losses() and updates() are collective.
class Steps {
 public:
  /// All must outlive this. before_step: called with the number of each step before it runs, for faults that a test
  /// plants; steps then run one at a time, and each takes as long as its call, too. Empty: they run without a pause.
  using BeforeStep = std::function<void(std::int64_t step)>;
  Steps(backend::Executable& executable, const program::Program& program, const program::InputSource& inputs,
        BeforeStep before_step = {})
      : executable_(executable), program_(program), inputs_(inputs), before_step_(std::move(before_step)) {}

  /// Runs `count` more steps and returns how long each took.
  std::vector<double> run(int count);
  struct Profiled {
    std::vector<program::Interval> intervals;
    double loading_s = 0;  // that the host spent filling inputs
  };
  /// Runs one more step, which is not among those that losses() knows.
  Profiled run_profiled();
  /// For all steps of run().
  std::vector<float> losses() const;
  /// How many of the steps so far have updated the weights: all, unless the Program may skip an update.
  std::int64_t updates() const;
  /// How long the first step took; 0: none was run.
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
  int run_ = 0;  // by run()
  double first_step_s_ = 0;
};

// The tasks of a block that run steps, from an initialised Executable on. Collective.

/// Warm-up, then the timed steps, with the device watched.
job::TimedSamples time_steps(Steps& steps, int warmup_steps, int timed_steps);

/// Warm-up, then `profiled_steps` steps, all of which are offered. `keeps_intervals`: else only their totals come home.
/// `ranks`: of the block, whose communication durations rank 0 will hold all at once. `gradients`: of this rank.
job::TimelineSamples record_timeline(Steps& steps, int warmup_steps, int profiled_steps, bool keeps_intervals,
                                     int ranks, const std::vector<workloads::GradientPart>& gradients);

/// Runs one more step on numbers whose result is known. Throws Error if it is another.
void check_outputs(const Steps& steps, const workloads::OutputCheck& check);

/// The work of a worker: everything made from its order.
struct Work {
  std::uint64_t program_hash = 0;
  // For a task that runs steps; else absent.
  std::unique_ptr<program::Program> program;  // lowered; before the executable that refers to it
  std::unique_ptr<program::InputSource> inputs;
  std::unique_ptr<backend::Executable> executable;
  std::unique_ptr<workloads::OutputCheck> check;  // of what the steps computed, after all else; optional
  Steps::BeforeStep before_step;                  // of a fault that a test plants; else empty
  /// The task. `steps`: of the executable, initialised; nullptr where there is none.
  std::function<job::TaskSamples(Steps* steps)> task;
};
/// `connections`: of the Executable before, nullptr: there was none.
using WorkFactory = std::function<Work(const job::WorkerOrder&, std::shared_ptr<backend::Connections> connections)>;

/// The work that an order names: the workload's Program on the backend. `around`: for tests.
using AroundOf = std::function<backend::Around(const backend::ExecutableRequest& request)>;
Work make_work(const job::WorkerOrder& order, std::shared_ptr<backend::Connections> connections,
               const AroundOf& around = {});

/// Runs a worker from its order to its end. Speaks with its supervisor over descriptors of its own (Channel). Returns
/// its exit code, or ends the process with it.
int run_worker(const WorkFactory& make);

/// The hidden verb `worker`: reads its order from stdin, runs one block and answers on stdout. Returns its exit code.
int worker_main();

}  // namespace harness::worker
