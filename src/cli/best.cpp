#include "cli/best.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/fit.h"
#include "plan/survey.h"
#include "report/table.h"

namespace harness::cli {
namespace {

using plan::Choice;

// So many times `limit` are looked at for whether they can run, which is quicker than a prediction.
constexpr std::size_t looked_through = 16;

// Whether the first has all the changes of the second.
bool includes(const Choice& choice, const Choice& fewer) {
  for (std::size_t i = 0; i < choice.size(); ++i)
    if (fewer[i] != 0 && fewer[i] != choice[i]) return false;
  return true;
}

// A combination by its time per work: the fastest first, then those with fewer changes; infinite without a prediction.
struct Timed {
  double seconds_per_work = 0;
  std::size_t changes = 0;
  Choice choice;

  auto operator<=>(const Timed&) const = default;
};

class Search {
 public:
  Search(const plan::Plan& plan, std::size_t limit, const std::function<void(const std::string&)>& say)
      : plan_(plan),
        limit_(limit),
        say_(say),
        combinations_(plan),
        predict_(plan),
        surveyor_(plan_.experiment.model, plan.experiment.backend) {
    best_.variables = combinations_.variables();
    best_.left_out = combinations_.left_out();
    best_.combinations = combinations_.count();
  }

  Best fastest(std::size_t wanted) {
    std::set<Timed> to_go_on_from{look_at(combinations_.first())};
    while (!to_go_on_from.empty() && has_room()) {
      const Choice here = to_go_on_from.extract(to_go_on_from.begin()).value().choice;
      for (const Choice& neighbour : combinations_.neighbours(here)) {
        if (!seen_.contains(neighbour) && has_room()) to_go_on_from.insert(look_at(neighbour));
      }
    }
    best_.all = static_cast<double>(seen_.size()) == best_.combinations;
    best_.predicted = timed_.size();
    if (timed_.empty()) {
      fail("--best: no combination has a prediction{}",
           best_.refused.empty() ? "" : fmt::format("; the first reason: {}", best_.refused.begin()->first));
    }
    rank({timed_.begin(), timed_.end()}, wanted);
    return std::move(best_);
  }

 private:
  bool has_room() const { return timed_.size() < limit_ && seen_.size() < looked_through * limit_; }

  // Predicts it if it can run, and counts what became of it.
  Timed look_at(const Choice& choice) {
    seen_.insert(choice);
    if (say_) say_(fmt::format("{} combinations looked at", seen_.size()));
    Timed timed{std::numeric_limits<double>::infinity(),
                choice.size() - static_cast<std::size_t>(std::ranges::count(choice, std::size_t{0})), choice};
    plan::PlannedCase planned = combinations_.planned(choice);
    if (!planned.is_possible()) {
      ++best_.refused[planned.impossible];
    } else if (planned.is_alike) {
      ++best_.alike;
    } else if (const PredictedCase predicted = predicted_of(planned); predicted.step) {
      timed.seconds_per_work = seconds_per_work(planned, predicted);
      timed_.insert(timed);
    } else {
      ++best_.refused[predicted.cause];
    }
    return timed;
  }

  // With its survey; `cause` says why there is no step.
  PredictedCase predicted_of(plan::PlannedCase& planned) {
    planned.survey = surveyor_.survey(planned);
    const plan::DeviceMemory memory = plan::configured_memory(plan_.experiment);
    const double bytes = plan::planned_memory_bytes(plan_.experiment.backend, planned);
    PredictedCase predicted;
    if (!plan::why_too_large(planned, bytes, memory, "needs").empty()) {
      predicted.cause =
          fmt::format("needs more memory than a rank has ({}, {})", show_bytes(memory.bytes), memory.source);
      return predicted;
    }
    return predict_(planned);
  }

  RankedCombination ranked(const Timed& timed, double least) {
    RankedCombination out;
    for (std::size_t i = 0; i < timed.choice.size(); ++i) {
      const plan::Values& v = best_.variables[i];
      if (timed.choice[i] != 0) out.settings.emplace_back(v.variable->name, v.values[timed.choice[i]]);
    }
    out.planned = combinations_.planned(timed.choice);
    out.predicted = predicted_of(out.planned);
    out.distance = timed.seconds_per_work / least - 1;
    out.is_told_apart = out.distance > 0 && !too_close_to_call(out.distance, plan_.experiment);
    return out;
  }

  // `timed`: the fastest first.
  void rank(const std::vector<Timed>& timed, std::size_t wanted) {
    const double least = timed.front().seconds_per_work;
    std::vector<const Timed*> distinct;
    for (const Timed& t : timed) {
      if (!(t.seconds_per_work > least) || too_close_to_call(t.seconds_per_work / least - 1, plan_.experiment))
        ++best_.close;
      const bool adds_nothing = std::ranges::any_of(distinct, [&](const Timed* other) {
        return other->seconds_per_work == t.seconds_per_work && includes(t.choice, other->choice);
      });
      if (adds_nothing) {
        ++best_.same_time;
        continue;
      }
      distinct.push_back(&t);
    }
    for (std::size_t i = 0; i < std::min(wanted, distinct.size()); ++i)
      best_.fastest.push_back(ranked(*distinct[i], least));
    const auto of_baseline = std::ranges::find(timed, combinations_.first(), &Timed::choice);
    if (of_baseline != timed.end()) best_.baseline = ranked(*of_baseline, least);
  }

  const plan::Plan& plan_;
  const std::size_t limit_;
  const std::function<void(const std::string&)>& say_;
  const plan::Combinations combinations_;
  const Predictor predict_;
  plan::Surveyor surveyor_;
  std::set<Choice> seen_;
  std::set<Timed> timed_;  // those that have a prediction
  Best best_;
};

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
        "too many to predict each: a search began at the baseline and went on from the fastest found, one value at a "
        "time. It looked at {}; a faster combination may exist.\n",
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

std::string overrides_of(const RankedCombination& first) {
  if (first.settings.empty()) return "";
  std::string text = "the first, as overrides:\n ";
  for (const auto& [variable, value] : first.settings) text += fmt::format(" --set 'baseline.{}={}'", variable, value);
  return text + "\n";
}

}  // namespace

Best find_best(const plan::Plan& plan, std::size_t wanted, std::size_t limit,
               const std::function<void(const std::string&)>& say) {
  if (!config::traits_of(plan.experiment.backend).predicts())
    fail("--best ranks predictions, and backend {} has none; add --backend sim",
         config::name_of(plan.experiment.backend));
  if (plan.experiment.baseline.workload != config::training_workload)
    fail("--best ranks training steps; workload {} repeats one operation", plan.experiment.baseline.workload);
  return Search(plan, limit, say).fastest(wanted);
}

std::string best_text(const plan::Plan& p, const Best& best) {
  std::string text = fmt::format("\n{}\n{}", predicted_heading(p), table_of(p, best));
  text += "behind the first: by how much the step is longer, per token.\n";
  text += fmt::format("not told apart from the first: {} of the {} predicted, too close to call\n", best.close - 1,
                      best.predicted - 1);
  text += what_became_of_them(best) + overrides_of(best.fastest.front());
  std::vector<PredictedCase> shown;
  for (const RankedCombination& c : best.fastest) shown.push_back(c.predicted);
  return text + errors_text(p.experiment, shown);
}

}  // namespace harness::cli
