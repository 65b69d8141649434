#pragma once

#include "launch/messages.h"

namespace harness {

// Where this worker is, for whoever asks: the control thread at any time, a signal handler while everything falls
// apart. One worker per process, so this is process-wide.

void set_worker_phase(WorkerPhase phase);
/// Both must stay valid until the process ends.
void set_worker_executable(const Executable* executable, const Program* program);

/// Takes no locks and allocates nothing.
WorkerProgress worker_progress();

/// From now on a worker that dies of a fault of its own, or calls exit() before its phase is `done`, writes a
/// last_words frame to `fd` first.
void speak_last_words(int fd);

}  // namespace harness
