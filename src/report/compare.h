#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/comparison.h"
#include "report/document.h"
#include "report/sections.h"

namespace harness::report {

/// All that `compare` says.
struct CompareReport {
  /// The files that the differences are between, in the order of their values: all files, or of a history the two
  /// around its clearest change.
  std::vector<analysis::ComparedFile> files;
  std::vector<analysis::Difference> differences;
  std::vector<std::string> incomparable;  // why not; with `anyway` the numbers follow nevertheless
  bool anyway = false;
  std::vector<std::string> unreliable;  // why not to believe a file, or why it was left out; a sentence each
  /// The answer; none where the files cannot be compared.
  std::variant<std::monostate, analysis::Comparison, analysis::Reproduction, analysis::Pool, analysis::History> answer;

  /// No case was compared: the files cannot be, or no case of one is a case of the other.
  bool nothing_in_common() const;
};

/// Why not to believe it, what changed in a sentence, what the machines did otherwise, a table with a row per case
/// ("~": no change that this could prove), what else differs between the files, and how to read it. `whole`: with all
/// rows; else with the eight that moved most.
Document compare_document(const CompareReport& report, bool whole);
/// docs/json.md describes it.
std::string compare_json(const CompareReport& report);
/// Remarks on a pooled case besides its numbers, a sentence each: runs that differ, that failed, that do not
/// count.
std::vector<std::string> pooled_remarks(const std::vector<analysis::ComparedFile>& files,
                                        const analysis::PooledCase& row);
/// The verdict, or why there is none.
std::string pooled_verdict(const analysis::PooledCase& row);

/// One kind of answer: headline, subjects, what to know before a table is read, tables, and notes that verdicts point
/// to.
struct Answer {
  Section said{"comparison", "", {}};
  std::vector<std::string> how_to_read = {};
};
inline Answer text_of(std::monostate, const CompareReport& /*report*/, bool /*whole*/) {
  return {};
}
Answer text_of(const analysis::Comparison& comparison, const CompareReport& report, bool whole);
Answer text_of(const analysis::Reproduction& reproduction, const CompareReport& report, bool whole);
Answer text_of(const analysis::Pool& pool, const CompareReport& report, bool whole);
Answer text_of(const analysis::History& history, const CompareReport& report, bool whole);

/// A row of a table that may be left out: how much it matters, the most first; what is infinite stays.
using WeighedRow = std::pair<double, std::vector<Cell>>;
/// The table with its rows in their order: all if `whole`, else the eight that matter most. The caption says how many
/// are left out.
Numbers table_of(std::string caption, std::vector<Table::Column> columns, std::vector<WeighedRow> rows, bool whole);
/// How much a change matters: a baseline always, what moved by its size, all else not.
double weight_of(const analysis::Change& change, store::CaseRole role);

}  // namespace harness::report
