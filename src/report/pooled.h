#pragma once

#include <string>
#include <vector>

#include "analysis/pooled.h"
#include "report/document.h"
#include "report/metrics.h"
#include "report/show.h"

namespace harness::report {

/// All that `show` says of several runs of one configuration.
struct PooledReport {
  std::vector<analysis::ComparedFile> files;  // two or more
  analysis::Pool pool;                        // of these files
  std::vector<analysis::Difference> differences;
  std::vector<std::string> unreliable;  // why not to believe a file, a sentence each
};

/// What moved over the runs and how sure that is, in a sentence or two.
std::string pooled_headline(const PooledReport& report);

/// The headline, what not to believe, a row per case, what to know of it, each run's own change, and what differs
/// between the files.
Document pooled_document(const PooledReport& report);
/// One line per case, full precision, empty where there is no value.
std::string pooled_csv(const PooledReport& report);
/// docs/json.md describes it.
std::string pooled_json(const PooledReport& report);
std::string show(const PooledReport& report, Format format);

/// The metrics that are pooled as medians over runs. An effect has an interval of its own and is none of them, nor is
/// how a sweep went.
std::vector<Metric> pooled_metrics(const store::Result& result);
/// The same as one number of a case; nothing where a run that measured it has none.
std::optional<double> pooled_value(const PooledReport& report, const analysis::PooledCase& row, const Metric& metric);

/// The verdict, or why there is none.
std::string pooled_verdict(const analysis::PooledCase& row);
/// What there is to say of a case besides numbers, a sentence each: runs that differ, that failed, that do not count.
std::vector<std::string> pooled_remarks(const PooledReport& report, const analysis::PooledCase& row);

}  // namespace harness::report
