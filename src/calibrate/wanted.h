#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace harness::calibrate {

/// The sizes to measure, between which a prediction interpolates.
struct Wanted {
  config::BackendKind backend{};
  config::Settings settings;  // of everything: what is no size
  std::vector<config::Precision> precisions;
  std::vector<config::GemmShape> products;
  std::vector<std::int64_t> message_bytes;  // ascending
  config::Model layer;                      // a model of one layer, whose steps have the other operations
  std::vector<std::int64_t> micro_batches;  // of such a step
};

/// The sizes that the cases of a sweep have.
Wanted wanted_by(const plan::Plan& plan);
/// Sizes between which a device of that kind goes from slow to as fast as it gets.
Wanted usual(config::BackendKind backend);

}  // namespace harness::calibrate
