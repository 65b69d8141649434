#pragma once

#include <vector>

#include "backend/cuda/blas.h"
#include "machine/conditions.h"

namespace harness::cuda {

/// A stream whose work is timed by events.
class Timer {
 public:
  /// Mean seconds of a call, of as many calls as keep the device at work for `seconds` of the wall clock, round and
  /// round the runs.
  double sustained(const std::vector<Blas::Run>& runs, double seconds);
  /// Median seconds of a call of each candidate (its runs in turn) over `rounds` rounds. Each round calls every
  /// candidate once, so that clocks and temperature are the same for all.
  std::vector<double> medians(const std::vector<std::vector<Blas::Run>>& candidates, int rounds);
  Stream stream() const { return stream_.get(); }

 private:
  double measure(const std::vector<Blas::Run>& runs, int calls);
  OwnedStream stream_{Priority::normal};
  OwnedEvent begin_{OwnedEvent::Timing::on}, end_{OwnedEvent::Timing::on};
};

/// Backend::measure_host_copies() of the calling thread's GPU. `seconds`: of the wall clock, a third for
/// each way. Throws Error if memory does not suffice; keeps none of it.
machine::HostCopies measure_host_copies(double seconds);

}  // namespace harness::cuda
