#include "sim/predict.h"

namespace harness::sim {
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
