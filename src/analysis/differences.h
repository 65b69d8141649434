#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "store/result.h"

namespace harness {

/// A result file as it takes part in a comparison. Neither is owned.
struct ComparedFile {
  std::string label;  // what tables call it
  const Result* result = nullptr;
  const Summary* summary = nullptr;
};

/// Something in which result files differ and that a reader of their times has to know.
struct Difference {
  std::string group;                // "program", "library", "machine", "environment", "configuration", …
  std::string name;                 // "onednn"
  std::vector<std::string> values;  // one per file, in their order; "absent" where there is none
};

/// All of them but the times themselves: versions, libraries, devices, hosts, ranks, environment, configuration,
/// clocks, peak, seeds, how much was measured.
std::vector<Difference> find_differences(std::span<const ComparedFile> files);

/// Why the times of these files cannot be compared at all, a sentence each: unlike backends, models or numbers of
/// ranks. Empty: they can.
struct Incomparable {
  bool rank_counts = true;  // false where only effects are compared
};
std::vector<std::string> why_incomparable(std::span<const ComparedFile> files, const Incomparable& what = {});

}  // namespace harness
