#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/differences.h"
#include "store/result.h"

namespace harness::analysis {

/// Counts the blocks in which a figure is too high, among those that know it, and keeps the one in which it is highest.
struct Exceeded {
  int known = 0, blocks = 0;
  double most = 0;
  std::size_t worst = 0;  // of Result::blocks

  void count(std::size_t block, double value, double limit);
  bool is_news() const;
};
/// Cores that processes of others kept busy, and CPU time that a host gave to other guests.
Exceeded foreign_use(const store::Result& result);
inline constexpr double much_stolen = 0.02;
Exceeded stolen_time(const store::Result& result);

/// Why one side of a comparison may be slower though the same was measured, a sentence each: its machine was disturbed
/// where the other's was not, or reaches another measured peak. Empty: nothing says so.
std::vector<std::string> how_machines_differ(std::span<const ComparedFile> first, std::span<const ComparedFile> second);

}  // namespace harness::analysis
