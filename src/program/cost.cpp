#include "program/cost.h"

#include "program/count.h"

namespace harness::program {

const char* name_of(Bound bound) {
  return bound == Bound::flop ? "FLOP" : "memory";
}

LeastTime least_time(double flop, double bytes, const DeviceRates& rates) {
  const auto at = [](double amount, double rate) { return rate > 0 ? amount / rate : 0.0; };
  return {at(flop, rates.flops), at(bytes, rates.memory_bytes_per_s)};
}

LeastTime least_time(const Program& program, const Action& action, const DeviceRates& rates) {
  return least_time(flop_of(action).model, needed_bytes(program, action), rates);
}

}  // namespace harness::program
