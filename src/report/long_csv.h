#pragma once

#include <string>

#include "analysis/summary.h"
#include "store/result.h"

namespace harness::report {

/// One line per number: run, created, name, host, case, metric, value, low, high. The lines of many files, below one
/// head, are one table for pandas or Grafana. Metrics have the keys of JSON; values are in SI units; low and high are
/// the interval of those that have one. docs/json.md describes it.
std::string show_long_csv(const store::Result& result, const analysis::Summary& summary);

}  // namespace harness::report
