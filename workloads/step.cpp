#include "workloads/step.h"

#include <string>
#include <utility>
#include <vector>

namespace harness::workloads {

program::ProgramBuilder step_builder(bool gathers, bool across_nodes) {
  std::vector<std::string> streams{"compute", "tensor", "data", "pipeline", "optimizer", "world"};
  if (gathers) streams.emplace_back("gather");
  if (across_nodes) streams.emplace_back("nodes");
  return program::ProgramBuilder(std::move(streams));
}

StepFrame::StepFrame(program::ProgramBuilder& builder, program::GroupId world, const char* what)
    : b_(builder), world_(world), what_(what) {
  counter_ = b_.buffer("counter", program::DType::i32, 1, program::BufferKind::persistent);
  ring_ = b_.buffer(losses_buffer, program::DType::f32, loss_ring, program::BufferKind::output);
  b_.emit(compute_stream, program::Fill{counter_, 0}, {"step counter", program::Phase::setup});
}

void StepFrame::begin_step() {
  b_.begin_step();
  value_ = b_.buffer(what_, program::DType::f32, 1);
}

void StepFrame::set_share(double share, const std::vector<program::OperationId>& after) {
  b_.emit(compute_stream, program::Fill{value_, share}, {what_, program::Phase::forward}, after);
}

void StepFrame::end_step() {
  std::vector<program::OperationId> all;
  for (program::StreamId stream = 0; stream < b_.streams(); ++stream) all.push_back(b_.last(stream));
  b_.emit(world_stream, program::AllReduce{world_, value_}, {what_, program::Phase::finish}, all);
  b_.emit(world_stream, program::Record{value_, ring_, counter_}, {what_, program::Phase::finish});
}

}  // namespace harness::workloads
