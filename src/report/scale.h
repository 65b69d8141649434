#pragma once

#include <span>
#include <string>

#include "base/units.h"

namespace harness::report {

/// A unit that suits these values, and how to print one in it with four digits.
struct Scale {
  std::string unit = {};
  double factor = 1;                      // of the SI unit
  std::string print(double value) const;  // "" for NaN
};
Scale scale_of_seconds(std::span<const double> values);
Scale scale_of_flops(std::span<const double> values);
Scale scale_of_bytes(std::span<const double> values);

}  // namespace harness::report
