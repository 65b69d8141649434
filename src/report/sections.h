#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/comparison.h"
#include "analysis/findings.h"
#include "analysis/summary.h"
#include "report/document.h"
#include "report/words.h"
#include "store/result.h"

namespace harness::report {

// All numbers of a case, each metric once. CSV and JSON have all of them; the table of cases takes its columns from
// here, in this order. docs/json.md describes every key.

enum class Unit : std::uint8_t {
  seconds,
  flops,        // FLOP/s
  bytes,        // of memory: MiB, GiB
  gigabytes_s,  // of bandwidth: GB/s, as nccl-tests prints it whatever the size
  share,        // 0.543 is "54.3 %"
  hertz,
  watts,
  number,
  count,  // an integer
};

enum class Measured : std::uint8_t { training, operation, collective };
Measured measured_by(const store::Result& result);

struct Metric {
  std::string_view key;  // in JSON, a dot for a nested object: "effect.ratio"; in CSV with '_' for the dot
  Unit unit = Unit::number;
  std::optional<double> (*value)(const store::Result& result,
                                 const analysis::CaseSummary& row) = nullptr;  // in SI units
  std::string_view help;
  std::string_view heading = {};     // in the table of cases: "{}" for the unit, on GPUs "GPU" for "rank"; "": none
  int worth = Table::Column::stays;  // of that column
};
std::span<const Metric> case_metrics();
/// Whether a result can have it: only single operations have rates.
bool belongs(const Metric& metric, const store::Result& result);

// The sections that text, Markdown and the page share. One without data says so in a line, or has no pieces and is left
// out. report/page/page.cpp has those that draw.

/// How much is said: what a first look needs, or everything.
enum class Detail : std::uint8_t { brief, full };

/// The section that `show` prints: a row per case, the notes on it, the warnings, and the context: in brief a few
/// lines, in full with settings and formulas.
Section overview_section(const store::Result& result, const analysis::Summary& summary, Detail detail);
/// The time and the price of a training run, before and after each proven change.
Section cost_section(const analysis::CostEstimate& estimate);
Section breakdown_section(const store::Result& result, const analysis::Findings& findings);
/// Measured beside predicted times of steps, and what their difference says is wrong; no pieces without an
/// explanation.
Section explanation_section(const store::Result& result, const analysis::Findings& findings);
inline constexpr const char* explanation_id = "prediction";
/// The diagnosis in a sentence or two; "" without one.
std::string diagnosis_words(const analysis::Explanation& explanation);
Section stragglers_section(const store::Result& result, const analysis::Findings& findings);
Section nccl_section(const store::Result& result);  // no pieces where NCCL had no part
Section environment_section(const store::Result& result, const analysis::Findings& findings);
Section warnings_section(const analysis::Findings& findings);
Section configuration_section(const store::Result& result);
/// The column that names what a single operation is in a training step.
inline constexpr const char* uses_heading = "in the step";

/// The columns that the tables of cases have in common; the first is first, the last is last (arrange()).
Table::Column case_column();
/// The name of a case; its short name where space is short.
Cell case_cell(const std::string& name);
/// `unit`: "/byte" where changes are of the time per byte.
Table::Column change_column(const std::string& unit = "");
Table::Column interval_column(double confidence);
Table::Column verdict_column();
/// Columns of less worth leave before any cell goes on in a second line.
inline constexpr int essential = 60;

/// The rows of all cases, and the notes that their verdict column points to as [1], [2] ….
struct CaseTable {
  Table table;
  std::vector<std::string> notes;
};
CaseTable case_table(const store::Result& result, const analysis::Summary& summary);
/// The notes that a reader must know before the verdict and the numbers of a case are believed.
std::vector<std::string> case_notes(const analysis::CaseSummary& row, const analysis::Summary& summary);
/// case_table() where sizes of one collective are all that was swept, or settings are compared at several sizes of one
/// operation (analysis::is_grid): a row for each size; for the baseline and each setting a column of times and of
/// rates, and for each setting the verdict, the change against the baseline at that size and its interval. Errors are
/// the blocks that failed, of which one with a wrong result is one.
CaseTable table_by_size(const store::Result& result, const analysis::Summary& summary);
/// The rate that an operation is judged by: the bandwidth of a link, the FLOP of a rank, or where it computes nothing
/// its bytes.
std::optional<double> operation_rate(const analysis::CaseSummary& row);

/// Adds the findings about one profiled step: table, bottleneck, what is worth trying and what this sweep says of it,
/// remarks. baseline: to compare with, or nullptr.
void add_step(const store::Result& result, const analysis::Findings& findings, const analysis::StepFindings& step,
              const analysis::StepFindings* baseline, Section& section);

/// The facts of the whole table of cases: backend, model, common settings, the formulas and where the peak comes
/// from. A paragraph each.
std::vector<std::string> context(const store::Result& result, const analysis::Summary& summary);

/// context() for a first look, in one paragraph: what was measured, on what, by how much a verdict must clear the
/// baseline, and of a prediction how far it can be trusted.
std::vector<std::string> short_context(const store::Result& result, const analysis::Summary& summary);

/// The quantity that changes are changes of: "step time", "time per byte on the bus" …
std::string what_changes(const store::Result& result);
/// Its words behind "12 % slower": " per byte on the bus"; "" where it is the step time.
std::string per_what(const store::Result& result);
/// The measured thing in a word or two: the model's name, or the workload's.
std::string subject_of(const store::Result& result);

/// The first of those paragraphs says what the numbers of a backend are worth.
std::string backend_line(const store::Result& result);

/// The document of `show`. First line: what moved and how sure we are. Then one row per case with its change against
/// the baseline and the verdict, notes, warnings, and what is common to all cases. `cost`: what a training run takes
/// and costs, in a section of its own.
Document show_document(const store::Result& result, const analysis::Summary& summary,
                       const std::optional<analysis::CostEstimate>& cost = {}, Detail detail = Detail::brief);

/// Which profiled steps a breakdown shows: the baseline's, and those of `cases` (short names, too). Without any, that
/// of the best case; in full detail all.
struct ShownSteps {
  std::vector<std::string> cases = {};
  Detail detail = Detail::brief;
};
/// That text, and where the profiled steps went. Throws Error for a case that is not there.
Document breakdown_document(const store::Result& result, analysis::Findings findings, const ShownSteps& shown = {});

/// One line per case, full precision, empty where there is no value.
std::string show_csv(const store::Result& result, const analysis::Summary& summary);
/// All that show_csv() and the text say; null where there is no value. docs/json.md describes it. `explanation`: what
/// steps take beside what they are predicted to take, or nullptr.
std::string show_json(const store::Result& result, const analysis::Summary& summary,
                      const std::optional<analysis::CostEstimate>& cost = {},
                      const analysis::Explanation* explanation = nullptr);

/// The result and how sure it is, in one sentence.
std::string headline(const store::Result& result, const analysis::Summary& summary);

// Sections of `compare` over several results.

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
