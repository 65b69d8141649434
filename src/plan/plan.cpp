#include "plan/plan.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <span>

#include "base/random.h"
#include "base/text.h"
#include "base/units.h"
#include "program/links.h"

namespace harness::plan {

namespace {

PlannedCase make_case(const Plan& plan, std::string name, const config::Change& change) {
  const config::Experiment& experiment = plan.experiment;
  PlannedCase c;
  c.name = std::move(name);
  c.variable = change.variable;
  c.value = change.value;
  c.settings = change.settings;
  Division division =
      divide_ranks(experiment.model, c.settings, plan.ranks, under_faults(experiment, c.settings, plan.topology));
  c.layout = division.layout;
  c.impossible = std::move(division.why_impossible);
  if (c.impossible.empty()) c.impossible = why_impossible(c.settings, experiment.hardware);
  if (!c.impossible.empty()) return c;
  c.micro_batches = workloads::workload_of(c.settings).micro_batches(c.settings, c.layout);

  config::Settings known = c.settings;  // with its actual number of ranks and their placement
  known.ranks = c.layout.ranks();
  known.layout.replicas_of_node = c.layout.replicas_of_node;
  for (const config::Variable& variable : config::registry()) {
    if (std::string caution = variable.caution(known); !caution.empty()) c.notes.push_back(std::move(caution));
    if (!config::changes(change, variable, experiment.baseline)) continue;
    const std::string why = variable.without_effect(known);
    if (why.empty()) continue;
    // The baseline's value may have an effect here that this one takes away, or not go with the other changes.
    config::Settings before = known;
    variable.parse(before, variable.print(experiment.baseline));
    const bool was_idle =
        !variable.without_effect(before).empty() && why_impossible(before, experiment.hardware).empty();
    c.is_alike = c.is_alike || was_idle;
    c.notes.push_back(was_idle ? fmt::format("{} has no effect: {}", variable.name, why)
                               : fmt::format("{}={} does nothing here, unlike {}: {}", variable.name,
                                             variable.print(c.settings), variable.print(experiment.baseline), why));
  }
  return c;
}

// A list may hold the baseline's value, which is measured as the baseline. The configuration reader drops these, but
// not a number of ranks: only here it is known on how many the baseline runs.
bool is_the_baseline(const config::Experiment& experiment, const config::Change& change, int ranks) {
  const auto of = [&](const config::Settings& settings) { return settings.ranks == 0 ? ranks : settings.ranks; };
  return config::purpose_of(change.variable) == config::Purpose::scale &&
         of(change.settings) == of(experiment.baseline);
}

std::set<std::string> checked_selection(const config::Experiment& experiment, const std::vector<std::string>& only) {
  std::vector<std::string> cases{"baseline", "baseline_again"}, variables;
  for (const config::Change& change : experiment.changes) {
    if (!change.from_model.empty()) continue;
    cases.push_back(config::case_name(change));
    if (std::ranges::find(variables, change.variable) == variables.end()) variables.push_back(change.variable);
  }
  std::vector<std::string> known = variables;
  known.insert(known.end(), cases.begin(), cases.end());
  for (const std::string& word : only) {
    if (std::ranges::find(known, word) == known.end()) {
      fail("--only {}: there is no variable and no case of this name; variables: {}; cases: {}{}", word,
           variables.empty() ? "none" : join(variables, ", "), join(cases, ", "), did_you_mean(nearest(word, known)));
    }
  }
  return {only.begin(), only.end()};
}

std::string at_size(const std::string& name, const config::Change& size) {
  return name + " at " + config::case_name(size);
}

// Adds the baseline, its copy if there is one, the baseline at the other sizes, then each setting at all sizes.
void add_cases(Plan& plan, std::span<const config::Change> sizes, std::span<const config::Change> settings,
               bool with_copy) {
  const bool is_operation = plan.experiment.baseline.workload != config::training_workload;
  const auto add = [&](PlannedCase planned, std::size_t reference, int set) {
    planned.reference = reference;
    planned.set = is_operation ? set : static_cast<int>(plan.cases.size());
    plan.cases.push_back(std::move(planned));
  };
  const auto add_copy = [&](PlannedCase planned, std::size_t reference) {
    constexpr int copies = -1;  // their worker set
    planned.is_copy = true;
    planned.variable = planned.value = "";
    add(std::move(planned), reference, copies);
  };
  const config::Change none{"", "", plan.experiment.baseline, ""};
  add(make_case(plan, "baseline", none), 0, 0);
  if (with_copy) add_copy(make_case(plan, "baseline_again", none), 0);
  const std::size_t first_size = plan.cases.size();  // the baseline at the first of `sizes`; the others follow
  for (const config::Change& size : sizes) add(make_case(plan, config::case_name(size), size), plan.cases.size(), 0);
  for (std::size_t i = 0; with_copy && i < sizes.size(); ++i)
    add_copy(make_case(plan, at_size("baseline_again", sizes[i]), sizes[i]), first_size + i);
  require_baseline(plan);
  for (std::size_t set = 1; set <= settings.size(); ++set) {
    const config::Change& change = settings[set - 1];
    add(make_case(plan, config::case_name(change), change), 0, static_cast<int>(set));
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      config::Change both = change;
      config::find_variable(sizes[i].variable)->parse(both.settings, sizes[i].value);
      add(make_case(plan, at_size(config::case_name(change), sizes[i]), both), first_size + i, static_cast<int>(set));
    }
  }
}

// Virtual time has no noise, so one step suffices.
config::Measure once(config::Measure measure) {
  measure.rounds = measure.steps = 1;
  measure.warmup_steps = 0;
  measure.auto_steps = false;
  measure.looks.clear();
  measure.time_budget_s = 0;
  return measure;
}

// Lays out the ranks as set; data parallelism takes the remaining ranks.
Division layout_on(const config::Settings& s, int ranks, const machine::Topology& topology) {
  const std::int64_t replica = s.replica_ranks();
  if (ranks % replica != 0) {
    std::vector<std::string> sizes;
    for (const program::Axis axis : program::configurable_axes) {
      sizes.push_back(fmt::format("{} {}", program::row_of(axis).key, s.layout[axis]));
    }
    if (s.context() > 1) sizes.push_back(fmt::format("context_parallel {}", s.context()));
    return {{}, fmt::format("{} = {} does not divide {}", fmt::join(sizes, " * "), replica, plural(ranks, "rank"))};
  }
  program::Layout layout = s.layout;
  // Ranks that share a sequence are adjacent on the data axis: they reduce gradients as replicas do.
  layout[program::Axis::data] = static_cast<int>(ranks / replica) * s.context();
  layout[program::Axis::context] = 1;
  if (topology.is_known()) layout.replicas_of_node = program::replicas_of_node(layout, topology.node_of);
  return {layout, ""};
}

// Reproducible random numbers: the order that std::shuffle and std::uniform_int_distribution give depends on the
// standard library.
struct Dice {
  std::uint64_t seed, counter = 0;

  // Uniform in [0, n): draws again beyond the largest multiple of n, so that no remainder is more likely.
  std::size_t below(std::size_t n) {
    static const std::uint64_t stream = fnv1a("schedule");  // distinct from weights and tokens of the same seed
    const std::uint64_t range = std::uint64_t{1} << 32;
    std::uint64_t word = 0;
    do {
      word = philox(seed, counter++, stream)[0];
    } while (word >= range - range % n);
    return word % n;
  }
};

// 0 … n-1 in random order (Fisher and Yates).
std::vector<std::size_t> permutation(std::size_t n, Dice& dice) {
  std::vector<std::size_t> p(n);
  std::iota(p.begin(), p.end(), 0);
  for (std::size_t i = n; i > 1; --i) std::swap(p[i - 1], p[dice.below(i)]);
  return p;
}

// 0, 1, n-1, 2, n-2, …: when n is even, the differences of neighbours are all different modulo n, which balances the
// order of succession over the n rotations (E. J. Williams, "Experimental designs balanced for the estimation of
// residual effects of treatments", Australian Journal of Scientific Research A 2, 1949).
std::size_t zigzag(std::size_t position, std::size_t n) {
  if (position == 0) return 0;
  return position % 2 == 1 ? (position + 1) / 2 : n - position / 2;
}

class BalancedOrder {
 public:
  explicit BalancedOrder(std::size_t n) : n_(n), row_(n) {}

  std::vector<std::size_t> next(Dice& dice) {
    if (row_ == n_) {
      names_ = permutation(n_, dice);      // which entry takes which part of the square
      rotations_ = permutation(n_, dice);  // the order in which its rows run
      row_ = 0;
    }
    std::vector<std::size_t> order(n_);
    for (std::size_t column = 0; column < n_; ++column)
      order[column] = names_[(zigzag(column, n_) + rotations_[row_]) % n_];
    ++row_;
    return order;
  }

 private:
  std::size_t n_, row_;  // row_: the next row of the square; n_: a new square begins
  std::vector<std::size_t> names_, rotations_;
};

// Orders the blocks: `rounds` rounds, each a sequence of all `sets`, each a sequence of its cases. In each run of n =
// number of sets rounds, every set takes every position once, so that drift within a round favours none. If n is even,
// every set also follows every other exactly once, so that its after-effects (heat, caches of the file system) fall on
// all alike. The same holds for the cases within their set. Depends on the arguments alone, on every machine.
std::vector<Slot> make_schedule(std::span<const EntrantSet> sets, int rounds, std::uint64_t seed) {
  std::vector<Slot> schedule;
  Dice dice{seed};
  BalancedOrder of_sets(sets.size());
  std::vector<BalancedOrder> within;
  for (const EntrantSet& set : sets) within.emplace_back(set.size());
  for (int round = 0; round < rounds; ++round) {
    int position = 0;
    for (const std::size_t set : of_sets.next(dice)) {
      const int process = static_cast<int>(schedule.size());
      for (const std::size_t member : within[set].next(dice))
        schedule.push_back({round, position++, sets[set][member], process});
    }
  }
  return schedule;
}

}  // namespace

PlannedCase case_of(const Plan& plan, const config::Change& change) {
  return make_case(plan, config::case_name(change), change);
}

void require_baseline(const Plan& plan) {
  const config::Experiment& e = plan.experiment;
  if (plan.baseline().is_possible()) return;
  fail("{}: the baseline cannot run on {}: {}", e.baseline_place.empty() ? e.path : e.baseline_place,
       plural(plan.ranks, "rank"), plan.baseline().impossible);
}

machine::Topology under_faults(const config::Experiment& experiment, const config::Settings& settings,
                               machine::Topology topology) {
  topology.node_of = config::places(experiment.faults.without(settings.mended), std::move(topology.node_of));
  return topology;
}

std::vector<EntrantSet> sets_of(const Plan& plan) {
  std::vector<EntrantSet> sets;
  std::map<int, std::size_t> place_of;  // in `sets`, by worker set
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    if (!plan.cases[i].is_possible()) continue;
    const int set = plan.processes == Processes::one_per_block ? static_cast<int>(i) : plan.cases[i].set;
    const auto [place, is_new] = place_of.try_emplace(set, sets.size());
    if (is_new) sets.emplace_back();
    sets[place->second].push_back(i);
  }
  return sets;
}

void schedule_blocks(Plan& plan) {
  // A case stays in the plan without a block if the baseline cannot run at its size.
  for (PlannedCase& planned : plan.cases) {
    const PlannedCase& reference = plan.cases[planned.reference];
    if (planned.is_possible() && !reference.is_possible())
      planned.impossible = fmt::format("{} cannot run: {}", reference.name, reference.impossible);
  }
  const config::Measure& measure = plan.experiment.measure;
  plan.schedule = make_schedule(sets_of(plan), measure.rounds, measure.seed);
}

Plan make_plan(const config::Experiment& experiment, int ranks, const std::vector<std::string>& only,
               Processes processes, const machine::Topology& topology) {
  if (ranks < 1) fail("cannot plan for {} ranks; use 1 rank or more", ranks);
  const std::set<std::string> selection = checked_selection(experiment, only);
  Plan plan;
  plan.experiment = experiment;
  plan.ranks = ranks;
  plan.topology = topology;
  plan.only = only;
  plan.processes = processes;
  const bool predicts = config::traits_of(experiment.backend).predicts();
  if (predicts) plan.experiment.measure = once(experiment.measure);
  std::vector<config::Change> sizes, settings;
  for (const config::Change& change : experiment.changes) {
    if (!change.from_model.empty() || is_the_baseline(experiment, change, ranks)) continue;
    if (!only.empty() && !selection.contains(config::case_name(change)) && !selection.contains(change.variable))
      continue;
    (config::purpose_of(change.variable) == config::Purpose::size ? sizes : settings).push_back(change);
  }
  add_cases(plan, sizes, settings, !predicts && !(settings.empty() && !sizes.empty()));
  schedule_blocks(plan);
  return plan;
}

std::vector<std::string> warnings_of(const Plan& plan) {
  std::vector<std::string> warnings = plan.experiment.warnings;
  std::map<std::string, std::string> of_env;  // by name: several cases may set it
  for (const PlannedCase& planned : plan.cases) {
    for (const auto& [name, value] : planned.settings.env) of_env.try_emplace(name, config::env_warning(name));
  }
  for (const auto& [name, warning] : of_env) {
    if (!warning.empty()) warnings.push_back(warning);
  }
  return warnings;
}

std::string why_impossible(const config::Settings& settings, const std::optional<config::Hardware>& hardware) {
  for (const config::Variable& variable : config::registry()) {
    if (std::string why = variable.conflict(settings); !why.empty()) return why;
  }
  if (!hardware) return "";
  for (const config::Variable& variable : config::registry()) {
    if (std::string why = variable.lacking(settings, *hardware); !why.empty()) return why;
  }
  return "";
}

Division divide_ranks(const config::Model& model, const config::Settings& settings, int ranks,
                      const machine::Topology& topology) {
  if (settings.ranks > ranks) return {{}, fmt::format("ranks is {}, but the job has only {}", settings.ranks, ranks)};
  const workloads::Workload& workload = workloads::workload_of(settings);
  if (std::string why = workload.why_impossible(model, settings); !why.empty()) return {{}, std::move(why)};
  Division division = layout_on(settings, settings.ranks == 0 ? ranks : settings.ranks, topology);
  if (!division.why_impossible.empty()) return division;
  division.why_impossible = workload.why_impossible_on(model, settings, division.layout);
  return division;
}

}  // namespace harness::plan
