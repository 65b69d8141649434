#include "sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "data/loader.h"
#include "program/count.h"
#include "program/program.h"
#include "sim/costs.h"

namespace harness::sim {
namespace {

const config::Hardware& hardware_of(const config::Experiment& experiment) {
  if (experiment.hardware) return *experiment.hardware;
  fail("{}: a prediction needs the hardware: add `hardware: h100-sxm` or another file of configs/hardware",
       experiment.path);
}

// Whether a step has products, whose time depends on the peak.
bool multiplies(const program::ProgramSet& set) {
  return std::ranges::any_of(set.roles, [](const program::Program& program) {
    return std::ranges::any_of(program.step, [](const auto& op) { return program::flop_of(op.action).model > 0; });
  });
}

Device device_of(const config::Experiment& experiment, config::Precision precision, bool multiplies) {
  const config::Hardware& hardware = hardware_of(experiment);
  const config::Calibration& c = *experiment.calibration;
  // Besides a layer's products in fewer bits, everything runs in bf16.
  const config::Precision other = config::is_low(precision) ? config::Precision::bf16 : precision;
  const auto on = c.share_on.find(hardware.gpu_file());
  const double own = on == c.share_on.end() ? 1 : on->second;
  const auto flops = [&](config::Precision p) {
    return own * (c.share_of_sustained ? hardware.sustained_flops(p) : hardware.peak_flops(p));
  };
  const Device device{flops(other),     hardware.memory_bytes_per_s, hardware.sms,
                      flops(precision), hardware.peak_flops(other),  hardware.compute_capability};
  const auto need = [&](bool there, std::string_view what) {
    if (there) return;
    fail("{}: the hardware file {} states no {}, which this prediction needs: name a hardware file that does",
         experiment.path, hardware.name, what);
  };
  for (const config::Precision p : {other, precision})
    need(!multiplies || flops(p) > 0, fmt::format("peak_flops of {}", config::name_of(p)));
  need(device.memory_bytes_per_s > 0, "memory_bandwidth");
  need(device.multiprocessors > 0 || !config::traits_of(c.backend).ranks_are_gpus, "sms");
  return device;
}

config::Faults faults_of(const config::Experiment& experiment, const config::Settings& settings) {
  return experiment.faults.without(settings.mended);
}

Network with_faults(Network network, const config::Faults& faults) {
  network.node_of = places(faults, std::move(network.node_of));
  return network;
}

}  // namespace

Network network_of(const config::Experiment& experiment, std::vector<int> node_of) {
  return network_of(hardware_of(experiment), experiment.fabric, std::move(node_of));
}

Simulation::Simulation(program::ProgramSet programs, const config::Settings& settings,
                       const config::Experiment& experiment, const Network& network, const Slowdown& slowdown)
    : set_(program::lower(std::move(programs), config::fused_for(experiment, settings))),
      network_(with_faults(network, faults_of(experiment, settings))),
      condition_(
          condition_of(faults_of(experiment, settings), hardware_of(experiment), network_, *experiment.calibration)),
      classes_(set_, marks_of(set_, network_, condition_, settings.sequence_ranks())) {
  const config::Calibration& calibration = *experiment.calibration;
  const Device device = device_of(experiment, settings.precision, multiplies(set_));
  const CostOf costs = costs_of(classes_, device, network_, calibration, settings, condition_, largest_message_bytes_);
  const CostOf cost = [&](int rank_class, program::OperationId id) {
    Cost of_operation = costs(rank_class, id);
    if (slowdown) {
      const double factor = slowdown(set_, classes_.program(rank_class).step[id]);
      of_operation.alone = ticks_of(factor * seconds_of(of_operation.alone));
    }
    return of_operation;
  };
  run(cost, experiment, settings);
}

Simulation::Simulation(program::FoldedStep step, const config::Settings& settings, const config::Experiment& experiment,
                       const Network& network)
    : set_(program::lower(std::move(step.set), config::fused_for(experiment, settings))),
      sample_(program::lower(std::move(step.sample), config::fused_for(experiment, settings))),
      network_(network),
      classes_(set_, marks_of(set_, network_, condition_, settings.sequence_ranks())) {
  const config::Calibration& calibration = *experiment.calibration;
  const Device device = device_of(experiment, settings.precision, true);
  sample_classes_.emplace(sample_, marks_of(sample_, network_, condition_, settings.sequence_ranks()));
  double of_sample = 0;
  passes_.emplace(*sample_classes_, classes_,
                  costs_of(*sample_classes_, device, network_, calibration, settings, condition_, of_sample));
  const CostOf costs = costs_of(classes_, device, network_, calibration, settings, condition_, largest_message_bytes_);
  const CostOf cost = [&](int c, program::OperationId id) {
    return program::is_folded(classes_.program(c).step[id]) ? (*passes_)(c, id) : costs(c, id);
  };
  run(cost, experiment, settings);
}

void Simulation::run(const CostOf& cost, const config::Experiment& experiment, const config::Settings& settings) {
  const config::Software& software = experiment.calibration->software;
  step_ = simulate(classes_, cost);
  // Jitter and fabric: published steps with equal work per GPU grow by this, whatever the group (docs/simulation.md).
  constexpr double least_gpus = 8;
  const double doublings = std::log2(std::max(1.0, set_.layout.ranks() / least_gpus));
  const double before_s = seconds_of(step_.length) + software.step_s;
  step_s_ = before_s * (1 + software.growth * doublings);
  double tokens = 0;
  for (const program::Program& role : set_.roles) tokens = std::max(tokens, data::tokens_of(role));
  loading_s_ = data::loading_of(settings, tokens, experiment.model.vocab).exposed_s(step_s_);
  step_s_ += loading_s_;
  for (int c = 0; std::cmp_less(c, classes_.list().size()); ++c) held_.push_back(held(step_, classes_, cost, c));
  const auto through = [&](int c, program::OperationId id) -> const CriticalPath& {
    return passes_->shares(c, id).path;
  };
  critical_path_ = sim::critical_path(step_, classes_, cost, held_, through);
  critical_path_.host += ticks_of(step_s_) - step_.length;
}

std::vector<program::Interval> Simulation::intervals(int rank_class) const {
  return intervals_of(step_, classes_, held_[rank_class], rank_class);
}

program::StepSplit Simulation::split(int rank_class) const {
  const std::vector<program::Operation>& list = classes_.program(rank_class).step;
  const auto communicates = [&](program::OperationId id) { return program::is_communication(list[id].action); };
  const std::vector<program::Interval> all = intervals(rank_class);
  program::StepSplit split = program::split_step(all, communicates, step_s_);
  if (!passes_) return split;
  for (const program::Interval& interval : all) {
    if (!program::is_folded(list[interval.operation])) continue;
    const PassShares& shares = passes_->shares(rank_class, interval.operation);
    const double took_s = interval.end_s - interval.start_s;
    split.compute_s -= (1 - shares.computing) * took_s;
    split.exposed_s += shares.exposed * took_s;
    split.idle_s += (1 - shares.computing - shares.exposed) * took_s;
    split.overlapped_s += shares.overlapped * took_s;
  }
  split.communication_s = split.exposed_s + split.overlapped_s;
  return split;
}

bool can_fold(const program::FoldedStep& step, const config::Settings& settings, const config::Experiment& experiment,
              const Network& network) {
  const config::Software& software = experiment.calibration->software;
  if (software.host_s > 0 && !host_paces(step.set.layout, settings, software)) return false;
  if (faults_of(experiment, settings).any()) return false;
  const RankClasses classes(step.sample, marks_of(step.sample, network, {}, settings.sequence_ranks()));
  const std::vector<program::Group>& groups = step.sample.groups;
  for (int c = 0; std::cmp_less(c, classes.list().size()); ++c) {
    for (program::GroupId g = 0; std::cmp_less(g, groups.size()); ++g) {
      const bool of_layer = groups[g].axes == program::AxisSet::of({program::Axis::tensor});
      if (of_layer && classes.in_group(c, g).size() > 1) return false;
    }
  }
  return true;
}

Prediction Simulation::prediction() const {
  Prediction prediction{step_s_, {}, largest_message_bytes_, critical_path_};
  prediction.split.step_s = step_s_;
  for (int c = 0; std::cmp_less(c, classes_.list().size()); ++c) {
    const program::StepSplit of_class = split(c);
    const double share = static_cast<double>(classes_.list()[c].ranks) / set_.layout.ranks();
    prediction.split.compute_s += share * of_class.compute_s;
    prediction.split.communication_s += share * of_class.communication_s;
    prediction.split.exposed_s += share * of_class.exposed_s;
    prediction.split.overlapped_s += share * of_class.overlapped_s;
    prediction.split.idle_s += share * of_class.idle_s;
  }
  return prediction;
}

}  // namespace harness::sim
