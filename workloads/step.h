#pragma once

#include <cstdint>
#include <vector>

#include "program/builder.h"

namespace harness::workloads {

// The frame that the steps of all workloads share.

/// The streams of a step, in order. Every communicator is used on one of them only; operations run on the one that they
/// have in a training step.
enum : program::StreamId {
  compute_stream,
  tensor_stream,
  data_stream,
  pipeline_stream,
  optimizer_stream,
  world_stream,
  gather_stream,  // of steps that gather weights
  across_stream   // and of those among them whose parts have copies on other nodes
};
program::ProgramBuilder step_builder(bool gathers = false, bool across_nodes = false);

/// The ring in which a Program keeps one number per step, [loss_ring] f32: the mean loss of gpt, 1 of the workloads
/// that train nothing. Whoever runs a block reads it after the steps.
inline constexpr const char* losses_buffer = "losses";
inline constexpr std::int64_t loss_ring = 4096;
/// How many steps have updated the weights, [1] i32, in Programs that may skip an update.
inline constexpr const char* updates_buffer = "updates";

/// How a step begins and ends: every rank brings its share of one number, and the closing all-reduce over the group
/// `world`, after everything else, makes the number of it that is recorded.
class StepFrame {
 public:
  /// Emits init operations. `what` names the number: "loss".
  StepFrame(program::ProgramBuilder& builder, program::GroupId world, const char* what);
  void begin_step();
  /// Sets the number of this rank, to which the step may add. The compute stream begins with it, once `after` is done.
  void set_share(double share, const std::vector<program::OperationId>& after = {});
  void end_step();

  program::View value() const { return value_; }      // [1] f32, in the step
  program::View counter() const { return counter_; }  // [1] i32: finished steps

 private:
  program::ProgramBuilder& b_;
  program::GroupId world_;
  const char* what_;
  program::View counter_, ring_, value_;
};

}  // namespace harness::workloads
