#include "workloads/step.h"

namespace harness::workloads {

program::ProgramBuilder step_builder() {
  return program::ProgramBuilder({"compute", "tensor", "data", "pipeline", "optimizer", "world"});
}

StepFrame::StepFrame(program::ProgramBuilder& builder, program::GroupId world, const char* what)
    : b_(builder), world_(world), what_(what) {
  counter_ = b_.buffer("counter", program::DType::i32, 1, program::BufferKind::persistent);
  ring_ = b_.buffer(losses_buffer, program::DType::f32, loss_ring, program::BufferKind::output);
  b_.emit(compute_stream, program::Fill{counter_, 0}, {"step counter", program::Phase::setup});
}

void StepFrame::begin_step(double share) {
  b_.begin_step();
  value_ = b_.buffer(what_, program::DType::f32, 1);
  b_.emit(compute_stream, program::Fill{value_, share}, {what_, program::Phase::forward});
}

void StepFrame::end_step() {
  std::vector<program::OperationId> all;
  for (program::StreamId stream = 0; stream < world_stream; ++stream) all.push_back(b_.last(stream));
  b_.emit(world_stream, program::AllReduce{world_, value_}, {what_, program::Phase::finish}, all);
  b_.emit(world_stream, program::Record{value_, ring_, counter_}, {what_, program::Phase::finish});
}

}  // namespace harness::workloads
