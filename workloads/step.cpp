#include "workloads/step.h"

namespace harness {

ProgramBuilder step_builder() {
  return ProgramBuilder({"compute", "tensor", "data", "pipeline", "world"});
}

StepFrame::StepFrame(ProgramBuilder& builder, GroupId world, const char* what)
    : b_(builder), world_(world), what_(what) {
  counter_ = b_.buffer("counter", DType::i32, 1, BufferKind::persistent);
  ring_ = b_.buffer(losses_buffer, DType::f32, loss_ring, BufferKind::output);
  b_.emit(compute_stream, Fill{counter_, 0}, {"step counter", Phase::setup});
}

void StepFrame::begin_step(double share) {
  b_.begin_step();
  value_ = b_.buffer(what_, DType::f32, 1);
  b_.emit(compute_stream, Fill{value_, share}, {what_, Phase::forward});
}

void StepFrame::end_step() {
  std::vector<OperationId> all;
  for (StreamId stream = 0; stream < world_stream; ++stream) all.push_back(b_.last(stream));
  b_.emit(world_stream, AllReduce{world_, value_}, {what_, Phase::finish}, all);
  b_.emit(world_stream, Record{value_, ring_, counter_}, {what_, Phase::finish});
}

}  // namespace harness
