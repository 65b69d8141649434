#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/plan_document.h"
#include "plan/prepare.h"
#include "plan/survey.h"

namespace harness::cli {
namespace {

using plan::Choice;

// For up to so many times `limit`, what can run is found out first. Of more, that alone would take too long.
constexpr double looked_through = 16;

struct Timed {
  Choice choice;
  double seconds_per_work = 0;
};

// The time of a combination, or why it has none.
struct Outcome {
  std::optional<double> seconds_per_work;
  std::string cause;
};

std::size_t changes_of(const Choice& choice) {
  return choice.size() - static_cast<std::size_t>(std::ranges::count(choice, std::size_t{0}));
}

// Whether the first has all the changes of the second.
bool includes(const Choice& choice, const Choice& fewer) {
  for (std::size_t i = 0; i < choice.size(); ++i)
    if (fewer[i] != 0 && fewer[i] != choice[i]) return false;
  return true;
}

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
    if (const auto possible = those_that_can_run()) {
      predict(*possible);
    } else {
      best_.all = false;
      best_.alike = 0;
      best_.refused.clear();
      climb();
    }
    std::vector<Timed> timed;
    for (const auto& [choice, seconds] : known_)
      if (seconds) timed.push_back({choice, *seconds});
    if (timed.empty()) fail("--best: no combination has a prediction{}", first_reason());
    best_.predicted = timed.size();
    std::ranges::sort(timed, [](const Timed& a, const Timed& b) {
      return std::tuple(a.seconds_per_work, changes_of(a.choice), a.choice) <
             std::tuple(b.seconds_per_work, changes_of(b.choice), b.choice);
    });
    rank(timed, wanted);
    return std::move(best_);
  }

 private:
  // Nothing if they are too many.
  std::optional<std::vector<Choice>> those_that_can_run() {
    if (best_.combinations > looked_through * static_cast<double>(limit_)) return std::nullopt;
    std::vector<Choice> possible;
    Choice choice = combinations_.first();
    do {
      if (can_run(combinations_.planned(choice))) possible.push_back(choice);
      if (possible.size() > limit_) return std::nullopt;
    } while (combinations_.next(choice));
    return possible;
  }

  bool can_run(const plan::PlannedCase& planned) {
    if (!planned.is_possible()) {
      ++best_.refused[planned.impossible];
    } else if (planned.is_alike) {
      ++best_.alike;
    } else {
      return true;
    }
    return false;
  }

  std::optional<double> seconds_of(const Choice& choice) {
    if (const auto known = known_.find(choice); known != known_.end()) return known->second;
    say_looked_at(known_.size() + 1);
    return note(choice, outcome_of(choice, surveyor_));
  }

  // All of these, on the cores that there are, up to so many: each takes the memory of a step.
  void predict(const std::vector<Choice>& choices) {
    std::vector<Outcome> outcomes(choices.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&](bool says) {
      plan::Surveyor surveyor(plan_.experiment.model, plan_.experiment.backend);
      for (std::size_t i = next++; i < choices.size(); i = next++) {
        if (says) say_looked_at(i + 1);
        outcomes[i] = outcome_of(choices[i], surveyor);
      }
    };
    std::vector<std::future<void>> others;
    constexpr unsigned most_at_once = 8;
    for (unsigned core = 1; core < std::min(std::thread::hardware_concurrency(), most_at_once); ++core)
      others.push_back(std::async(std::launch::async, work, false));
    work(true);
    for (std::future<void>& other : others) other.get();
    for (std::size_t i = 0; i < choices.size(); ++i) note(choices[i], outcomes[i]);
  }

  void say_looked_at(std::size_t number) const {
    if (say_) say_(fmt::format("{} combinations looked at", number));
  }

  std::optional<double> note(const Choice& choice, const Outcome& outcome) {
    if (!outcome.seconds_per_work) ++best_.refused[outcome.cause];
    return known_[choice] = outcome.seconds_per_work;
  }

  Outcome outcome_of(const Choice& choice, plan::Surveyor& surveyor) const {
    plan::PlannedCase planned = combinations_.planned(choice);
    const PredictedCase predicted = predicted_of(planned, surveyor);
    if (!predicted.step) return {{}, predicted.cause};
    return {seconds_per_work(planned, predicted), ""};
  }

  // With its survey; `cause` says why there is no step.
  PredictedCase predicted_of(plan::PlannedCase& planned, plan::Surveyor& surveyor) const {
    planned.survey = surveyor.survey(planned);
    const plan::DeviceMemory memory = plan::configured_memory(plan_.experiment);
    const double bytes = plan::planned_memory_bytes(plan_.experiment, planned);
    PredictedCase predicted;
    if (!plan::why_too_large(planned, bytes, memory, "needs").empty()) {
      predicted.cause =
          fmt::format("needs more memory than a rank has ({}, {})", show_bytes(memory.bytes), memory.source);
      return predicted;
    }
    return predict_(planned, surveyor.take_step());
  }

  // Nothing of a combination that cannot run.
  std::optional<double> seconds_if_it_runs(const Choice& choice) {
    if (const auto known = known_.find(choice); known != known_.end()) return known->second;
    if (can_run(combinations_.planned(choice))) return seconds_of(choice);
    return known_[choice];
  }

  std::vector<Choice> neighbours_of(const Choice& here) const {
    std::vector<Choice> neighbours;
    for (std::size_t i = 0; i < here.size(); ++i) {
      for (std::size_t value = 0; value < best_.variables[i].values.size(); ++value) {
        if (value == here[i]) continue;
        neighbours.push_back(here);
        neighbours.back()[i] = value;
      }
    }
    return neighbours;
  }

  // To the fastest neighbour, from there to its fastest, and so on.
  void climb_from(Choice here) {
    std::optional<double> seconds = seconds_if_it_runs(here);
    for (bool better = true; better;) {
      better = false;
      for (const Choice& neighbour : neighbours_of(here)) {
        if (known_.size() >= limit_) return;
        const std::optional<double> there = seconds_if_it_runs(neighbour);
        if (!there || (seconds && *there >= *seconds)) continue;
        seconds = there;
        here = neighbour;
        better = true;
      }
    }
  }

  // Two changes that help together alone are found from either.
  void climb() {
    climb_from(combinations_.first());
    for (const Choice& start : neighbours_of(combinations_.first())) climb_from(start);
  }

  RankedCombination ranked(const Timed& timed, double least) {
    RankedCombination out;
    for (std::size_t i = 0; i < timed.choice.size(); ++i) {
      const plan::Values& v = best_.variables[i];
      if (timed.choice[i] != 0) out.settings.emplace_back(v.variable->name, v.values[timed.choice[i]]);
    }
    out.planned = combinations_.planned(timed.choice);
    out.predicted = predicted_of(out.planned, surveyor_);
    out.distance = timed.seconds_per_work / least - 1;
    out.is_told_apart = out.distance > 0 && !too_close_to_call(out.distance, plan_.experiment);
    return out;
  }

  // `timed`: the fastest first.
  void rank(const std::vector<Timed>& timed, std::size_t wanted) {
    const double least = timed.front().seconds_per_work;
    std::vector<const Timed*> distinct;
    for (const Timed& t : timed) {
      if (&t != timed.data() && too_close_to_call(t.seconds_per_work / least - 1, plan_.experiment)) ++best_.close;
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
    const Choice start = combinations_.first();
    if (const auto of_baseline = known_[start]) best_.baseline = ranked({start, *of_baseline}, least);
  }

  std::string first_reason() const {
    return best_.refused.empty() ? "" : fmt::format("; the first reason: {}", best_.refused.begin()->first);
  }

  const plan::Plan& plan_;
  const std::size_t limit_;
  const std::function<void(const std::string&)>& say_;
  const plan::Combinations combinations_;
  const Predictor predict_;
  plan::Surveyor surveyor_;
  std::map<Choice, std::optional<double>> known_;  // seconds per token of those that were looked at
  Best best_;
};

std::string in_words(const RankedCombination& combination) {
  std::vector<std::string> parts;
  for (const auto& [variable, value] : combination.settings) parts.push_back(fmt::format("{}={}", variable, value));
  return parts.empty() ? "baseline" : join(parts, " + ");
}

std::vector<report::Cell> row_of(const plan::Plan& p, const std::string& place, const RankedCombination& c) {
  const std::string distance = fmt::format("{:+.1f} %{}", 100 * c.distance, c.is_told_apart ? "" : ", not told apart");
  return {place,
          in_words(c),
          show_seconds(c.predicted.step->step_s),
          c.predicted.mfu ? percent(*c.predicted.mfu) : "",
          c.distance > 0 ? distance : "",
          show_bytes(plan::planned_memory_bytes(p.experiment, c.planned))};
}

report::Numbers table_of(const plan::Plan& p, const Best& best) {
  report::Table table;
  table.columns = {{"place", true}, {"settings", true},   {"predicted step"},
                   {"MFU"},         {"behind the first"}, {.heading = "memory/rank", .worth = 10}};
  table.columns[4].legend = fmt::format(
      "behind the first: by how much the step is longer, per token; not told apart from the first: {} of the {} "
      "others, too close to call",
      best.close, best.predicted - 1);
  for (std::size_t i = 0; i < best.fastest.size(); ++i)
    table.rows.push_back(row_of(p, std::to_string(i + 1), best.fastest[i]));
  const auto is_baseline = [](const RankedCombination& c) { return c.settings.empty(); };
  if (best.baseline && std::ranges::none_of(best.fastest, is_baseline))
    table.rows.push_back(row_of(p, "", *best.baseline));
  return {"", std::move(table)};
}

// The reasons that refuse most, each with its number.
report::List reasons(const Best& best) {
  constexpr std::size_t most_shown = 6;
  std::vector<std::pair<std::size_t, std::string>> by_number;
  for (const auto& [reason, number] : best.refused) by_number.emplace_back(number, reason);
  std::ranges::stable_sort(by_number, std::greater<>(), &std::pair<std::size_t, std::string>::first);
  report::List list;
  std::size_t others = 0;
  for (std::size_t i = 0; i < by_number.size(); ++i) {
    if (i < most_shown) {
      list.items.push_back(fmt::format("{}: {}", by_number[i].first, by_number[i].second));
    } else {
      others += by_number[i].first;
    }
  }
  if (others > 0) list.items.push_back(fmt::format("{}: for other reasons (--format json has all)", others));
  return list;
}

void add_outcomes(const Best& best, report::Section& section) {
  std::vector<std::string> names;
  for (const plan::Values& v : best.variables)
    names.push_back(fmt::format("{} ({})", v.variable->name, v.values.size()));
  std::size_t refused = 0;
  for (const auto& [reason, number] : best.refused) refused += number;
  report::List list{{}, report::List::Mark::none};
  list.items.push_back(fmt::format("{:.0f} combinations of the values of {}", best.combinations, join(names, ", ")));
  if (!best.all) {
    list.items.push_back(fmt::format(
        "too many to predict each: a search went from the baseline and from each single change on, one value at a "
        "time, as long as that was faster. It looked at {}; a faster combination may exist.",
        best.alike + refused + best.predicted));
  }
  list.items.push_back(
      fmt::format("predicted: {}; another one's step, for a value in it has no effect: {}; refused: {}", best.predicted,
                  best.alike, refused));
  section.add(std::move(list));
  section.add(reasons(best));
  report::List rest{{}, report::List::Mark::none};
  if (best.same_time > 0) {
    rest.items.push_back(
        fmt::format("not listed: {}, whose step is exactly that of one with fewer changes", best.same_time));
  }
  if (!best.left_out.empty()) {
    rest.items.push_back(fmt::format("as in the baseline: {} (no value of it makes the same training faster)",
                                     join(best.left_out, ", ")));
  }
  section.add(std::move(rest));
}

// With the calibration of the others, where the first alone would get another; "" where the first is the baseline.
std::string overrides_of(const config::Experiment& experiment, const RankedCombination& first) {
  std::vector<std::string> words;
  for (const auto& [variable, value] : first.settings)
    words.push_back(fmt::format("--set 'baseline.{}={}'", variable, value));
  const std::string& calibration = experiment.calibration->file;
  const bool is_chosen = experiment.names_calibration || words.empty() ||
                         calibration == config::usual_calibration(first.planned.settings).file;
  if (!is_chosen) words.push_back(fmt::format("--set 'calibration={}'", calibration));
  return join(words, " ");
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

report::Section best_section(const plan::Plan& p, const Best& best) {
  report::Section section{"best", "", {}};
  section.add(prediction_lines(p));
  section.add(table_of(p, best));
  add_outcomes(best, section);
  if (const std::string overrides = overrides_of(p.experiment, best.fastest.front()); !overrides.empty())
    section.add(report::Listing{"the first, as overrides:", overrides, false});
  std::vector<PredictedCase> shown;
  for (const RankedCombination& c : best.fastest) shown.push_back(c.predicted);
  add_trust(p.experiment, shown, section);
  return section;
}

}  // namespace harness::cli
