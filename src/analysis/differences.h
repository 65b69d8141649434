#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/summary.h"
#include "store/result.h"

namespace harness::analysis {

/// A result file as it takes part in a comparison. Neither is owned.
struct ComparedFile {
  std::string label;  // what tables call it
  const store::Result* result = nullptr;
  const Summary* summary = nullptr;
};

/// Something that differs between result files and that explains, or forbids, a comparison of their times.
struct Difference {
  std::string group;                // "program", "library", "machine", "environment", "configuration", …
  std::string name;                 // "onednn"
  std::vector<std::string> values;  // one per file, in their order
  std::string none;                 // the value of a file that has none: "absent"; "": all have one
};

/// All of them but the times themselves: versions, libraries, devices, hosts, ranks, environment, configuration,
/// clocks, peak, seeds, how much was measured.
std::vector<Difference> find_differences(std::span<const ComparedFile> files);

/// The properties that files must have in common, besides backend and model.
struct MustMatch {
  bool rank_counts = true;  // false where only effects are compared
};
/// Why the times of these files cannot be compared at all, a sentence each. Empty: they can.
std::vector<std::string> why_incomparable(std::span<const ComparedFile> files, const MustMatch& what = {});

/// A variable that two files know and that two of their cases set differently, with the values as printed.
struct SettingDifference {
  std::string variable, first, second;
};

/// Between a case of one file and a case of another, in the order of the first file's variables. What only one of them
/// knows is no difference.
std::vector<SettingDifference> setting_differences(const store::Result& first, const store::ResultCase& first_case,
                                                   const store::Result& second, const store::ResultCase& second_case);

/// "threads is 1 and 2, precision is fp32 and bf16"; "" if there are none.
std::string settings_in_words(const std::vector<SettingDifference>& differences);

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
