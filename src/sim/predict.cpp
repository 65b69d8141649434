#include "sim/predict.h"

#include "base/error.h"
#include "program/lower.h"
#include "sim/costs.h"

namespace harness::sim {
namespace {

Device device_of(const config::Hardware& hardware, config::Precision precision) {
  const Device device{hardware.peak_flops(precision), hardware.memory_bytes_per_s, hardware.sms};
  const auto need = [&](bool there, const char* key) {
    if (!there) fail("the hardware file {} has no {}, which a prediction needs", hardware.name, key);
  };
  need(device.flops > 0, "peak_flops for this precision");
  need(device.memory_bytes_per_s > 0, "memory_bandwidth");
  need(device.multiprocessors > 0, "sms");
  return device;
}

program::StepSplit split_of(const program::Program& program, const std::vector<OperationTimes>& times, double step_s) {
  std::vector<program::Interval> intervals;
  for (program::OperationId id = 0; std::cmp_less(id, times.size()); ++id) {
    const OperationTimes& t = times[id];
    intervals.push_back({id, program.step[id].stream, seconds_of(t.ready), seconds_of(t.end)});
  }
  const auto communicates = [&](program::OperationId id) { return program::is_communication(program.step[id].action); };
  return program::split_step(intervals, communicates, step_s);
}

}  // namespace

Prediction predict(const program::ProgramSet& programs, const config::Settings& settings,
                   const config::Hardware& hardware, const Network& network, const config::Calibration& calibration) {
  const Device device = device_of(hardware, settings.precision);
  const program::ProgramSet set = program::lower(programs, settings.fusion ? calibration.software.fused : 0);
  const RankClasses classes(set);
  Costs costs(classes, device, network, calibration, settings);
  const SimulatedStep step =
      simulate(classes, [&](int rank_class, program::OperationId id) { return costs(rank_class, id); });
  Prediction prediction;
  const double alone_s = seconds_of(step.length);
  prediction.largest_message_bytes = costs.largest_message_bytes();
  prediction.step_s = alone_s + calibration.software.step_s;
  for (std::size_t c = 0; c < classes.list().size(); ++c) {
    const program::StepSplit of_class =
        split_of(classes.program(static_cast<int>(c)), step.times[c], prediction.step_s);
    const double share = static_cast<double>(classes.list()[c].ranks) / set.layout.ranks();
    prediction.split.step_s = prediction.step_s;
    prediction.split.compute_s += share * of_class.compute_s;
    prediction.split.communication_s += share * of_class.communication_s;
    prediction.split.exposed_s += share * of_class.exposed_s;
    prediction.split.overlapped_s += share * of_class.overlapped_s;
    prediction.split.idle_s += share * of_class.idle_s;
  }
  return prediction;
}

}  // namespace harness::sim
