#include "sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "program/lower.h"
#include "sim/costs.h"
#include "sim/rank_classes.h"

namespace harness::sim {
namespace {

Device device_of(const config::Hardware& hardware, config::Precision precision, const config::Calibration& c) {
  // Of a layer's products in fewer bits, all else is bf16.
  const config::Precision other = config::is_low(precision) ? config::Precision::bf16 : precision;
  const auto on = c.share_on.find(hardware.gpu_file());
  const double own = on == c.share_on.end() ? 1 : on->second;
  const auto flops = [&](config::Precision p) {
    return own * (c.share_of_sustained ? hardware.sustained_flops(p) : hardware.peak_flops(p));
  };
  const Device device{flops(other),     hardware.memory_bytes_per_s, hardware.sms,
                      flops(precision), hardware.peak_flops(other),  hardware.compute_capability};
  const auto need = [&](bool there, const char* key) {
    if (!there) fail("the hardware file {} has no {}, which a prediction needs", hardware.name, key);
  };
  need(device.flops > 0 && device.low_flops > 0, "peak_flops for this precision");
  need(device.memory_bytes_per_s > 0, "memory_bandwidth");
  need(device.multiprocessors > 0 || !config::traits_of(c.backend).ranks_are_gpus, "sms");
  return device;
}

const config::Hardware& hardware_of(const config::Experiment& experiment) {
  if (experiment.hardware) return *experiment.hardware;
  fail("{}: a prediction needs the hardware: add `hardware: h100-sxm` or another file of configs/hardware",
       experiment.path);
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

Simulation::Simulation(const program::ProgramSet& programs, const config::Settings& settings,
                       const config::Experiment& experiment, const Network& network, const Slowdown& slowdown)
    : set_(program::lower(programs, config::fused_for(experiment, settings))),
      network_(with_faults(network, faults_of(experiment, settings))),
      condition_(condition_of(faults_of(experiment, settings), hardware_of(experiment), network_)),
      classes_(set_, marks_of(set_, network_, condition_)) {
  const config::Calibration& calibration = *experiment.calibration;
  const Device device = device_of(hardware_of(experiment), settings.precision, calibration);
  Costs costs(classes_, device, network_, calibration, settings, condition_);
  const CostOf cost = [&](int rank_class, program::OperationId id) {
    Cost of_operation = costs(rank_class, id);
    if (slowdown) {
      const double factor = slowdown(set_, classes_.program(rank_class).step[id]);
      of_operation.alone = ticks_of(factor * seconds_of(of_operation.alone));
    }
    return of_operation;
  };
  step_ = simulate(classes_, cost);
  largest_message_bytes_ = costs.largest_message_bytes();
  // Jitter and fabric: published steps of equal work on one GPU grow this much, whatever the group
  // (docs/simulation.md).
  constexpr double least_gpus = 8;
  const double doublings = std::log2(std::max(1.0, set_.layout.ranks() / least_gpus));
  const double before_s = seconds_of(step_.length) + calibration.software.step_s;
  step_s_ = before_s * (1 + calibration.software.growth * doublings);
  for (int c = 0; std::cmp_less(c, classes_.list().size()); ++c) held_.push_back(held(step_, classes_, cost, c));
  critical_path_ = sim::critical_path(step_, classes_, cost, held_);
  critical_path_.host += ticks_of(step_s_) - step_.length;
}

std::vector<program::Interval> Simulation::intervals(int rank_class) const {
  const program::Program& program = classes_.program(rank_class);
  const std::vector<OperationTimes>& times = step_.times[rank_class];
  std::vector<program::Interval> intervals;
  intervals.reserve(times.size());
  for (program::OperationId id = 0; std::cmp_less(id, times.size()); ++id) {
    const program::Operation& op = program.step[id];
    if (program::is_communication(op.action)) {
      intervals.push_back({id, op.stream, seconds_of(times[id].ready), seconds_of(times[id].end)});
      continue;
    }
    for (const auto& [from, to] : running(times[id], held_[rank_class]))
      intervals.push_back({id, op.stream, seconds_of(from), seconds_of(to)});
  }
  return intervals;
}

namespace {

program::StepSplit split_of(const Simulation& simulation, int rank_class) {
  const program::Program& program = simulation.classes().program(rank_class);
  const auto communicates = [&](program::OperationId id) { return program::is_communication(program.step[id].action); };
  return program::split_step(simulation.intervals(rank_class), communicates, simulation.step_s());
}

}  // namespace

Prediction predict(const Simulation& simulation) {
  Prediction prediction;
  prediction.step_s = prediction.split.step_s = simulation.step_s();
  const std::vector<RankClass>& classes = simulation.classes().list();
  for (int c = 0; std::cmp_less(c, classes.size()); ++c) {
    const program::StepSplit of_class = split_of(simulation, c);
    const double share = static_cast<double>(classes[c].ranks) / simulation.set().layout.ranks();
    prediction.split.compute_s += share * of_class.compute_s;
    prediction.split.communication_s += share * of_class.communication_s;
    prediction.split.exposed_s += share * of_class.exposed_s;
    prediction.split.overlapped_s += share * of_class.overlapped_s;
    prediction.split.idle_s += share * of_class.idle_s;
  }
  prediction.largest_message_bytes = simulation.largest_message_bytes();
  prediction.critical_path = simulation.critical_path();
  return prediction;
}

}  // namespace harness::sim
