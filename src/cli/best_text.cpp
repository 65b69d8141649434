#include "cli/best_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "plan/fit.h"
#include "report/table.h"

namespace harness::cli {
namespace {

constexpr std::size_t widest = 120;  // columns; settings that do not fit go on in the next line

std::string in_words(const RankedCombination& combination) {
  std::vector<std::string> parts;
  for (const auto& [variable, value] : combination.settings) parts.push_back(fmt::format("{}={}", variable, value));
  return parts.empty() ? "baseline" : join(parts, " + ");
}

std::vector<report::Cell> row_of(const plan::Plan& p, const std::string& place, const RankedCombination& c) {
  std::string distance;
  if (c.distance > 0)
    distance = fmt::format("{:+.1f} %{}", 100 * c.distance, c.is_told_apart ? "" : ", not told apart");
  return {place,
          show_seconds(c.predicted.step->step_s),
          c.predicted.mfu ? percent(*c.predicted.mfu) : "",
          distance,
          show_bytes(plan::planned_memory_bytes(p.experiment.backend, c.planned)),
          in_words(c)};
}

std::string table_of(const plan::Plan& p, const Best& best) {
  report::Table table;
  table.columns = {{"place"}, {"predicted step"}, {"MFU"}, {"behind the first"}, {"memory/rank"}, {"settings", true}};
  for (std::size_t i = 0; i < best.fastest.size(); ++i)
    table.rows.push_back(row_of(p, std::to_string(i + 1), best.fastest[i]));
  const auto is_baseline = [](const RankedCombination& c) { return c.settings.empty(); };
  if (best.baseline && std::ranges::none_of(best.fastest, is_baseline))
    table.rows.push_back(row_of(p, "", *best.baseline));
  std::string text;
  for (const report::Table& narrow : report::narrowed(table, widest)) text += narrow.text();
  return text;
}

// The reasons that refuse most, each with its number.
std::string reasons(const Best& best) {
  constexpr std::size_t most_shown = 6;
  std::vector<std::pair<std::size_t, std::string>> by_number;
  std::size_t others = 0;
  for (const auto& [reason, number] : best.refused) by_number.emplace_back(number, reason);
  std::ranges::stable_sort(by_number, std::greater<>(), &std::pair<std::size_t, std::string>::first);
  std::string text;
  for (std::size_t i = 0; i < by_number.size(); ++i) {
    if (i < most_shown) {
      text += fmt::format("  {}: {}\n", by_number[i].first, by_number[i].second);
    } else {
      others += by_number[i].first;
    }
  }
  return others == 0 ? text : text + fmt::format("  {}: for other reasons (--format json has all)\n", others);
}

std::string what_became_of_them(const Best& best) {
  std::vector<std::string> names;
  for (const plan::Values& v : best.variables)
    names.push_back(fmt::format("{} ({})", v.variable->name, v.values.size()));
  std::size_t refused = 0;
  for (const auto& [reason, number] : best.refused) refused += number;
  std::string text = fmt::format("{:.0f} combinations of the values of {}\n", best.combinations, join(names, ", "));
  if (!best.all) {
    text += fmt::format(
        "too many to predict each: a search went from the baseline and from each single change on, one value at a "
        "time, "
        "as long as that was faster. It looked at {}; a faster combination may exist.\n",
        best.alike + refused + best.predicted);
  }
  text += fmt::format("predicted: {}; another one's step, for a value in it has no effect: {}; refused: {}\n",
                      best.predicted, best.alike, refused);
  text += reasons(best);
  if (best.same_time > 0)
    text += fmt::format("not listed: {}, whose step is exactly that of one with fewer changes\n", best.same_time);
  if (!best.left_out.empty())
    text += fmt::format("as in the baseline: {} (no value of it makes the same training faster)\n",
                        join(best.left_out, ", "));
  return text;
}

// With the calibration of the others, where the first alone would get another.
std::string overrides_of(const config::Experiment& experiment, const RankedCombination& first) {
  if (first.settings.empty()) return "";
  std::string text = "the first, as overrides:\n ";
  for (const auto& [variable, value] : first.settings) text += fmt::format(" --set 'baseline.{}={}'", variable, value);
  const std::string& calibration = experiment.calibration->file;
  if (!experiment.names_calibration && calibration != config::usual_calibration(first.planned.settings).file)
    text += fmt::format(" --set 'calibration={}'", calibration);
  return text + "\n";
}

}  // namespace

std::string best_text(const plan::Plan& p, const Best& best) {
  std::string text = fmt::format("\n{}\n{}", predicted_heading(p), table_of(p, best));
  text += "behind the first: by how much the step is longer, per token.\n";
  text += fmt::format("not told apart from the first: {} of the {} predicted, too close to call\n", best.close - 1,
                      best.predicted - 1);
  text += what_became_of_them(best) + overrides_of(p.experiment, best.fastest.front());
  std::vector<PredictedCase> shown;
  for (const RankedCombination& c : best.fastest) shown.push_back(c.predicted);
  return text + errors_text(p.experiment, shown);
}

}  // namespace harness::cli
