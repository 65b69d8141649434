#pragma once

#include "worker/worker.h"

namespace harness::test {

/// Work without a backend: every step is a barrier over one socket per rank through rank 0, so that a failing rank
/// stalls the others as a real collective would.
worker::Work fake_work(const job::WorkerOrder& order, const std::shared_ptr<backend::Connections>& connections,
                       const worker::AroundOf& around);

}  // namespace harness::test
