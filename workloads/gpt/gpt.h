#pragma once

#include <cstdint>
#include <string>

#include "workloads/workload.h"

namespace harness::gpt {

using namespace workloads;  // a part of that room

// A GPT training step as Programs: a decoder as config::Model describes it, from GPT-2 to Llama 3; AdamW; tensor
// parallelism (Shoeybi et al. 2019), sequence parallelism and recomputation (Korthikanti et al. 2022), pipeline
// parallelism by a schedule (schedule.h), data parallelism in buckets. Settings must be possible on the layout (plan's
// divide_ranks).

/// Groups, in order; `embedding` joins the first and the last pipeline stage, which share a tied embedding.
/// `gather`, of the replicas as `data` is, is there where they have parts of the weights to gather; `nodes`
/// where those of a node divide them: `data` and `gather` are then of a node.
enum : GroupId { tensor_group, data_group, embedding_group, world_group, gather_group, across_group };

/// How many ranks divide the state of the optimizer among them, and what else `sharding` names: the replicas, those of
/// a node, or 1.
int shards_of(const Settings& settings, const Layout& layout);
/// Whether there are others elsewhere that have the same part.
bool shards_are_of_node(const Settings& settings, const Layout& layout);

/// Sequences of a step, of all replicas together.
std::int64_t global_batch(const Settings& settings, const Layout& layout);
/// Replicas of the model: the ranks along the data axis, as many as Settings::context() of which share a sequence.
int replicas(const Settings& settings, const Layout& layout);

/// The size that keeps `precision: fp8` or `mxfp8` from these settings (program::fp8_multiple, mx_block), for a person;
/// "" if there is none, and in any other precision.
std::string why_not_fp8(const Model& model, const Settings& settings, const Layout& layout);

ProgramSet programs(const Model& model, const Settings& settings, const Layout& layout);

/// The step of programs() with its repeated passes folded. It has 3 micro-batches or more, and no rank reduces its
/// gradients after every backward pass (sharding up to `optimizer`).
program::FoldedStep folded(const Model& model, const Settings& settings, const Layout& layout);

// Names of buffers that others look up.
inline constexpr const char* tokens_buffer = "tokens";                // [micro_batches * rows] i32
inline constexpr const char* labels_buffer = "labels";                // [micro_batches * rows] i32
inline constexpr const char* position_ids_buffer = "position_ids";    // [micro_batches * rows] i32, of packed documents
inline constexpr const char* loss_scale_buffer = "loss_scale";        // [1] f32, 1 / tokens of the step's documents
inline constexpr const char* learning_rate_buffer = "learning_rate";  // [1] f32
inline constexpr const char* gradient_buffer = "gradient";            // of all parameters, f32, left by a step

}  // namespace harness::gpt
