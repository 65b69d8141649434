#pragma once

#include <vector>

#include "backend/cuda/blas.h"

namespace harness::cuda {

/// A stream whose work is timed by events.
class Timer {
 public:
  /// Seconds of one call on average, of as many as fill `seconds`, going round the runs. If the first takes more than
  /// `hopeless_s`, its time alone.
  double mean(const std::vector<Blas::Run>& runs, double seconds, double hopeless_s);
  /// The average of as many as keep the device at work for `seconds` of the wall clock.
  double sustained(const std::vector<Blas::Run>& runs, double seconds);
  /// The median time of a call of each contestant, whose runs take turns: each in every round, so that clocks and
  /// temperature are the same for all.
  std::vector<double> medians(const std::vector<std::vector<Blas::Run>>& contestants, int rounds);
  /// Mean times of a call of each contestant, each running without the others for `seconds`, twice in turns: not at one
  /// clock, as call by call, but at the clock that its own power allows.
  std::vector<double> lasting(const std::vector<std::vector<Blas::Run>>& contestants, double seconds);
  Stream stream() const { return stream_.get(); }

 private:
  double measure(const std::vector<Blas::Run>& runs, int calls);
  OwnedStream stream_{Priority::normal};
  OwnedEvent begin_{OwnedEvent::Timing::on}, end_{OwnedEvent::Timing::on};
};

}  // namespace harness::cuda
