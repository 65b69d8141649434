#pragma once

#include <cstdint>

namespace harness::config {

/// How irregular a predicted cluster is: `jitter` of a configuration. Off by default. What it does: sim/jitter.h.
struct Jitter {
  double per_operation = 0;  // deviation of what one operation takes, as a share of it; 0: every time the same
  std::uint64_t seed = 1;
  bool on() const { return per_operation > 0; }
};

}  // namespace harness::config
