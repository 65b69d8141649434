#include "explain/explain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/cases.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "base/units.h"
#include "machine/conditions.h"
#include "plan/plan.h"
#include "program/count.h"

namespace harness::explain {
namespace {

using analysis::Breakdown;
using analysis::KindTime;

// A kind of operation: its name, its group and whether it is recomputed. Both ends of a message count as one kind.
using Kind = std::tuple<std::string, std::string, bool>;
using Takes = std::map<Kind, double>;   // seconds, hidden or not
using Slower = std::map<Kind, double>;  // factor over the prediction; 1 if absent

Kind kind_of(std::string_view kind, std::string group, bool recomputed) {
  const bool message = kind == "send" || kind == "receive";
  return {message ? "message" : std::string(kind), std::move(group), recomputed};
}

Takes takes_of(const Breakdown& b) {
  Takes takes;
  for (const KindTime& time : b.kinds) takes[kind_of(time.kind, time.group, time.recomputed)] += time.takes_s;
  return takes;
}

// How a job runs relative to its prediction.
struct Pace {
  double network = 1;  // share of the rate between nodes
  Slower slower;
};

Breakdown profile_of(const CaseModel& model, const Pace& pace) {
  config::Experiment experiment = model.reference().experiment;
  const std::vector<int>& node_of = model.reference().node_of;
  experiment.faults = {};
  for (const int node : std::set<int>(node_of.begin(), node_of.end())) {
    if (pace.network < 1) experiment.faults.slow_links.push_back({node, pace.network});
  }
  const auto slowdown = [&pace](const program::ProgramSet& set, const program::Operation& op) {
    std::string group = program::is_communication(op.action) ? program::destination(set, op.action) : "";
    if (program::peer_of(op.action) != nullptr) group.resize(std::min(group.size(), group.find_first_of("+-")));
    const auto found = pace.slower.find(kind_of(program::name_of(op.action), std::move(group), op.label.recomputed));
    return found == pace.slower.end() ? 1.0 : found->second;
  };
  return analysis::break_down(model.predict_on(experiment, slowdown)).front().mean;
}

// Returns the time of the kinds that take longer at half the network rate.
double takes_between_nodes(const Takes& takes, const Takes& healthy, const Takes& halved) {
  constexpr double much = 1.01;
  double sum = 0;
  for (const auto& [kind, seconds] : takes) {
    const auto before = healthy.find(kind), after = halved.find(kind);
    if (before != healthy.end() && after != halved.end() && after->second > much * before->second) sum += seconds;
  }
  return sum;
}

// Returns the share of the network rate that reproduces the measured time of traffic between nodes. Time is a constant
// plus a term in 1 / share.
double network_share(const CaseModel& model, const Takes& measured, const Takes& healthy) {
  constexpr int most_steps = 8;
  constexpr double most_times = 1e4, noticeable = 1.01, close_enough = 1e-3;
  const auto takes_at = [&](double times) { return takes_of(profile_of(model, {.network = 1 / times, .slower = {}})); };
  const Takes halved = takes_at(2);
  const double measured_s = takes_between_nodes(measured, healthy, halved),
               healthy_s = takes_between_nodes(healthy, healthy, halved);
  if (!(healthy_s > 0) || measured_s < noticeable * healthy_s) return 1;
  const auto takes_s = [&](double times) { return takes_between_nodes(takes_at(times), healthy, halved); };
  return 1 / solve(measured_s, healthy_s, 2, most_times, takes_s, close_enough, most_steps).value_or(1);
}

// Returns the pace at which each kind takes its measured time. Concurrent operations slow each other down, so this
// iterates. It fits the network first: time lost to the network does not shrink with the rest of the hardware.
Pace pace_of(const CaseModel& model, const Takes& measured, const Takes& healthy) {
  constexpr int most_steps = 6;
  constexpr double close_enough = 1e-3, most = 1e4;
  Pace pace{.network = network_share(model, measured, healthy), .slower = {}};
  for (int step = 0; step < most_steps; ++step) {
    const Takes here = takes_of(profile_of(model, pace));
    double farthest = 0;
    for (const auto& [kind, measured_s] : measured) {
      const auto found = here.find(kind);
      if (found == here.end() || !(found->second > 0) || !(measured_s > 0)) continue;
      const double ratio = measured_s / found->second;
      farthest = std::max(farthest, std::abs(std::log(ratio)));
      double& factor = pace.slower.try_emplace(kind, 1).first->second;
      factor = std::clamp(factor * ratio, 1 / most, most);
    }
    if (farthest < close_enough) break;
  }
  return pace;
}

// Returns the factor on a part's unexplained time from one machine to the other. Idle and loading depend on the host
// and the disk. The rest is waiting in some form, for ranks that compute longer.
double scale_of(Part part, const Breakdown& here, const Breakdown& there) {
  if (part == Part::idle || part == Part::loading || !(here.parts.computation() > 0)) return 1;
  return there.parts.computation() / here.parts.computation();
}

// Returns the profiled step there: for each part, the prediction there plus the scaled unexplained time from here.
double profiled_there_s(const Breakdown& measured, const Breakdown& here, const Breakdown& there) {
  double sum = 0;
  for (const Part part : all_parts) {
    const double unexplained_s = measured[part].value_or(0) - here[part].value_or(0);
    if (measured[part] || there[part])
      sum += std::max(0.0, there[part].value_or(0) + scale_of(part, here, there) * unexplained_s);
  }
  return sum;
}

// Keeps the ranks' places if nodes there have equally many GPUs. Otherwise fills one node after the other, or deals
// ranks round-robin if they did not stand node by node.
std::vector<int> nodes_there(const Reference& here, const config::Hardware& there, int ranks) {
  const int gpus = there.gpus_of_node;
  const config::Hardware& from = *here.experiment.hardware;
  if (gpus == 0 || gpus == from.gpus_of_node) return here.node_of;
  config::Faults dealt;
  dealt.tensor_across_nodes = !stand_node_by_node(here.node_of);
  return config::places(dealt, machine::Topology::node_by_node(ranks, gpus).node_of);
}

// Fills in the rest of `moved`, whose case_index is set.
void forecast(const Breakdown& measured, const store::Result& result, const analysis::CaseSummary& row,
              const Reference& all_here, const Reference& all_there, CaseMoved& moved) {
  const config::Hardware& hardware = *all_there.experiment.hardware;
  const Reference from{all_here.experiment, nodes_of_case(result, moved.case_index)},
      to{all_there.experiment, nodes_there(from, hardware, result.ranks)};
  const CaseModel here(from, result, moved.case_index), there(to, result, moved.case_index);
  if (const std::string why = plan::why_impossible(there.settings(), hardware); !why.empty()) fail("{}", why);
  const Breakdown healthy = profile_of(here, {});
  const Pace pace = pace_of(here, takes_of(measured), takes_of(healthy));
  moved.network = pace.network;
  const double profiled_s = profiled_there_s(measured, profile_of(here, pace), profile_of(there, pace));
  moved.measured_s = std::isnan(row.step_seconds) ? measured.step_s : row.step_seconds;
  moved.forecast_s = moved.measured_s * profiled_s / measured.step_s;
  Reference well = to;
  std::ranges::sort(well.node_of);
  moved.healthy_s = profile_of(CaseModel(well, result, moved.case_index), {}).step_s;
  moved.measured_mfu = row.mfu;
  const store::ResultCase& of = result.case_at(moved.case_index);
  const double peak = hardware.peak_flops(there.settings().precision);
  const sim::Simulation step(there.set(), there.settings(), to.experiment, sim::network_of(to.experiment, to.node_of));
  moved.trust =
      sim::trust_in(step.prediction(), result.model, there.settings(), of.ranks, hardware, *to.experiment.calibration);
  if (peak > 0 && of.model_flop_per_step > 0)
    moved.forecast_mfu = of.model_flop_per_step / (moved.forecast_s * of.ranks * peak);
  const double holds = there.settings().memory_cap * hardware.memory_bytes;
  if (holds > 0 && of.planned_memory_bytes > holds)
    moved.too_large = fmt::format("it needs {} of memory per rank, more than {}", show_bytes(of.planned_memory_bytes),
                                  show_bytes(holds));
}

// Moves the job to the hardware of this file, with the same software on both.
Reference reference_on(const std::string& hardware, const store::Result& result, const Reference& here) {
  std::vector<std::string> overrides = result.overrides;
  overrides.insert(overrides.end(), {config::predict, fmt::format("hardware={}", hardware)});
  Reference there = here;
  there.experiment = config::load_experiment(result.config_path, overrides, result.config_text);
  there.experiment.calibration = here.experiment.calibration;
  there.experiment.faults = {};
  there.experiment.fabric = {};  // a stated fabric is that of the result's cluster
  return there;
}

}  // namespace

Upgrade move_to(const store::Result& result, const std::string& hardware, const std::vector<std::string>& only) {
  if (!result.ranks_are_gpus())
    fail("its step is one of backend {}; only steps on GPUs move to others", result.step_backend());
  if (result.timeline.empty())
    fail("it has no profiled step, from which the parts of a step are known; let the sweep end, or measure again");
  const Reference here = reference_of(result), there = reference_on(hardware, result, here);
  const analysis::Summary summary = analysis::summarise(result);
  Upgrade upgrade{.from = here.experiment.hardware->name,
                  .to = there.experiment.hardware->name,
                  .calibration = here.experiment.calibration->name,
                  .of_prediction = config::traits_of(result.backend).predicts(),
                  .cases = {}};
  for (const analysis::CaseBreakdown& measured : analysis::break_down(result)) {
    const store::ResultCase& of = result.at(measured);
    const auto is_named = [&](const std::string& word) { return word == of.name || word == of.variable; };
    if (!only.empty() && std::ranges::none_of(only, is_named)) continue;
    CaseMoved& moved = upgrade.cases.emplace_back();
    moved.case_index = measured.case_index;
    try {
      forecast(measured.mean, result, summary.at(measured), here, there, moved);
    } catch (const Error& why) {
      moved.why_none = why.what();
    }
  }
  return upgrade;
}

}  // namespace harness::explain
