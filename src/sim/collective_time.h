#pragma once

#include "config/calibration.h"
#include "sim/link_time.h"
#include "sim/nccl_time.h"

namespace harness::sim {

/// How long one collective takes over its size (nccl-tests' "size"), for one group on its links and with the settings
/// of NCCL. This is the one place that says it: a larger size never takes less time, whatever the laws and the measured
/// curves below say of it.
class CollectiveTime {
 public:
  /// Throws NotPredicted (sim/known.h) for settings with which NCCL ends.
  CollectiveTime(program::Collective kind, const Spread& spread, const Network& network,
                 const config::Calibration& calibration, const config::Settings& settings);

  double seconds(double bytes) const;
  /// How many times as many thread blocks as usual, and so multiprocessors, it takes.
  double more_blocks(double bytes) const { return effects_.at(bytes).more_blocks; }

 private:
  double law(double bytes) const;

  program::Collective kind_;
  Spread spread_;
  const Network& network_;
  const config::Calibration& calibration_;
  NcclEffects effects_;
  config::Curve rising_;  // of the law with its effects, where there are some
};

}  // namespace harness::sim
