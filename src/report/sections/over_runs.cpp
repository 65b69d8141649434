#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "config/registry.h"
#include "report/sections.h"
#include "report/words.h"

namespace harness::report {
namespace {

constexpr double always = std::numeric_limits<double>::infinity();

KnownChange known_change(const analysis::PooledCase& row) {
  const bool failed = row.judgement.reason == analysis::Reason::failed;
  return {row.name, failed ? "failed" : analysis::name_of(row.judgement.verdict), row.ratio, row.low, row.high};
}

// "which agree", or the cases on which the runs disagree.
std::string agreement_words(const analysis::Pool& pool) {
  std::vector<std::string> differing;
  for (const analysis::PooledCase& row : pool.cases) {
    if (row.runs_differ) differing.push_back(short_name(row.name));
  }
  return differing.empty() ? "which agree" : "which disagree on " + join_first(differing, 3);
}

std::string headline_of(const analysis::Pool& pool, const CompareReport& report) {
  const store::Result& first = *report.files[0].result;
  const std::string runs =
      fmt::format("{} runs of one configuration, {}. ", report.files.size(), agreement_words(pool));
  if (pool.unreliable) {
    const auto control = std::ranges::find(pool.cases, store::CaseRole::control, &analysis::PooledCase::role);
    return runs + fmt::format(
                      "Unreliable: over the runs the control baseline_again took {} than the baseline, which it "
                      "repeats; no verdict below counts.",
                      how_much(known_change(*control), per_what(first)));
  }
  std::vector<KnownChange> changes, other_trainings;
  for (const analysis::PooledCase& row : pool.cases) {
    // The amount of hardware is not a setting that could be better.
    const bool scales = config::purpose_of(row.planned->variable) == config::Purpose::scale;
    if (row.role != store::CaseRole::change || scales) continue;
    (row.runs.front().row->another_training ? other_trainings : changes).push_back(known_change(row));
  }
  if (changes.empty() && other_trainings.empty())
    return runs + "Only baselines or numbers of ranks were measured: there is no change to judge.";
  const std::string text =
      what_moved(std::move(changes), pool.smallest_effect, per_what(first)) + other_trainings_words(other_trainings);
  return runs + (text.empty() ? "No change has a verdict; the table says why." : std::string(trim(text)));
}

// "-14.9 % in a.h5 to -4.1 % in c.h5"
std::string range_of(const std::vector<analysis::ComparedFile>& files, const analysis::PooledCase& row) {
  std::vector<analysis::RunOfCase> counting;
  std::ranges::copy_if(row.runs, std::back_inserter(counting),
                       [](const analysis::RunOfCase& run) { return std::isfinite(run.ratio); });
  const auto [low, high] = std::ranges::minmax(counting, {}, &analysis::RunOfCase::ratio);
  return fmt::format("{} in {} to {} in {}", change_words(low.ratio), files[low.file].label, change_words(high.ratio),
                     files[high.file].label);
}

std::vector<std::string> how_to_read(const analysis::Pool& pool, const CompareReport& report) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < report.files.size(); ++i) {
    const store::Result& result = *report.files[i].result;
    runs.push_back(
        fmt::format("{} is {} ({}, {})", i + 1, report.files[i].label, result.created, plural(result.rounds, "round")));
  }
  const std::string together =
      pool.comparisons > 1 ? fmt::format(" and hold for all {} comparisons together", pool.comparisons) : "";
  return {
      backend_line(*report.files[0].result), "Runs: " + join(runs, "; ") + ".",
      fmt::format("Change: {} against the baseline of the same run, the geometric mean over the runs; run 1, 2 …: "
                  "each run's own; the other columns are medians over the runs. The intervals are between runs "
                  "(Student's t){}; a verdict must clear {}.",
                  what_changes(*report.files[0].result), together, analysis::threshold_words(pool.smallest_effect))};
}

std::string between(const analysis::History& history, const analysis::CaseHistory& row) {
  return fmt::format("{} and {}", history.files[row.largest->before].label, history.files[row.largest->run].label);
}

std::string headline_of(const analysis::History& history) {
  if (history.files.size() < analysis::min_history_runs) {
    return fmt::format("{}: too few for a verdict, which needs {} that count.",
                       plural(std::ssize(history.files), "run"), analysis::min_history_runs);
  }
  std::vector<std::string> moved;
  for (const analysis::CaseHistory& row : history.cases) {
    if (analysis::moved(row.verdict)) {
      moved.push_back(fmt::format("{} {} between {}", short_name(row.name), change_words(row.largest->ratio),
                                  between(history, row)));
    }
  }
  if (moved.empty()) return fmt::format("No change is proven over {} runs.", history.files.size());
  return fmt::format("Over {} runs the step time changed: {}.", history.files.size(), join(moved, "; "));
}

Cell verdict_of(const analysis::CaseHistory& row) {
  if (row.verdict == analysis::Verdict::unresolved) return "no change proven";
  if (row.verdict == analysis::Verdict::none) return "too few runs";
  return {analysis::name_of(row.verdict), analysis::moved(row.verdict) ? tone_of(row.verdict) : Tone::plain};
}

Numbers case_rows(const analysis::History& history, bool whole) {
  Table table{{case_column, {.heading = "runs", .worth = 60}, change_column, {"between", true}, {"p"}, verdict_column},
              {}};
  std::vector<double> weights;
  for (const analysis::CaseHistory& row : history.cases) {
    const auto runs = std::ranges::count_if(row.seconds, [](double value) { return value > 0; });
    const bool moved = analysis::moved(row.verdict);
    std::vector<Cell> cells{case_cell(row.name), std::to_string(runs), "", "", "", verdict_of(row)};
    if (row.largest) {
      const bool proven = moved || row.verdict == analysis::Verdict::same;
      cells[2] = proven ? change_words(row.largest->ratio) : "~";
      cells[3] = between(history, row);
      cells[4] = fmt::format("{:.4f}", row.largest->p);
    }
    table.rows.push_back(std::move(cells));
    weights.push_back(moved ? std::abs(std::log(row.largest->ratio)) : 0);
  }
  return heaviest_rows(std::move(table), weights, whole);
}

}  // namespace

std::string pooled_verdict(const analysis::PooledCase& row) {
  if (row.judgement.reason == analysis::Reason::too_few_rounds) return "too few runs";
  return analysis::name_of(row.judgement);
}

std::vector<std::string> pooled_remarks(const std::vector<analysis::ComparedFile>& files,
                                        const analysis::PooledCase& row) {
  std::vector<std::string> remarks;
  if (row.runs_differ) {
    remarks.push_back("runs differ more than their rounds explain: " + range_of(files, row));
  }
  remarks.insert(remarks.end(), row.remarks.begin(), row.remarks.end());
  return remarks;
}

Answer text_of(const analysis::Pool& pool, const CompareReport& report, bool whole) {
  using Row = analysis::PooledCase;
  std::vector<double> seconds, weights;
  for (const Row& row : pool.cases) {
    seconds.push_back(row.measured.step_seconds);
    weights.push_back(row.runs_differ || store::is_reference(row.role) ? always : weight_of(row, row.role));
  }
  const Scale scale = scale_of_seconds(seconds);
  Table table;
  const auto add = [&](Table::Column column, const auto& cell_of) {
    table.add(std::move(column), pool.cases, cell_of);
  };
  add(case_column, [](const Row& row) { return case_cell(row.name); });
  add({.heading = "step " + scale.unit, .worth = 70},
      [&](const Row& row) { return scale.print(row.measured.step_seconds); });
  add({.heading = "MFU", .worth = 30}, [](const Row& row) { return share_words(row.measured.mfu); });
  add(change_column, [](const Row& row) { return change_words(row.ratio); });
  add(interval_column(pool.confidence), [](const Row& row) { return interval_cell(row.low, row.high); });
  add({.heading = "runs", .worth = 60}, [&](const Row& row) {
    const bool all = row.n == static_cast<int>(report.files.size());
    return all ? std::to_string(row.n) : fmt::format("{} of {}", row.n, report.files.size());
  });
  for (std::size_t i = 0; i < report.files.size(); ++i) {
    add({.heading = fmt::format("run {}", i + 1), .worth = 10}, [i](const Row& row) {
      const auto run = std::ranges::find(row.runs, i, &analysis::RunOfCase::file);
      return run == row.runs.end() ? "" : change_words(run->ratio);
    });
  }
  add(verdict_column, [&](const Row& row) {
    Cell verdict(pooled_verdict(row), tone_of(row.judgement));
    if (const std::vector<std::string> remarks = pooled_remarks(report.files, row); !remarks.empty())
      verdict.text += " " + table.note(join(remarks, "; "));
    return verdict;
  });
  Answer text{.how_to_read = how_to_read(pool, report)};
  text.said.add(Paragraph{headline_of(pool, report), true});
  text.said.add(heaviest_rows(std::move(table), weights, whole));
  return text;
}

Answer text_of(const analysis::Reproduction& reproduction, const CompareReport&, bool whole) {
  std::string headline = "No change was tried on both sides: there is nothing to reproduce.";
  if (!reproduction.changes.empty()) {
    using enum analysis::Reproduced;
    const std::string counts = counted(
        reproduction.changes,
        {analysis::name_of(yes), analysis::name_of(no), analysis::name_of(opposite), analysis::name_of(undecided)},
        [](const auto& row) { return std::string_view(analysis::name_of(row.reproduced)); });
    headline =
        fmt::format("Of {} tried on both sides: {}.", plural(std::ssize(reproduction.changes), "change"), counts);
  }
  Answer text;
  text.said.add(Paragraph{std::move(headline), true});
  text.said.add(Paragraph{fmt::format("A: {}. B: {}.", reproduction.first, reproduction.second)});
  using Row = analysis::ChangeReproduction;
  Table table;
  const auto add = [&](Table::Column column, const auto& cell_of) {
    table.add(std::move(column), reproduction.changes, cell_of);
  };
  const auto add_side = [&](const std::string& side, double confidence, analysis::Change Row::*change) {
    add({side}, [change](const Row& row) {
      const analysis::Judgement& judged = (row.*change).judgement;
      const bool none = judged.verdict == analysis::Verdict::none && judged.reason != analysis::Reason::failed;
      return fmt::format("{} {}", none ? "no verdict" : analysis::name_of(judged), change_words((row.*change).ratio));
    });
    add({.heading = side + " " + interval_heading(confidence), .worth = 20},
        [change](const Row& row) { return interval_cell((row.*change).low, (row.*change).high); });
    add({.heading = side + " n", .worth = 10},
        [change](const Row& row) { return (row.*change).n > 0 ? std::to_string((row.*change).n) : ""; });
  };
  add({.heading = "change", .words = true, .names_cases = true}, [](const Row& row) { return case_cell(row.name); });
  add_side("A", reproduction.first_confidence, &Row::first);
  add_side("B", reproduction.second_confidence, &Row::second);
  add({"verdict", true}, [](const Row& row) { return analysis::name_of(row.reproduced); });
  std::vector<double> weights;
  for (const Row& row : reproduction.changes)
    weights.push_back(weight_of(row.first, store::CaseRole::change) + weight_of(row.second, store::CaseRole::change));
  text.said.add(heaviest_rows(std::move(table), weights, whole));
  text.how_to_read = {
      "Each change is its case's step time against the baseline of its own side, so machines can be compared whose "
      "times cannot. Reproduced: proven faster on both, slower on both or the same on both. Not reproduced: it moved "
      "on one and is proven the same on the other. Undecided: there is no verdict on one side.",
      "n counts the rounds of a run; how much another run would differ is not estimated."};
  for (const std::string& line : first_lines(reproduction.only_in_one, whole))
    text.how_to_read.push_back(fmt::format("Not compared: {}.", line));
  return text;
}

Answer text_of(const analysis::History& history, const CompareReport&, bool whole) {
  Answer text;
  text.said.add(Paragraph{headline_of(history), true});
  text.said.add(case_rows(history, whole));
  text.how_to_read = {
      fmt::format("One number per run and case. The largest shift of the mean of their logarithms is held against "
                  "permutations of the runs; p counts for all cases together, and up to {:.2g} a change is proven. ~: "
                  "none is.",
                  1 - history.confidence),
      "Only the largest change of a case is named. A slow drift is named as the step that fits it best. One odd run is "
      "no change: with ten runs a change must have lasted for two."};
  return text;
}

}  // namespace harness::report
