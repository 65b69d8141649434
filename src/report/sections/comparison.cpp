#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "base/text.h"
#include "report/json.h"
#include "report/sections.h"
#include "report/words.h"

namespace harness::report {
namespace {

// "identity, onednn: 2.6.3 (monday.h5); 3.1 (friday.h5)"
std::string difference_line(std::span<const analysis::ComparedFile> files, const analysis::Difference& difference) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < difference.values.size(); ++i) {
    const std::string& value = difference.values[i];
    parts.push_back(fmt::format("{} ({})", value.empty() ? "\"\"" : value, files[i].label));
  }
  return fmt::format("{}, {}: {}", difference.group, difference.name, join(parts, "; "));
}

constexpr std::size_t most_rows = 8;

Section differences_section(const CompareReport& report, bool whole) {
  Section section{"differences", "", {}};
  if (report.differences.empty()) {
    section.add(
        Paragraph{"Nothing else differs between these files: same program, hardware, settings and environment."});
    return section;
  }
  section.add(Paragraph{"What differs besides the times:"});
  std::vector<std::string> lines;
  for (const analysis::Difference& difference : report.differences)
    lines.push_back(difference_line(report.files, difference));
  section.add(List{first_lines(std::move(lines), whole)});
  return section;
}

const char* why_not(const analysis::CaseComparison& row) {
  return row.impossible ? "impossible on both sides" : "not measured on a side";
}

// Whether the change has a direction to be told.
bool is_told(const analysis::Judgement& judgement) {
  return analysis::moved(judgement.verdict) || judgement.reason == analysis::Reason::predicted;
}

Numbers case_rows(const analysis::Comparison& comparison, bool whole) {
  using Row = analysis::CaseComparison;
  std::vector<double> seconds, weights;
  for (const Row& row : comparison.cases) {
    seconds.insert(seconds.end(), {row.first.step_seconds, row.second.step_seconds});
    weights.push_back(weight_of(row, row.role));
  }
  const Scale scale = scale_of_seconds(seconds);
  Table table;
  const auto add = [&](Table::Column column, const auto& cell_of) {
    table.add(std::move(column), comparison.cases, cell_of);
  };
  add(case_column, [](const Row& row) { return case_cell(row.name); });
  add({.heading = "A step " + scale.unit}, [&](const Row& row) { return scale.print(row.first.step_seconds); });
  add({.heading = "B step " + scale.unit}, [&](const Row& row) { return scale.print(row.second.step_seconds); });
  add(change_column, [](const Row& row) {
    if (!row.measured_on_both()) return std::string();
    return is_told(row.judgement) ? change_words(row.ratio) : "~";
  });
  add(interval_column(comparison.confidence), [](const Row& row) { return interval_cell(row.low, row.high); });
  // The samples of a side's value and its interval: runs, or blocks of one run.
  const auto sample =
      comparison.between_runs ? &analysis::MeasuredCase::run_seconds : &analysis::MeasuredCase::block_seconds;
  add({.heading = "n", .worth = 50}, [&](const Row& row) {
    if (!row.measured_on_both()) return std::string();
    return fmt::format("{}+{}", (row.first.*sample).size(), (row.second.*sample).size());
  });
  add({.heading = "A MFU", .worth = 30}, [](const Row& row) { return share_words(row.first.mfu); });
  add({.heading = "B MFU", .worth = 30}, [](const Row& row) { return share_words(row.second.mfu); });
  add(verdict_column, [](const Row& row) -> Cell {
    if (!row.measured_on_both()) return {why_not(row), Tone::plain, row.impossible ? "impossible" : "not measured"};
    return {analysis::name_of(row.judgement), tone_of(row.judgement)};
  });
  return heaviest_rows(std::move(table), weights, whole);
}

std::vector<std::string> how_to_read(const analysis::Comparison& comparison, bool whole) {
  std::vector<std::string> notes;
  if (comparison.predicted) {
    notes.push_back(fmt::format(
        "Change: time of B against A, per token where batches differ. Predicted, not measured, on at least one side: "
        "no interval and no verdict; {} a change is too close to call.",
        analysis::within_threshold_words(comparison.smallest_effect)));
  } else {
    const bool per_token = std::ranges::any_of(comparison.cases, &analysis::CaseComparison::per_token);
    notes.push_back(
        fmt::format("Change: {} of B against A; ~ where no change is proven. A verdict must clear {}.{}",
                    per_token ? "time per token (batches differ)" : "step time",
                    analysis::threshold_words(comparison.smallest_effect),
                    comparison.comparisons > 1
                        ? fmt::format(" The intervals hold for all {} comparisons together.", comparison.comparisons)
                        : ""));
    notes.emplace_back(
        comparison.between_runs
            ? "n counts runs. The interval is between runs: Welch's t (trimmed, after Yuen, from five runs a side) on "
              "the logarithms of the runs' median step times."
            : "n counts blocks; the interval comes from their scatter within runs, a lower bound of the uncertainty.");
  }
  for (const std::string& line : first_lines(comparison.not_aligned, whole))
    notes.push_back(fmt::format("Not compared: {}.", line));
  return notes;
}

std::string_view outcome_on_both(const analysis::CaseComparison& row) {
  if (!row.measured_on_both()) return why_not(row);
  const std::string_view outcome = outcome_of(row.judgement, row.ratio);
  return outcome == analysis::name_of(analysis::Verdict::none) ? "unresolved" : outcome;
}

std::string headline_of(const analysis::Comparison& comparison) {
  if (comparison.cases.empty()) {
    return "No case of one side is a case of the other: there is nothing to compare. --anyway compares baseline with "
           "baseline.";
  }
  const std::string counts = counted(
      comparison.cases,
      {"slower", "faster", "same", "unresolved", too_close, "not measured on a side", "impossible on both sides"},
      outcome_on_both);
  return fmt::format("{}Of {} in both, B is: {}.", comparison.predicted ? "Predicted, not measured. " : "",
                     plural(std::ssize(comparison.cases), "case"), counts);
}

Section reservations_section(const CompareReport& report) {
  Section section{"reservations", "", {}};
  if (!report.incomparable.empty()) {
    section.add(Paragraph{report.anyway ? "These files cannot be compared; --anyway asked for what follows:"
                                        : "These files cannot be compared (--anyway compares them nevertheless):",
                          true});
    section.add(List{report.incomparable, List::Mark::warning});
  }
  if (!report.unreliable.empty()) section.add(List{report.unreliable, List::Mark::warning});
  return section;
}

Json files_json(const std::vector<analysis::ComparedFile>& files) {
  return json_list(files, [](const analysis::ComparedFile& file) -> Json {
    return {{"label", file.label}, {"run_uuid", file.result->run_uuid}, {"created", file.result->created}};
  });
}

Json change_json(const analysis::Change& change) {
  return {{"verdict", analysis::name_of(change.judgement.verdict)},
          {"ratio", change.ratio},
          {"low", change.low},
          {"high", change.high},
          {"n", change.n}};
}

Json measured_json(const analysis::MeasuredCase& measured) {
  return {{"runs", measured.run_seconds.size()},
          {"blocks", measured.block_seconds.size()},
          {"run_seconds", measured.run_seconds},
          {"step_seconds", measured.step_seconds},
          {"tokens_per_second", measured.tokens_per_second},
          {"mfu", json_number(measured.mfu)}};
}

Json case_json(const std::string& name, const analysis::Change& change, const Json& more) {
  Json out = {{"name", name}};
  out.update(change_json(change));
  out.update(more);
  return out;
}

void put(const std::monostate&, const CompareReport&, Json&) {}

void put(const analysis::Comparison& comparison, const CompareReport&, Json& out) {
  const auto row_json = [](const analysis::CaseComparison& row) {
    return case_json(row.name, row,
                     {{"a", measured_json(row.first)}, {"b", measured_json(row.second)}, {"per_token", row.per_token}});
  };
  out["comparison"] = {{"a", comparison.first},
                       {"b", comparison.second},
                       {"between_runs", comparison.between_runs},
                       {"same_run_on_both_sides", comparison.same_run},
                       {"comparisons", comparison.comparisons},
                       {"confidence", comparison.confidence},
                       {"smallest_effect", comparison.smallest_effect},
                       {"cases", json_list(comparison.cases, row_json)},
                       {"not_aligned", comparison.not_aligned}};
}

void put(const analysis::Reproduction& reproduction, const CompareReport&, Json& out) {
  const auto row_json = [](const analysis::ChangeReproduction& row) -> Json {
    return {{"name", row.name},
            {"reproduced", analysis::name_of(row.reproduced)},
            {"a", change_json(row.first)},
            {"b", change_json(row.second)}};
  };
  out["reproduction"] = {{"a", Json::array({reproduction.first})},
                         {"b", Json::array({reproduction.second})},
                         {"a_confidence", reproduction.first_confidence},
                         {"b_confidence", reproduction.second_confidence},
                         {"changes", json_list(reproduction.changes, row_json)},
                         {"only_in_one", reproduction.only_in_one}};
}

void put(const analysis::Pool& pool, const CompareReport& report, Json& out) {
  const auto run_json = [&](const analysis::RunOfCase& run) -> Json {
    const auto& effect = run.row->effect;
    return {{"label", report.files[run.file].label},
            {"ratio", run.ratio},
            {"low", effect ? Json(effect->low) : Json()},
            {"high", effect ? Json(effect->high) : Json()},
            {"step_seconds", run.row->step_seconds}};
  };
  const auto row_json = [&](const analysis::PooledCase& row) {
    return case_json(row.name, row,
                     {{"judgement", pooled_verdict(row)},
                      {"runs_differ", row.runs_differ},
                      {"measured", measured_json(row.measured)},
                      {"runs", json_list(row.runs, run_json)},
                      {"remarks", pooled_remarks(report.files, row)}});
  };
  out["pool"] = {{"control_moved", pool.unreliable},
                 {"comparisons", pool.comparisons},
                 {"confidence", pool.confidence},
                 {"smallest_effect", pool.smallest_effect},
                 {"cases", json_list(pool.cases, row_json)}};
}

void put(const analysis::History& history, const CompareReport&, Json& out) {
  const auto row_json = [](const analysis::CaseHistory& row) -> Json {
    Json change = nullptr;
    if (row.largest) {
      change = {{"first_run_after", row.largest->run}, {"ratio", row.largest->ratio}, {"p", row.largest->p}};
    }
    return {{"name", row.name},
            {"step_seconds", row.seconds},
            {"verdict", analysis::name_of(row.verdict)},
            {"change", std::move(change)}};
  };
  out["history"] = {{"min_runs", analysis::min_history_runs},
                    {"smallest_effect", history.smallest_effect},
                    {"confidence", history.confidence},
                    {"runs", files_json(history.files)},
                    {"cases", json_list(history.cases, row_json)}};
}

}  // namespace

double weight_of(const analysis::Change& change, store::CaseRole role) {
  if (role == store::CaseRole::baseline) return std::numeric_limits<double>::infinity();
  return is_told(change.judgement) ? std::abs(std::log(change.ratio)) : 0;
}

std::vector<std::string> first_lines(std::vector<std::string> lines, bool whole) {
  if (const std::size_t all = lines.size(); !whole && all > most_rows) {
    lines.resize(most_rows);
    lines.push_back(fmt::format("{} more: -v shows them", all - most_rows));
  }
  return lines;
}

Numbers heaviest_rows(Table table, const std::vector<double>& weights, bool whole) {
  std::vector<std::size_t> kept(table.rows.size());
  std::iota(kept.begin(), kept.end(), std::size_t{0});
  if (!whole && kept.size() > most_rows) {
    std::ranges::stable_sort(kept, std::greater<>(), [&](std::size_t i) { return weights[i]; });
    kept.resize(most_rows);
    std::ranges::sort(kept);
  }
  std::vector<std::vector<Cell>> all = std::exchange(table.rows, {});
  for (const std::size_t i : kept) table.rows.push_back(std::move(all[i]));
  table.remove_empty_columns();
  std::string caption;
  if (const std::size_t more = all.size() - kept.size(); more > 0)
    caption =
        fmt::format("The rows that moved most; {} that moved less or not: -v shows them.", plural(more, "more row"));
  return {std::move(caption), std::move(table)};
}

Answer text_of(const analysis::Comparison& comparison, const CompareReport& report, bool whole) {
  std::vector<std::string> caveats;
  for (const analysis::ComparedFile& file : report.files) {
    if (const int failed = file.summary->failed_cases; failed > 0)
      caveats.push_back(fmt::format("{} failed in {}; any time shown for a failed case was measured before it failed.",
                                    plural(failed, "case"), file.label));
  }
  if (comparison.same_run) caveats.emplace_back("The same run is on both sides: agreement there is no evidence.");
  if (!comparison.baselines_differ.empty())
    caveats.push_back("--anyway compares baselines with different settings: " + comparison.baselines_differ + ".");
  if (!comparison.predicted && !comparison.between_runs && comparison.comparisons > 0) {
    caveats.emplace_back(
        "A repeated run may differ by more than these verdicts allow for; estimating by how much takes at least three "
        "runs on each side (--with).");
  }
  Answer answer{.how_to_read = how_to_read(comparison, whole)};
  answer.said.add(Paragraph{headline_of(comparison), true});
  answer.said.add(Paragraph{fmt::format("A: {}. B: {}.", join(comparison.first, ", "), join(comparison.second, ", "))});
  if (!caveats.empty()) answer.said.add(List{std::move(caveats), List::Mark::warning});
  answer.said.add(case_rows(comparison, whole));
  return answer;
}

bool CompareReport::nothing_in_common() const {
  if (const auto* sides = std::get_if<analysis::Comparison>(&answer)) return sides->comparisons == 0;
  if (const auto* effects = std::get_if<analysis::Reproduction>(&answer)) return effects->changes.empty();
  return std::holds_alternative<std::monostate>(answer);
}

Document compare_document(const CompareReport& report, bool whole) {
  Document document;
  document.sections.push_back(reservations_section(report));
  Answer text = std::visit([&](const auto& answer) { return text_of(answer, report, whole); }, report.answer);
  if (!text.said.pieces.empty()) document.sections.push_back(std::move(text.said));
  if (!report.files.empty()) document.sections.push_back(differences_section(report, whole));
  document.sections.push_back({"how-to-read", "", {List{std::move(text.how_to_read), List::Mark::none}}});
  return document;
}

std::string compare_json(const CompareReport& report) {
  const auto difference_json = [](const analysis::Difference& x) -> Json {
    return {{"group", x.group}, {"name", x.name}, {"values", x.values}};
  };
  Json out = {{"schema", "harness-compare"},         {"schema_version", 2},
              {"files", files_json(report.files)},   {"differences", json_list(report.differences, difference_json)},
              {"incomparable", report.incomparable}, {"unreliable", report.unreliable}};
  std::visit([&](const auto& answer) { put(answer, report, out); }, report.answer);
  return json_text(out);
}

}  // namespace harness::report
