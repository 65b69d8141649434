#pragma once

#include <cstdint>

#include "program/builder.h"

namespace harness {

/// The ring in which a Program keeps one number per step, [loss_ring] f32: the mean loss of gpt, 1 of the workloads
/// that train nothing. Whoever runs a block reads it after the steps.
inline constexpr const char* losses_buffer = "losses";
inline constexpr std::int64_t loss_ring = 4096;

/// The streams of a step, in order. Every communicator is used on one of them only; operations run on the one that they
/// have in a training step.
enum : StreamId { compute_stream, tensor_stream, data_stream, pipeline_stream, world_stream };
ProgramBuilder step_builder();

/// How the step of a workload without a loss begins and ends: each rank brings its share of 1, and the closing
/// all-reduce over the group `world` makes it 1 again after everything else. Emits init operations when made.
class Closing {
 public:
  Closing(ProgramBuilder& builder, int ranks, GroupId world);
  void begin_step();
  void end_step();

 private:
  ProgramBuilder& b_;
  int ranks_;
  GroupId world_;
  View counter_, ring_, share_;
};

}  // namespace harness
