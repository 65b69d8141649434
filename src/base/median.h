#pragma once

#include <span>

namespace harness {

/// The middle value, of an even number of values the mean of the two in the middle; NaN of none.
double median(std::span<const double> values);

}  // namespace harness
