#pragma once

namespace harness::machine {

/// What copies between a GPU and pinned memory of its host reach, in bytes/s. 0: not measured.
struct HostCopies {
  double to_device_bytes_per_s = 0, from_device_bytes_per_s = 0;  // each direction by itself
  double both_bytes_per_s = 0;                                    // both at once, added
};

}  // namespace harness::machine
