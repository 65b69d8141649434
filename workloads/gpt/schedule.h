#pragma once

#include <compare>
#include <map>
#include <vector>

#include "workloads/gpt/gpt.h"

namespace harness::gpt {

// ---- the layers of a stage, and what its passes keep ----------------------------------------------------------------

/// A normalised stream and what the backward pass of the norm needs; `sum` is the stream that was normalised.
struct Normalised {
  View sum, out, mean, rstd;  // no mean if the norm does not subtract it
};

/// Activations of one layer that its backward pass needs.
struct LayerActivations {
  Normalised norm1, norm2;
  View qkv, attention, stats;  // qkv with rotated queries and keys, if positions are rotary
  View fc1, activated;         // fc1's output, and the activation's
  View probabilities;          // of unfused attention
};

/// Activations of one micro-batch that its backward pass through a chunk needs.
struct MicroBatch {
  std::vector<LayerActivations> layers;
  Normalised final_norm;
  View logits;  // hold their gradient after the loss
};

/// Consecutive layers of the model that a stage runs in one pass.
struct Chunk {
  int first_layer = 0, layers = 0;
  bool first = false;               // begins the model: with the embedding
  bool last = false;                // ends it: with the final norm, the head and the loss
  std::map<int, MicroBatch> saved;  // by number of the micro-batch
  int end() const { return first_layer + layers; }
};

/// Returns the chunks of a stage, in the order of the model. The model is cut into stages * chunks runs of layers,
/// which go to the stages in turn; if they cannot be equally long, the first ones have one more layer. If embedding and
/// loss count as a layer, the first and the last run have one less, and may have none.
std::vector<Chunk> chunks_of(const Model& model, const Settings& settings, const Layout& layout, int stage);

// ---- the passes of a stage ------------------------------------------------------------------------------------------

/// One pass of a micro-batch through the layers of one model chunk of a pipeline stage.
struct Pass {
  Phase phase = Phase::forward;  // or backward
  int micro_batch = 0;
  int chunk = 0;       // of the stage
  bool first = false;  // backward pass of its chunk in a step: replaces the gradients, to which the others add
  bool last = false;   // backward pass of its chunk in a step: leaves final gradients
  bool forward() const { return phase == Phase::forward; }
  auto operator<=>(const Pass&) const = default;  // NOLINT(modernize-use-nullptr): 14 misreads it
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

/// Returns the passes of any stage, one micro-batch after the other through each chunk: not a schedule, but the order
/// in which the passes of a chunk are adjacent.
Passes chunk_by_chunk(const Pipeline& pipeline);

/// A pass in a step in which messages take no time and all chunks are equally long: a forward pass takes one tick, a
/// backward pass two, one for the gradients of inputs and one for those of weights.
struct TimedPass {
  Pass pass;
  int begin = 0, end = 0;
  int arrives = -1;  // tick at which another stage ends the pass that feeds this one; -1: none does
};
/// Returns the timetable by stage: every stage runs its passes in order, each as soon as its input is there. Throws
/// Error if one waits for a pass that never comes.
std::vector<std::vector<TimedPass>> timetable(const Pipeline& pipeline, const std::vector<Passes>& of_stages);
std::vector<std::vector<TimedPass>> timetable(config::PipelineSchedule schedule, const Pipeline& pipeline);

}  // namespace harness::gpt
