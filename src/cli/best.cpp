#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <tuple>
#include <variant>

#include "base/text.h"
#include "base/units.h"
#include "cli/plan.h"
#include "report/sections.h"

namespace harness::cli {
namespace {

using plan::Choice;

struct Timed {
  Choice choice;
  double seconds_per_work = 0;
};

std::size_t changes_of(const Choice& choice) {
  return choice.size() - static_cast<std::size_t>(std::ranges::count(choice, std::size_t{0}));
}

class Search {
 public:
  Search(const plan::Plan& plan, const std::function<void(const std::string&)>& say)
      : plan_(plan), say_(say), combinations_(plan), network_(network_of(plan)) {
    best_.variables = combinations_.variables();
    best_.left_out = combinations_.left_out();
    best_.combinations = static_cast<std::size_t>(combinations_.count());
  }

  Best fastest(std::size_t wanted) {
    std::vector<Timed> timed = predict(those_that_can_run());
    if (timed.empty()) {
      const std::string why =
          best_.refused.empty() ? "" : fmt::format("; the first reason: {}", best_.refused.begin()->first);
      fail("--best: no combination has a prediction{}", why);
    }
    best_.predicted = timed.size();
    std::ranges::sort(timed, [](const Timed& a, const Timed& b) {
      return std::tuple(a.seconds_per_work, changes_of(a.choice), a.choice) <
             std::tuple(b.seconds_per_work, changes_of(b.choice), b.choice);
    });
    const double least = timed.front().seconds_per_work;
    best_.close = static_cast<std::size_t>(std::ranges::count_if(timed.begin() + 1, timed.end(), [&](const Timed& t) {
      return too_close_to_call(t.seconds_per_work / least - 1, plan_.experiment);
    }));
    for (std::size_t i = 0; i < std::min(wanted, timed.size()); ++i) best_.fastest.push_back(ranked(timed[i], least));
    const auto baseline = std::ranges::find(timed, combinations_.first(), &Timed::choice);
    if (baseline != timed.end()) best_.baseline = ranked(*baseline, least);
    return std::move(best_);
  }

 private:
  std::vector<Choice> those_that_can_run() {
    std::vector<Choice> possible;
    Choice choice = combinations_.first();
    do {
      const plan::PlannedCase planned = combinations_.planned(choice);
      if (!planned.is_possible()) {
        ++best_.refused[planned.impossible];
      } else if (planned.is_alike) {
        ++best_.alike;
      } else {
        possible.push_back(choice);
      }
    } while (combinations_.next(choice));
    return possible;
  }

  // Predicts the choices on up to this many cores, because each needs the memory of a step.
  std::vector<Timed> predict(const std::vector<Choice>& choices) {
    constexpr unsigned most_at_once = 8;
    std::vector<std::variant<double, std::string>> outcomes(choices.size());  // seconds, or why there are none
    std::atomic<std::size_t> next = 0;
    const auto work = [&](bool says) {
      plan::Surveyor surveyor(plan_.experiment.model, plan_.experiment.backend);
      for (std::size_t i = next++; i < choices.size(); i = next++) {
        if (says && say_) say_(fmt::format("{} of {} combinations", i + 1, choices.size()));
        plan::PlannedCase planned = combinations_.planned(choices[i]);
        const PredictedCase predicted = predicted_of(planned, surveyor);
        if (predicted.step) {
          outcomes[i] = seconds_per_work(planned, predicted);
        } else {
          outcomes[i] = predicted.cause;
        }
      }
    };
    std::vector<std::future<void>> others;
    for (unsigned core = 1; core < std::min(std::thread::hardware_concurrency(), most_at_once); ++core)
      others.push_back(std::async(std::launch::async, work, false));
    work(true);
    for (std::future<void>& other : others) other.get();
    std::vector<Timed> timed;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (const double* seconds = std::get_if<double>(&outcomes[i])) {
        timed.push_back({choices[i], *seconds});
      } else {
        ++best_.refused[std::get<std::string>(outcomes[i])];
      }
    }
    return timed;
  }

  // Surveys the case and predicts it; `cause` says why there is no step.
  PredictedCase predicted_of(plan::PlannedCase& planned, plan::Surveyor& surveyor) const {
    planned.survey = surveyor.survey(planned);
    const plan::DeviceMemory memory = plan::configured_memory(plan_.experiment);
    const double bytes = plan::planned_memory_bytes(plan_.experiment, planned);
    if (plan::why_too_large(planned, bytes, memory, "needs").empty())
      return predict_case(plan_, network_, planned, surveyor.take_step());
    PredictedCase predicted;
    const double cap = planned.settings.memory_cap;
    predicted.cause = fmt::format("needs more memory than a rank has ({}{}, {})", cap != 1 ? percent(cap) + " of " : "",
                                  show_bytes(memory.bytes), memory.source);
    return predicted;
  }

  RankedCombination ranked(const Timed& timed, double least) const {
    RankedCombination out;
    for (std::size_t i = 0; i < timed.choice.size(); ++i) {
      const plan::Values& v = best_.variables[i];
      if (timed.choice[i] != 0) out.settings.emplace_back(v.variable->name, v.values[timed.choice[i]]);
    }
    out.planned = combinations_.planned(timed.choice);
    plan::Surveyor surveyor(plan_.experiment.model, plan_.experiment.backend);
    out.predicted = predicted_of(out.planned, surveyor);
    out.distance = timed.seconds_per_work / least - 1;
    out.is_told_apart = out.distance > 0 && !too_close_to_call(out.distance, plan_.experiment);
    return out;
  }

  const plan::Plan& plan_;
  const std::function<void(const std::string&)>& say_;
  const plan::Combinations combinations_;
  const sim::Network network_;
  Best best_;
};

std::string in_words(const RankedCombination& combination) {
  std::vector<std::string> parts;
  for (const auto& [variable, value] : combination.settings) parts.push_back(fmt::format("{}={}", variable, value));
  return parts.empty() ? "baseline" : join(parts, " + ");
}

std::vector<report::Cell> row_of(const plan::Plan& p, const std::string& place, const RankedCombination& c) {
  const std::string distance = signed_percent(c.distance) + (c.is_told_apart ? "" : ", not told apart");
  return {place,
          report::case_cell(in_words(c)),
          show_seconds(c.predicted.step->step_s),
          c.predicted.mfu ? percent(*c.predicted.mfu) : "",
          c.distance > 0 ? distance : "",
          show_bytes(plan::planned_memory_bytes(p.experiment, c.planned))};
}

report::Numbers table_of(const plan::Plan& p, const Best& best) {
  report::Table table;
  table.columns = {{.heading = "place", .words = true, .names_cases = true},
                   {"settings", true},
                   {"predicted step"},
                   {"MFU"},
                   {"behind the first"},
                   {.heading = "memory/rank", .worth = 10}};
  if (best.predicted > 1) {
    table.columns[4].legend = fmt::format(
        "behind the first: by how much the step is longer, per token; not told apart from the first: {} of the {} "
        "others, too close to call",
        best.close, best.predicted - 1);
  }
  for (std::size_t i = 0; i < best.fastest.size(); ++i)
    table.rows.push_back(row_of(p, std::to_string(i + 1), best.fastest[i]));
  const auto is_baseline = [](const RankedCombination& c) { return c.settings.empty(); };
  if (best.baseline && std::ranges::none_of(best.fastest, is_baseline))
    table.rows.push_back(row_of(p, "", *best.baseline));
  return {"", std::move(table)};
}

report::List reasons(const Best& best) {
  constexpr std::size_t most_shown = 6;
  std::vector<std::pair<std::string, std::size_t>> reasons(best.refused.begin(), best.refused.end());
  std::ranges::stable_sort(reasons, std::greater<>(), &std::pair<std::string, std::size_t>::second);
  report::List list;
  for (const auto& [reason, number] : reasons) {
    if (list.items.size() == most_shown) {
      list.items.push_back(fmt::format("{} more reasons: --format json has all", reasons.size() - most_shown));
      break;
    }
    list.items.push_back(fmt::format("{}: {}", number, reason));
  }
  return list;
}

void add_outcomes(const Best& best, report::Section& section) {
  std::vector<std::string> names;
  for (const plan::Values& v : best.variables)
    names.push_back(fmt::format("{} ({})", v.variable->name, v.values.size()));
  std::size_t refused = 0;
  for (const auto& [reason, number] : best.refused) refused += number;
  section.add(
      report::List{{fmt::format("{} combinations of the values of {}", best.combinations, join(names, ", ")),
                    fmt::format("predicted: {}; another one's step, for a value in it has no effect: {}; refused: {}",
                                best.predicted, best.alike, refused)},
                   report::List::Mark::none});
  section.add(reasons(best));
  if (best.left_out.empty()) return;
  section.add(report::List{{fmt::format("as in the baseline: {} (no value of it makes the same training faster)",
                                        join(best.left_out, ", "))},
                           report::List::Mark::none});
}

// "" if the first is the baseline. Adds the calibration if the first combination alone would select another one.
std::string overrides_of(const config::Experiment& experiment, const RankedCombination& first) {
  std::vector<std::string> words;
  for (const auto& [variable, value] : first.settings)
    words.push_back(fmt::format("--set 'baseline.{}={}'", variable, value));
  // A map in --set leaves the keys that it does not name, and a layout does not name a context axis of one rank.
  if (experiment.baseline.context() > 1 && first.planned.settings.context() == 1)
    words.emplace_back("--set 'baseline.layout.context_parallel=1'");
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
  const double combinations = plan::Combinations(plan).count();
  if (combinations > static_cast<double>(limit))
    fail("--best: the swept values have {:.0f} combinations, more than the {} that are predicted; --only some of them",
         combinations, limit);
  return Search(plan, say).fastest(wanted);
}

report::Section best_section(const plan::Plan& p, const Best& best) {
  report::Section section{"best", "", {}};
  section.add(table_of(p, best));
  section.add(prediction_lines(p));
  add_outcomes(best, section);
  if (const std::string overrides = overrides_of(p.experiment, best.fastest.front()); !overrides.empty())
    section.add(report::Listing{"the first, as overrides:", overrides, false});
  std::vector<const sim::Trust*> trusts;
  for (const RankedCombination& c : best.fastest) trusts.push_back(&c.predicted.trust);
  add_trust(trusts, sim::smallest_effect(p.experiment), section);
  return section;
}

}  // namespace harness::cli
