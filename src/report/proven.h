#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/summary.h"
#include "config/settings.h"
#include "store/result.h"

namespace harness::report {

/// A setting that a sweep proved faster than its baseline, read back from the file and checked like a configuration's.
struct ProvenSetting {
  std::string name;                                              // of the case: variable=value
  std::string variable, value;                                   // the value in canonical form
  config::Settings settings;                                     // with this one value, everything else at its default
  std::vector<std::pair<std::string, std::string>> environment;  // what it becomes in a process's environment
  std::string evidence;                                          // change, interval, rounds, file, commit; one line
  double ratio = 1;                                              // its time over the baseline's
};

struct Proven {
  std::vector<ProvenSetting> settings;  // the fastest value of each variable, in the registry's order
  std::vector<std::string> left_out;    // a line each: what was not proven and why; what a faster value outdid
};

/// What the sweep says of a case: "unresolved, time -1.6 % [-13.1 %, +11.4 %] in 12 rounds", "failed", "not measured".
std::string outcome_of(const analysis::CaseSummary& row);

/// Why a faster case may be believed, on one line: change, interval, rounds, `file` and commit. It has an effect.
std::string evidence_for(const store::Result& result, const analysis::CaseSummary& row, const std::string& name,
                         const std::string& file);

/// case_name: this case alone ("" all). Throws Error when it is not there or not proven, and (exit code 4) when the
/// sweep is unreliable and proves nothing. A value that the registry does not know as it stands is left out.
Proven find_proven(const store::Result& result, const analysis::Summary& summary, const std::string& case_name,
                   const std::string& file);

}  // namespace harness::report
