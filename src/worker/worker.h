#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "job/messages.h"
#include "worker/steps.h"
#include "workloads/workload.h"

namespace harness::worker {

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
