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

/// Groups, in order. `embedding` joins the first and the last pipeline stage, which share a tied embedding. `gather`,
/// over the replicas like `data`, exists if they have parts of the weights to gather; `nodes` exists if the replicas of
/// a node divide them: `data` and `gather` are then per node.
enum : GroupId { tensor_group, data_group, embedding_group, world_group, gather_group, across_group };

/// Returns how many ranks divide the optimizer state among them, and whatever else `sharding` names: the replicas,
/// those of a node, or 1.
int shards_of(const Settings& settings, const Layout& layout);
/// Whether ranks on other nodes have copies of the same part.
bool shards_are_of_node(const Settings& settings, const Layout& layout);

/// Sequences per step, over all replicas.
std::int64_t global_batch(const Settings& settings, const Layout& layout);
/// Number of model replicas: ranks along the data axis, of which each Settings::context() share a sequence.
int replicas(const Settings& settings, const Layout& layout);

/// Returns a message that names the size that rules out `precision: fp8` or `mxfp8` with these settings
/// (program::fp8_multiple, mx_block); "" if there is none, and in any other precision.
std::string why_not_fp8(const Model& model, const Settings& settings, const Layout& layout);

ProgramSet programs(const Model& model, const Settings& settings, const Layout& layout);

/// Returns the step of programs() with its repeated passes folded. Requires 3 micro-batches or more, and that no rank
/// reduces its gradients after every backward pass (sharding up to `optimizer`).
program::FoldedStep folded(const Model& model, const Settings& settings, const Layout& layout);

// Names of buffers that other code looks up.
inline constexpr const char* tokens_buffer = "tokens";                // [micro_batches * rows] i32
inline constexpr const char* labels_buffer = "labels";                // [micro_batches * rows] i32
inline constexpr const char* position_ids_buffer = "position_ids";    // [micro_batches * rows] i32, of packed documents
inline constexpr const char* loss_scale_buffer = "loss_scale";        // [1] f32, 1 / tokens of the step's documents
inline constexpr const char* learning_rate_buffer = "learning_rate";  // [1] f32
inline constexpr const char* gradient_buffer = "gradient";            // of all parameters, f32, left by a step

}  // namespace harness::gpt
