#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/comparison.h"
#include "analysis/findings.h"
#include "analysis/summary.h"
#include "report/document.h"
#include "report/words.h"
#include "store/result.h"

namespace harness::report {

// All numbers of a case, each metric once. CSV and JSON contain all of them; the table of cases takes its columns from
// here, in this order. docs/json.md describes every key.

enum class Unit : std::uint8_t {
  seconds,
  flops,        // FLOP/s
  bytes,        // of memory: MiB, GiB
  gigabytes_s,  // of bandwidth: GB/s at every size, as nccl-tests prints it
  share,        // 0.543 is "54.3 %"
  hertz,
  watts,
  number,
  count,  // an integer
};

enum class Measured : std::uint8_t { training, operation, collective };
Measured measured_by(const store::Result& result);

struct Metric {
  std::string_view key;  // in JSON, a dot stands for a nested object: "effect.ratio"; in CSV, '_' replaces the dot
  Unit unit = Unit::number;
  std::optional<double> (*value)(const store::Result& result,
                                 const analysis::CaseSummary& row) = nullptr;  // in SI units
  std::string_view help;
  std::string_view heading = {};  // in the table of cases: "{}" for the unit, on GPUs "GPU" for "rank"; "": no column
  int worth = Table::Column::stays;  // of that column
};
std::span<const Metric> case_metrics();
/// Whether results of this kind have the metric: only single operations have rates.
bool belongs(const Metric& metric, const store::Result& result);
/// How useful each rank of a case is beside one of the baseline; none on as many ranks as the baseline's.
std::optional<double> efficiency(const store::Result& result, const analysis::CaseSummary& row);

// The sections that text, Markdown and the page share. A section without data says so in a line, or has no pieces and
// is omitted. Sections with drawings are in report/page/page.cpp.

/// The level of detail: enough for a first look, or everything.
enum class Detail : std::uint8_t { brief, full };

/// The time and cost of a training run, before and after each proven change.
Section cost_section(const analysis::CostEstimate& estimate);
/// Said instead of that section to whoever asks for it, such as while the baseline has not run, or of a collective.
inline constexpr const char* no_price = "There is no price: the file has no tokens/s of the baseline.";
Section breakdown_section(const store::Result& result, const analysis::Findings& findings);
/// Measured next to predicted step times, and the cause that their difference suggests; no pieces without an
/// explanation.
Section explanation_section(const store::Result& result, const analysis::Findings& findings);
inline constexpr const char* explanation_id = "prediction";
/// The diagnosis in a sentence or two; "" if there is none.
std::string diagnosis_words(const analysis::Explanation& explanation);
/// Adds it to the notices.
void add_diagnosis(const analysis::Findings& findings, Document& document);
Section stragglers_section(const store::Result& result, const analysis::Findings& findings);
Section nccl_section(const store::Result& result);  // no pieces if NCCL was not used
Section environment_section(const store::Result& result, const analysis::Findings& findings);
Section warnings_section(const analysis::Findings& findings);
Section configuration_section(const store::Result& result);
/// The heading of the column that gives an operation's part in a training step.
inline constexpr const char* uses_heading = "in the step";

/// The columns that all tables of cases share; the first column is first, the last is last (arrange()).
inline const Table::Column case_column{.heading = "case", .words = true, .names_cases = true};
inline const Table::Column change_column{.heading = "change"};
Table::Column interval_column(double confidence);
/// In narrow tables the ends share their unit: "[-12.9, -11.1] %".
Cell interval_cell(double low, double high);
inline const Table::Column verdict_column{.heading = "verdict", .words = true};
/// The name of a case, with its short name for narrow tables.
Cell case_cell(const std::string& name);
/// Columns of less worth are dropped before any cell wraps.
inline constexpr int essential = 60;

/// A row for each case, with case_notes().
Table case_table(const store::Result& result, const analysis::Summary& summary);
/// The notes to read before trusting the verdict and the numbers of a case.
std::vector<std::string> case_notes(const analysis::CaseSummary& row, const analysis::Summary& summary);
/// case_table() for sweeps of only the size of one collective, or of settings at several sizes of one operation
/// (analysis::is_grid): a row for each size; a column of times and of rates for the baseline and each setting; and for
/// each setting the verdict, the change against the baseline at that size and its interval. Errors count failed blocks,
/// including those with a wrong result.
Table table_by_size(const store::Result& result, const analysis::Summary& summary);
/// The rate that an operation is judged by: bandwidth of a link, FLOP/s of a rank, or bytes/s if it computes nothing.
std::optional<double> operation_rate(const analysis::CaseSummary& row);

/// Adds the findings about one profiled step: table, bottleneck, suggestions with this sweep's evidence on them,
/// remarks. baseline: the step to compare with, or nullptr.
void add_step(const store::Result& result, const analysis::Findings& findings, const analysis::StepFindings& step,
              const analysis::StepFindings* baseline, Section& section);

/// The context of the whole table of cases: backend, model, common settings, formulas and the source of the peak. One
/// paragraph each.
std::vector<std::string> context(const store::Result& result, const analysis::Summary& summary);

/// context() for a first look, in one paragraph: what was measured, on what, the margin by which a verdict must clear
/// the baseline, and how far a prediction can be trusted.
std::vector<std::string> short_context(const store::Result& result, const analysis::Summary& summary);

/// The quantity that changes refer to: "step time", "time per byte on the bus" …
std::string what_changes(const store::Result& result);
/// The words after "12 % slower": " per byte on the bus"; "" for the step time.
std::string per_what(const store::Result& result);
/// The subject of the measurement in a word or two: the model's name, or the workload's.
std::string subject_of(const store::Result& result);

/// The first paragraph of context(): how meaningful the numbers of a backend are.
std::string backend_line(const store::Result& result);

/// The document of `show`. The first line says what changed and how certain it is. Then come one row per case with its
/// change against the baseline and the verdict, notes, warnings, and what all cases share. `cost`: adds a section with
/// the time and cost of a training run.
Document show_document(const store::Result& result, const analysis::Summary& summary,
                       const std::optional<analysis::CostEstimate>& cost = {}, Detail detail = Detail::brief);

/// The profiled steps that a breakdown shows: the baseline's and those of `cases` (names or short names). If `cases` is
/// empty: the best case's; in full detail all.
struct ShownSteps {
  std::vector<std::string> cases = {};
  Detail detail = Detail::brief;
};
/// The document of `show` plus the breakdown of profiled steps. Throws Error for an unknown case.
Document breakdown_document(const store::Result& result, analysis::Findings findings, const ShownSteps& shown = {});

/// One line per case, at full precision; fields without a value are empty.
std::string show_csv(const store::Result& result, const analysis::Summary& summary);
/// Contains everything in show_csv() and the text; null where there is no value. docs/json.md describes it.
/// `explanation`: measured next to predicted steps.
std::string show_json(const store::Result& result, const analysis::Summary& summary,
                      const std::optional<analysis::CostEstimate>& cost = {},
                      const std::optional<analysis::Explanation>& explanation = {});

/// The result and its certainty, in one sentence.
std::string headline(const store::Result& result, const analysis::Summary& summary);

// Sections of `compare` over several results.

/// The complete output of `compare`.
struct CompareReport {
  /// The compared files, in the order of their values: all files, or for a history the two around its clearest change.
  std::vector<analysis::ComparedFile> files;
  std::vector<analysis::Difference> differences;
  std::vector<std::string> incomparable;  // reasons; with `anyway` the numbers follow nevertheless
  bool anyway = false;
  std::vector<std::string> unreliable;  // why a file is not to be trusted or was left out; a sentence each
  /// The answer; empty if the files cannot be compared.
  std::variant<std::monostate, analysis::Comparison, analysis::Reproduction, analysis::Pool, analysis::History> answer;

  /// No case was compared: the files are incomparable, or share no case.
  bool nothing_in_common() const;
};

/// Contents: why not to trust the files, the change in one sentence, differences between the machines, a table with a
/// row per case ("~": no change that this could prove), other differences between the files, and how to read it.
/// `whole`: with all rows; else the eight that changed most.
Document compare_document(const CompareReport& report, bool whole);
/// docs/json.md describes it.
std::string compare_json(const CompareReport& report);
/// Remarks on a pooled case, a sentence each: runs that disagree, that failed, or that do not count.
std::vector<std::string> pooled_remarks(const std::vector<analysis::ComparedFile>& files,
                                        const analysis::PooledCase& row);
/// The verdict, or the reason for its absence.
std::string pooled_verdict(const analysis::PooledCase& row);

/// One kind of answer: headline, subjects, remarks before the table, tables, and notes that verdicts refer to.
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

/// The lines, unless `whole` only the first eight and how many more there are.
std::vector<std::string> first_lines(std::vector<std::string> lines, bool whole);
/// The table with its rows in their order: all if `whole`, else the eight heaviest, and a caption that counts the
/// others. `weights`: of each row; infinite weight always stays.
Numbers heaviest_rows(Table table, const std::vector<double>& weights, bool whole);
/// The weight of a change: infinite for a baseline, the size of the change if it moved, else zero.
double weight_of(const analysis::Change& change, store::CaseRole role);

}  // namespace harness::report
