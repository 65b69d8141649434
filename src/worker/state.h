#pragma once

#include "backend/backend.h"
#include "job/messages.h"

namespace harness::worker {

// The worker's present activity, for the control thread at any time and for the handler of a fatal signal.
// Process-wide: there is one worker per process.

void set_worker_phase(job::WorkerPhase phase);
/// Both must stay valid until others take their place, or nullptr: when this returns, nobody looks at them any more.
void set_worker_executable(const backend::Executable* executable, const program::Program* program);

/// Takes no locks and allocates nothing.
job::WorkerProgress worker_progress();

/// From now on a worker that dies of a fault of its own, or calls exit() before its phase is `done`, writes a
/// last_words frame to `fd` first.
void speak_last_words(int fd);

}  // namespace harness::worker
