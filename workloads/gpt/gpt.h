#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/settings.h"
#include "program/program.h"
#include "workloads/step.h"

namespace harness::gpt {

// A GPT training step as Programs: GPT-2/GPT-3 style decoder with learned positions, tied embedding and tanh GELU;
// AdamW; tensor parallelism (Shoeybi et al. 2019), pipeline parallelism by 1F1B (Narayanan et al. 2021), data
// parallelism in buckets. Settings must be possible on the layout (plan's divide_ranks).

/// Groups, in order; `embedding` joins the first and the last pipeline stage, which share the tied embedding.
enum : program::GroupId { tensor_group, data_group, embedding_group, world_group };

/// Sequences of a step, of all replicas together.
std::int64_t global_batch(const config::Settings& settings, const program::Layout& layout);

program::ProgramSet programs(const config::Model& model, const config::Settings& settings,
                             const program::Layout& layout);
program::Program program(const config::Model& model, const config::Settings& settings, const program::Layout& layout,
                         int pipeline_stage);

// Names of buffers that others look up.
inline constexpr const char* tokens_buffer = "tokens";                // [micro_batches * rows] i32
inline constexpr const char* labels_buffer = "labels";                // [micro_batches * rows] i32
inline constexpr const char* learning_rate_buffer = "learning_rate";  // [1] f32

/// A named parameter inside the flat persistent buffers "master" (f32 values) and "gradient" (f32, after reduction).
struct Parameter {
  std::string name;              // as in Megatron/PyTorch: "layers.3.attention.qkv.weight"
  program::View view;            // offset and count in the flat buffers; the buffer is the caller's choice
  std::int64_t first_index = 0;  // of its first element among all parameters of the model, which the seed numbers
  std::int64_t outer = 1, full = 1, part = 1, inner = 1;  // the global tensor and this shard, as in Initialize
  bool sharded = false;                                   // over the tensor axis
};
/// The parameters of a stage in flat order, as the Program lays them out.
std::vector<Parameter> parameters(const config::Model& model, const program::Layout& layout, int pipeline_stage);

}  // namespace harness::gpt
