#pragma once

#include <limits>
#include <string>

namespace harness::machine {

/// Everything else that the machine did during a block: of each figure the worst node's. NaN: not known.
struct Conditions {
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  double load = nan;           // load average of the last minute, when the block ended
  double steal_share = nan;    // of the node's CPU time, taken by other guests of its host
  double foreign_cores = nan;  // that processes besides the job's supervisors and workers kept busy, on average
  double cpu_clock_hz = nan;   // mean over the cores, when the block ended; of the slowest node
  std::string busiest_host;    // where foreign_cores is from
  int cores = 0;               // of that node that the job may use
};

/// The bandwidth of copies between a GPU and pinned memory of its host, in bytes/s. 0: not measured.
struct HostCopies {
  double to_device_bytes_per_s = 0, from_device_bytes_per_s = 0;  // each direction by itself
  double both_bytes_per_s = 0;                                    // both at once, added
};

}  // namespace harness::machine
