#include "workloads/closing.h"

namespace harness {

ProgramBuilder step_builder() {
  return ProgramBuilder({"compute", "tensor", "data", "pipeline", "world"});
}

Closing::Closing(ProgramBuilder& builder, int ranks, GroupId world) : b_(builder), ranks_(ranks), world_(world) {
  counter_ = b_.buffer("counter", DType::i32, 1, BufferKind::persistent);
  ring_ = b_.buffer(losses_buffer, DType::f32, loss_ring, BufferKind::output);
  b_.emit(compute_stream, Fill{counter_, 0}, {"step counter", Phase::setup});
}

void Closing::begin_step() {
  b_.begin_step();
  share_ = b_.buffer("share", DType::f32, 1);
  b_.emit(compute_stream, Fill{share_, 1.0 / ranks_}, {"share", Phase::forward});
}

void Closing::end_step() {
  std::vector<OperationId> all;
  for (StreamId s = 0; s < world_stream; ++s) all.push_back(b_.last(s));
  b_.emit(world_stream, AllReduce{world_, share_}, {"share", Phase::finish}, all);
  b_.emit(world_stream, Record{share_, ring_, counter_}, {"share", Phase::finish});
}

}  // namespace harness
