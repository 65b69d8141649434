#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/comparison.h"
#include "analysis/history.h"
#include "analysis/runs.h"
#include "report/document.h"
#include "report/show.h"

namespace harness::report {

/// All that `compare` says. Either comparisons (the first side against each other one) or a reproduction is filled;
/// neither where the files cannot be compared.
struct ComparisonReport {
  std::vector<analysis::ComparedFile> files;  // all, in the order of the differences' values
  std::vector<analysis::Difference> differences;
  std::vector<std::string> incomparable;  // why not; with `anyway` the numbers follow nevertheless
  bool anyway = false;
  std::vector<std::string> unreliable;
  std::vector<analysis::Comparison> comparisons;
  std::vector<analysis::Reproduction> reproductions;

  /// No case was compared: the files cannot be, or no case of one is a case of the other.
  bool nothing_in_common() const;
};

/// Why not to believe it, then for each pair of sides the verdict in a line and a table in the manner of benchstat: a
/// row per case with both sides, the change ("~": none that this could prove), its interval and n. Last what else
/// differs between the files.
Document comparison_document(const ComparisonReport& report);
Table comparison_table(const analysis::Comparison& comparison);
std::string comparison_json(const ComparisonReport& report);

/// In a format. Throws Error for csv.
std::string show(const ComparisonReport& report, Format format);

/// All that `compare --history` says.
struct HistoryReport {
  analysis::History history;
  std::vector<std::string> left_out;  // files that do not count, a sentence each
};

/// The changes that are proven in one line, a row per case with its change, the series, and how it was found.
Document history_document(const HistoryReport& report);
std::string history_json(const HistoryReport& report);

/// Whether a proven change made a case slower than the gate, which is one of `slower`, allows.
bool fails(const analysis::Gate& gate, const analysis::History& history, const analysis::CaseHistory& row);

}  // namespace harness::report
