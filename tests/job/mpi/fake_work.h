#pragma once

#include "worker/worker.h"

namespace harness::test {

/// Work that needs no backend: every step is a barrier over a socket per rank, with rank 0 in the middle, so that one
/// rank's trouble becomes the others' as it would with real collectives.
worker::Work fake_work(const job::WorkerOrder& order, const std::shared_ptr<backend::Connections>& connections,
                       const worker::AroundOf& around);

}  // namespace harness::test
