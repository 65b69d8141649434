#include "report/comparison_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/words.h"

namespace harness {
namespace {

std::string bound(double ratio) {
  constexpr double most = 10, least = -0.9;  // intervals of two or three values reach to nowhere
  const double share = ratio - 1;
  if (share > most) return "over " + signed_percent(most, 0);
  if (share < least) return "under " + signed_percent(least, 0);
  return signed_percent(share);
}

std::string interval(double low, double high) {
  return std::isfinite(low) && std::isfinite(high) ? fmt::format("[{}, {}]", bound(low), bound(high)) : "";
}

// The relative scatter of what one side's value rests on.
std::string scatter(const std::vector<double>& values) {
  if (values.size() < 2) return "";
  double mean = 0, squares = 0;
  for (const double value : values) mean += std::log(value) / static_cast<double>(values.size());
  for (const double value : values) squares += std::pow(std::log(value) - mean, 2);
  return fmt::format(" ± {:.1f} %", 100 * std::sqrt(squares / static_cast<double>(values.size() - 1)));
}

std::string count_of(const Comparison& comparison, const CaseComparison& row) {
  const auto n = [&](const CaseSide& side) {
    return comparison.between_runs ? side.run_seconds.size() : side.block_seconds.size();
  };
  return fmt::format("{}+{}", n(row.first), n(row.second));
}

bool both(const CaseComparison& row) {
  return !row.first.run_seconds.empty() && !row.second.run_seconds.empty();
}

std::string verdict_of(const CaseComparison& row) {
  if (!both(row))
    return row.first.run_seconds.empty() ? (row.second.run_seconds.empty() ? "not measured" : "not measured in A")
                                         : "not measured in B";
  return name_of(row.judgement);
}

struct PartOfBoth {
  std::string name;
  double first, second;  // NaN where that side has no such part
};

// In the first side's order, what only the second has last; nothing where a side says nothing of its parts.
std::vector<PartOfBoth> parts_side_by_side(const CaseComparison& row) {
  if (row.first.parts.empty() || row.second.parts.empty()) return {};
  std::vector<PartOfBoth> both;
  for (const StepPart& part : row.first.parts) both.push_back({part.name, part.seconds, NAN});
  for (const StepPart& part : row.second.parts) {
    const auto at = std::ranges::find(both, part.name, &PartOfBoth::name);
    if (at == both.end()) {
      both.push_back({part.name, NAN, part.seconds});
    } else {
      at->second = part.seconds;
    }
  }
  return both;
}

// With its sign, but for what prints as zero.
std::string difference(double seconds, const Scale& scale) {
  if (!std::isfinite(seconds)) return "";
  const std::string digits = scale.print(std::abs(seconds));
  const bool zero = digits.find_first_of("123456789") == std::string::npos;
  return (zero ? "" : seconds < 0 ? "-" : "+") + digits;
}

}  // namespace

Table comparison_table(const Comparison& comparison) {
  std::vector<double> seconds;
  bool any_mfu = false;
  for (const CaseComparison& row : comparison.cases) {
    for (const CaseSide* side : {&row.first, &row.second}) {
      if (std::isfinite(side->step_seconds)) seconds.push_back(side->step_seconds);
      any_mfu |= side->mfu.has_value();
    }
  }
  const Scale scale = scale_of_seconds(seconds);
  Table table;
  table.columns = {{"case", true},           {"A step " + scale.unit},
                   {"B step " + scale.unit}, {"change"},
                   {"95 % interval"},        {"n"},
                   {"A tokens/s"},           {"B tokens/s"}};
  if (any_mfu) table.columns.insert(table.columns.end(), {{"A MFU"}, {"B MFU"}});
  table.columns.push_back({"verdict", true});
  for (const CaseComparison& row : comparison.cases) {
    const auto step = [&](const CaseSide& side) {
      if (!std::isfinite(side.step_seconds)) return std::string();
      return scale.print(side.step_seconds) + scatter(comparison.between_runs ? side.run_seconds : side.block_seconds);
    };
    std::vector<std::string> cells{row.name, step(row.first), step(row.second)};
    cells.push_back(!both(row) ? "" : moved(row.judgement.verdict) ? signed_percent(row.ratio - 1) : "~");
    cells.push_back(interval(row.low, row.high));
    cells.push_back(both(row) ? count_of(comparison, row) : "");
    for (const CaseSide* side : {&row.first, &row.second}) cells.push_back(Scale{}.print(side->tokens_per_second));
    if (any_mfu) {
      for (const CaseSide* side : {&row.first, &row.second}) cells.push_back(side->mfu ? percent(*side->mfu) : "");
    }
    cells.push_back(verdict_of(row));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table parts_table(const Comparison& comparison) {
  // Of a long sweep the cases that did not move would bury those that did; JSON has them all.
  const auto shown = [](const CaseComparison& row) {
    return row.role == CaseRole::baseline || moved(row.judgement.verdict);
  };
  std::vector<double> seconds;
  for (const CaseComparison& row : comparison.cases) {
    if (!shown(row)) continue;
    for (const CaseSide* side : {&row.first, &row.second}) {
      for (const StepPart& part : side->parts) seconds.push_back(part.seconds);
    }
  }
  const double longest = seconds.empty() ? 0 : *std::max_element(seconds.begin(), seconds.end());
  const Scale scale = scale_of_seconds(std::vector<double>{longest});
  Table table;
  table.columns = {{"case", true}, {"part of a step", true}, {"A " + scale.unit}, {"B " + scale.unit}, {"B - A"}};
  for (const CaseComparison& row : comparison.cases) {
    if (!shown(row)) continue;
    for (const auto& [name, before, after] : parts_side_by_side(row)) {
      table.rows.push_back(
          {row.name, name, scale.print(before), scale.print(after), difference(after - before, scale)});
    }
  }
  return table;
}

std::vector<std::string> comparison_notes(const Comparison& comparison) {
  std::vector<std::string> notes;
  std::string change = "Change: step time of B against A";
  if (std::any_of(comparison.cases.begin(), comparison.cases.end(), [](const auto& row) { return row.per_token; })) {
    change = "Change: time per token of B against A (batches differ)";
  }
  change += fmt::format("; ~ where none is proven; a verdict must clear {:.3g} %", 100 * comparison.smallest_effect);
  if (comparison.comparisons > 1) {
    change += fmt::format("; intervals hold for all {} comparisons together", comparison.comparisons);
  }
  notes.push_back(change + ".");
  if (comparison.between_runs) {
    notes.push_back(
        "n counts runs. The interval is between runs: Welch's t (trimmed by Yuen from five runs a side) on "
        "the logarithms of the runs' median step times.");
  } else {
    notes.push_back(
        "Between-run variation is not estimated: that takes three runs or more on each side. n counts blocks, and the "
        "interval comes from the scatter of blocks within runs, which is only a lower bound of the uncertainty: "
        "another "
        "allocation of the same machine may differ by more than a verdict here says.");
  }
  if (comparison.same_run) {
    notes.push_back("The same run stands on both sides: what agrees there is no evidence of anything.");
  }
  for (const std::string& line : comparison.not_aligned) notes.push_back("Not compared: " + line + ".");
  return notes;
}

std::string comparison_headline(const Comparison& comparison) {
  int faster = 0, slower = 0, same = 0, open = 0, missing = 0;
  for (const CaseComparison& row : comparison.cases) {
    faster += row.judgement.verdict == Verdict::faster;
    slower += row.judgement.verdict == Verdict::slower;
    same += row.judgement.verdict == Verdict::same;
    missing += !both(row);
    open += both(row) && (row.judgement.verdict == Verdict::unresolved || row.judgement.verdict == Verdict::none);
  }
  if (comparison.cases.empty()) return "No case of one side is a case of the other: nothing to compare.";
  std::vector<std::string> parts;
  const auto add = [&](int n, const char* what) {
    if (n > 0) parts.push_back(fmt::format("{} {}", n, what));
  };
  add(slower, "slower");
  add(faster, "faster");
  add(same, "the same");
  add(open, "unresolved");
  add(missing, "not measured on a side");
  return fmt::format("Of {} {} in both, B is: {}.", comparison.cases.size(),
                     comparison.cases.size() == 1 ? "case" : "cases", join(parts, ", "));
}

Table reproduction_table(const Reproduction& reproduction) {
  Table table;
  table.columns = {{"change", true},    {"A"},   {"A 95 % interval"}, {"A n"},     {"B"},
                   {"B 95 % interval"}, {"B n"}, {"A", true},         {"B", true}, {"verdict", true}};
  for (const ChangeReproduction& row : reproduction.changes) {
    std::vector<std::string> cells{row.name};
    for (const SideChange* side : {&row.first, &row.second}) {
      cells.push_back(std::isfinite(side->ratio) ? signed_percent(side->ratio - 1) : "");
      cells.push_back(interval(side->low, side->high));
      cells.push_back(side->n > 0 ? std::to_string(side->n) : "");
    }
    for (const SideChange* side : {&row.first, &row.second}) {
      cells.push_back(side->verdict == Verdict::none ? "not told" : name_of(side->verdict));
    }
    cells.push_back(name_of(row.reproduced));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<std::string> reproduction_notes(const Reproduction& reproduction) {
  std::vector<std::string> notes;
  notes.push_back(
      "Each change is its case's step time against the baseline of its own side, so two machines can be "
      "set side by side whose times cannot. Reproduced: proven faster on both, slower on both or the same "
      "on both. Not reproduced: it moved on one and is proven the same on the other. Undecided: one side "
      "cannot tell.");
  const auto unit = [&](bool by_runs, const char* side) {
    notes.push_back(std::string(side) +
                    (by_runs ? ": n counts runs, and the interval is between them."
                             : ": one run; n counts its rounds, and what another run would say is not estimated."));
  };
  unit(reproduction.first_by_runs, "A");
  unit(reproduction.second_by_runs, "B");
  for (const std::string& line : reproduction.only_in_one) notes.push_back("Not compared: " + line + ".");
  return notes;
}

std::string reproduction_headline(const Reproduction& reproduction) {
  int counts[4] = {};
  for (const ChangeReproduction& row : reproduction.changes) ++counts[static_cast<int>(row.reproduced)];
  if (reproduction.changes.empty()) return "No change was tried on both sides: nothing to reproduce.";
  std::vector<std::string> parts;
  for (const Reproduced what : {Reproduced::yes, Reproduced::no, Reproduced::opposite, Reproduced::undecided}) {
    const int n = counts[static_cast<int>(what)];
    if (n > 0) parts.push_back(fmt::format("{} {}", n, name_of(what)));
  }
  return fmt::format("Of {} {} tried on both sides: {}.", reproduction.changes.size(),
                     reproduction.changes.size() == 1 ? "change" : "changes", join(parts, ", "));
}

}  // namespace harness
