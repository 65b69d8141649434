#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/gate.h"
#include "analysis/history.h"
#include "report/checks.h"
#include "report/document.h"

namespace harness::report {

/// All that `compare --history` says.
struct HistoryReport {
  analysis::History history;
  std::vector<std::string> left_out;  // files that do not count, a sentence each
};

/// The changes that are proven in one line, a row per case with its change, the series, and how it was found.
Document history_document(const HistoryReport& report);
std::string history_json(const HistoryReport& report);
Checks checks_of(const HistoryReport& report, const std::optional<analysis::Gate>& gate);

/// Whether a proven change made a case slower than the gate, which is one of `slower`, allows.
bool fails(const analysis::Gate& gate, const analysis::History& history, const analysis::CaseHistory& row);

}  // namespace harness::report
