#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/summary.h"

namespace harness::analysis {

using Warnings = std::vector<std::string>;  // each with a remedy

/// Adds what a reader should know before believing a result. The warnings of `summary` itself are not read.
void find_warnings(const store::Result& result, const Summary& summary, Warnings& warnings);
/// Those about other processes that kept the machine busy while the sweep ran, and about changes of its speed.
void machine_warnings(const store::Result& result, const Summary& summary, Warnings& warnings);
/// Those about the objections of the level model's guards; none where no level was estimated.
void level_warnings(const store::Result& result, const Summary& summary, Warnings& warnings);

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
Exceeded stolen_time(const store::Result& result);

}  // namespace harness::analysis
