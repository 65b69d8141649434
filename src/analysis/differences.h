#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/runs.h"

namespace harness::analysis {

/// Something that differs between result files and that explains, or forbids, a comparison of their times.
struct Difference {
  std::string group;                // "program", "identity", "machine", "environment", "configuration", …
  std::string name;                 // "onednn"
  std::vector<std::string> values;  // one per file, in their order
};
/// The value in a file that has nothing of the name.
inline constexpr const char* absent = "absent";

/// All differences but the times themselves: versions, libraries, devices, hosts, ranks, environment, configuration
/// (with its --set), clocks, peak, how much was measured.
std::vector<Difference> find_differences(std::span<const ComparedFile> files);

/// Why the times of these files cannot be compared at all, a sentence each; empty if they can. `same_ranks`: whether
/// the numbers of ranks must be equal, which they need not be where only effects are compared.
std::vector<std::string> why_incomparable(std::span<const ComparedFile> files, bool same_ranks = true);

/// Why the verdicts about these files are worth nothing, a sentence each: a control that moved, a partial file.
std::vector<std::string> why_unreliable(std::span<const ComparedFile> files);

/// Why one side of a comparison, A or B, may be slower though the same was measured.
struct MachineDifference {
  std::string sentence;         // without a full stop
  bool first_is_worse = false;  // A is the slower side, which can hide that what B measured is slower
};
/// The machine of one side was disturbed where the other's was not, or reaches a lower measured peak. Empty: nothing
/// says so.
std::vector<MachineDifference> how_machines_differ(std::span<const ComparedFile> first,
                                                   std::span<const ComparedFile> second);

}  // namespace harness::analysis
