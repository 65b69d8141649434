#pragma once

#include <cstdint>
#include <string_view>

namespace harness::store {

/// The numbers of a result that decide which values other numbers can have.
struct Counts {
  std::int64_t cases = 0, blocks = 0, ranks = 0, nodes = 0, sessions = 0;
};

/// Which values a number of a result file can have. A file that anybody can have damaged holds any others; readers,
/// which index and loop by these numbers, never see them.
struct Bounds {
  double low = 0, high = 0;
  std::int64_t Counts::*count = nullptr;  // if set, this number of the result is added to `high`
  bool unknown = false;                   // or NaN: not known
};

constexpr Bounds between(double low, double high) {
  return {low, high};
}
constexpr Bounds up_to(std::int64_t Counts::*count) {
  return {0, 0, count};
}
constexpr Bounds index_of(std::int64_t Counts::*count) {
  return {0, -1, count};
}
/// -1: none.
constexpr Bounds index_or_none(std::int64_t Counts::*count) {
  return {-1, -1, count};
}
inline constexpr double largest_amount = 1e30;
inline constexpr Bounds amount{0, largest_amount, nullptr, true};  // seconds, bytes, FLOP
inline constexpr Bounds known_amount{0, largest_amount};
inline constexpr Bounds moment{-largest_amount, largest_amount};  // it may lie before the zero of its clock

/// Throws Error, naming `what`, for a value outside its bounds.
void require_within(std::string_view what, std::int64_t value, const Bounds& bounds, const Counts& counts);
void require_within(std::string_view what, std::int32_t value, const Bounds& bounds, const Counts& counts);
void require_within(std::string_view what, double value, const Bounds& bounds, const Counts& counts);

}  // namespace harness::store
