#pragma once

#include <cstdint>

#include "program/program.h"

namespace harness::program {

/// What one device does at most; 0: not known.
struct DeviceRates {
  double flops = 0;  // FLOP/s, dense, in the precision of the products
  double memory_bytes_per_s = 0;
};

/// What a computation is limited by.
enum class Bound : std::uint8_t { flop, memory };
const char* name_of(Bound bound);

/// The least time of a computation on a device: its FLOP at the device's rate or its bytes at that of the memory,
/// whichever takes longer (Williams, Waterman and Patterson, "Roofline", 2009). 0 where neither rate is known.
struct LeastTime {
  double flop_s = 0, memory_s = 0;
  double seconds() const { return flop_s > memory_s ? flop_s : memory_s; }
  Bound bound() const { return flop_s > 0 && flop_s >= memory_s ? Bound::flop : Bound::memory; }
};
LeastTime least_time(double flop, double bytes, const DeviceRates& rates);
/// Of one operation: causal attention at half its square, each operand read or written once (count.h).
LeastTime least_time(const Program& program, const Action& action, const DeviceRates& rates);

}  // namespace harness::program
