#pragma once

#include <cstdint>
#include <vector>

#include "config/settings.h"
#include "program/program.h"

namespace harness::gpt {

/// One pass of a micro-batch through the layers of one model chunk of a pipeline stage.
struct Pass {
  enum class Kind : std::uint8_t { forward, backward };
  Kind kind = Kind::forward;
  int micro_batch = 0;
  int chunk = 0;       // of the stage
  bool first = false;  // of its kind and chunk in a step: replaces the gradients, to which the others add
  bool last = false;   // of them: leaves final gradients
  bool operator==(const Pass&) const = default;
};

struct Pipeline {
  int stages = 1;
  int chunks = 1;  // of each stage: chunk c of stage s holds run c * stages + s of the model's layers
  int micro_batches = 1;
};

/// The passes of a stage in the order in which it runs them. Backward passes of a chunk follow the order of its forward
/// passes: whatever the schedule, gradients add up in the same order.
using Passes = std::vector<Pass>;

/// The passes of a stage of p by a schedule:
/// - gpipe: all forward passes, then all backward passes (Huang et al. 2019, "GPipe"). All micro-batches are in flight.
/// - one_forward_one_backward: 1F1B, PipeDream-flush (Narayanan et al. 2021, "Efficient Large-Scale Language Model
///   Training on GPU Clusters Using Megatron-LM", section 2.2.1). Stage s runs p - s - 1 forward passes ahead and then
///   alternates, so at most p - s micro-batches are in flight. With one stage this is plain gradient accumulation.
/// - interleaved: 1F1B over several chunks of a stage (section 2.2.2 there). p micro-batches go through one chunk, then
///   through the next. micro_batches is a multiple of p.
Passes passes_of(config::PipelineSchedule schedule, const Pipeline& pipeline, int stage);

program::Repetition repetition_of(config::PipelineSchedule schedule, const Pipeline& pipeline, int stage);

/// The passes of any stage, one micro-batch after the other through each chunk: no schedule, but the order in which the
/// passes of a chunk stand side by side.
Passes chunk_by_chunk(const Pipeline& pipeline);

/// A pass in a step in which messages take no time and all chunks are equally long: a forward pass takes one tick, the
/// gradients of inputs and those of weights in a backward pass one tick each.
struct TimedPass {
  Pass pass;
  int begin = 0, end = 0;
  int arrives = -1;  // the tick at which another stage ends the pass whose result this one takes; -1: it takes none
};
/// By stage: every stage runs its passes in their order, each as soon as its input is there. Throws Error if one waits
/// for a pass that never comes.
std::vector<std::vector<TimedPass>> timetable(const std::vector<Passes>& of_stages);
std::vector<std::vector<TimedPass>> timetable(config::PipelineSchedule schedule, const Pipeline& pipeline);

}  // namespace harness::gpt
