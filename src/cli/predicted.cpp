#include "cli/predicted.h"

#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/prepare.h"
#include "report/table.h"
#include "workloads/workload.h"

namespace harness::cli {
namespace {

// What a case changes must change its Program, where its ranks stand or how fast they compute: of the rest, such as
// NCCL's settings, the simulation knows nothing.
bool is_known(const plan::PlannedCase& planned, const plan::PlannedCase& baseline) {
  return !planned.is_change() || planned.survey.program_hash != baseline.survey.program_hash ||
         !(planned.layout == baseline.layout) || planned.settings.precision != baseline.settings.precision ||
         planned.settings.mended != baseline.settings.mended;
}

}  // namespace

machine::Topology planned_topology(const config::Experiment& e, int ranks, int ranks_per_node) {
  constexpr int usual = 8;
  if (ranks_per_node == 0 && config::traits_of(e.backend).predicts())
    ranks_per_node = e.hardware && e.hardware->gpus_of_node > 0 ? e.hardware->gpus_of_node : usual;
  return ranks_per_node > 0 ? machine::Topology::node_by_node(ranks, ranks_per_node) : machine::Topology();
}

std::vector<int> places_of(const plan::PlannedCase& planned, const config::Experiment& e,
                           const machine::Topology& topology) {
  return sim::places(e.faults.without(planned.settings.mended), topology.node_of);
}

std::vector<PredictedCase> predict_cases(const plan::Plan& plan) {
  const config::Experiment& e = plan.experiment;
  if (!config::traits_of(e.backend).predicts()) return {};
  const sim::Network network = sim::network_of(e, plan.topology.node_of);
  std::vector<PredictedCase> predicted(plan.cases.size());
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const plan::PlannedCase& planned = plan.cases[i];
    if (!planned.is_possible()) continue;
    if (!is_known(planned, plan.baseline())) {
      predicted[i].unknown = fmt::format("the prediction does not know {}", planned.variable);
      continue;
    }
    if (planned.is_copy) {
      predicted[i] = predicted.front();
      continue;
    }
    const program::ProgramSet set = workloads::build_programs(e.model, planned.settings, planned.layout);
    predicted[i].step = sim::predict(sim::Simulation(set, planned.settings, e, network));
  }
  return predicted;
}

std::string predictions_text(const plan::Plan& p, const std::vector<PredictedCase>& predicted) {
  const config::Experiment& e = p.experiment;
  std::set<std::string> unknown;
  report::Table table;
  table.columns = {{"case", true}, {"predicted step"}, {"change"}, {"MFU"}, {"computing"}, {"exposed"}, {"idle"}};
  for (std::size_t i = 0; i < p.cases.size(); ++i) {
    if (p.cases[i].is_copy || !p.cases[i].is_possible()) continue;
    if (!predicted[i].step) {
      table.rows.push_back({p.cases[i].name, "?", "", "", "", "", ""});
      unknown.insert(predicted[i].unknown);
      continue;
    }
    const sim::Prediction& x = *predicted[i].step;
    const double peak = plan::configured_peak(e, p.cases[i].settings.precision).flops;
    const double flop = p.cases[i].survey.flop.model;
    const auto share = [&](double seconds) { return percent(seconds / x.step_s); };
    table.rows.push_back({p.cases[i].name, show_seconds(x.step_s),
                          i == 0 ? "" : fmt::format("{:+.1f} %", 100 * (x.step_s / predicted[0].step->step_s - 1)),
                          peak > 0 && flop > 0 ? percent(flop / (x.step_s * p.cases[i].layout.ranks() * peak)) : "",
                          share(x.split.compute_s), share(x.split.exposed_s), share(x.split.idle_s)});
  }
  std::string text =
      fmt::format("\npredicted, not measured: {} ({}), {} on {}\n{}", e.calibration->name, e.calibration->source,
                  plural(p.ranks, "rank"), plural(p.topology.nodes(), "node"), table.text());
  text +=
      "computing, exposed, idle: shares of the step, mean over the ranks. exposed: communication and no computation.\n";
  if (predicted[0].step)
    text += fmt::format("critical path of the baseline: {}\n", in_words(predicted[0].step->critical_path));
  for (const std::string& reason : unknown) text += "?: " + reason + "\n";
  return text;
}

}  // namespace harness::cli
