#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison.h"
#include "report/show_comparison.h"

namespace harness::report {

/// A case as a CI system wants it: passed or not, with one line that says what was found.
struct Check {
  enum class Outcome : std::uint8_t { passed, failed, skipped };
  std::string group, name;
  Outcome outcome = Outcome::passed;
  std::string line;
  double seconds = 0;  // the step time; 0: not known
};
struct Checks {
  std::string suite, created, headline;
  std::vector<Check> checks;
  std::vector<std::string> warnings;
};

/// Checks one sweep. A case fails if it failed or its lost blocks cost a verdict, the control if it moved. A case that
/// could not run here or was not measured is skipped. A slower case is a finding and passes.
Checks checks_of(const store::Result& result, const analysis::Summary& summary);
/// Checks a comparison. A case fails by the gate (without one: if it is proven slower) or if it was not reproduced. The
/// comparison itself fails where the files cannot be compared or are unreliable.
Checks checks_of(const ComparisonReport& report, const std::optional<analysis::Gate>& gate);
Checks checks_of(const HistoryReport& report, const std::optional<analysis::Gate>& gate);

/// JUnit's XML, one testcase per check.
std::string write_junit(const Checks& checks);
/// Workflow commands of GitHub: ::error for what failed, ::warning for warnings, ::notice for the headline.
std::string write_github(const Checks& checks);

}  // namespace harness::report
