#include <algorithm>

#include "base/text.h"
#include "evidence/input.h"
#include "evidence/training_job.h"

// Derives ranks, replicas and batches from each other, and finds contradictions.

namespace harness::evidence {

bool is_sharded_pipeline(const TrainingJob& job) {
  const std::string sharding = job.text("sharding");
  return job.number_or("layout.pipeline_parallel", 1) > 1 && (sharding == "gradients" || sharding == "parameters");
}

namespace {

constexpr std::int64_t most_of_an_axis = 1 << 20;

bool is_model_alone(const TrainingJob& job) {
  return job.framework == "hugging face model";
}

// A recipe without a layout gets the one of its release.
bool is_recipe(const TrainingJob& job) {
  return job.framework.starts_with("llmb") || (job.framework == "megatron-bridge" && job.has("model_name"));
}

void complete_layout(TrainingJob& job) {
  const bool has_defaults = !is_model_alone(job) && job.framework != "deepspeed";
  for (const char* axis : {"layout.tensor_parallel", "layout.pipeline_parallel", "layout.context_parallel"}) {
    if (is_recipe(job)) job.otherwise_unknown(axis, "the recipe decides");
    if (has_defaults) job.otherwise(axis, "1", "default");
    if (job.number_or(axis, 1) > most_of_an_axis)
      fail("degrees of parallelism above {} are not possible", most_of_an_axis);
  }
  if (has_defaults && !is_recipe(job)) job.otherwise("expert_parallel", "1", "default");
}

void divide_ranks(TrainingJob& job) {
  const std::int64_t tensor = job.degree("tensor"), stages = job.degree("pipeline"), context = job.degree("context");
  const std::int64_t replica = std::min(tensor * stages, most_of_an_axis) * context;
  const auto ranks = job.number("ranks");
  const auto open = [&](Text axis) { return job.has(axis) && !job.number(axis); };
  if (open("layout.tensor_parallel") || open("layout.pipeline_parallel") || open("layout.context_parallel")) {
    job.set_unknown("data_parallel", "the layout is not known");
  } else if (ranks && *ranks % replica != 0) {
    job.set_unknown("data_parallel", "ranks / (TP x PP x CP)", "none");
    say(job.problems,
        "{} ranks cannot hold TP {} x PP {}{} = {} ranks: give the launcher more ranks, or the model fewer stages",
        *ranks, tensor, stages, context > 1 ? fmt::format(" x CP {}", context) : "", replica);
  } else if (ranks) {
    job.set("data_parallel", *ranks / replica, fmt::format("{} ranks / {}", *ranks, replica));
  } else if (!is_model_alone(job) && !is_recipe(job) && !job.number("data_parallel")) {
    job.set_unknown("data_parallel", "ranks are not known",
                    replica == 1 ? "ranks" : fmt::format("ranks / {}", replica));
  }
}

// Any three of micro-batch, accumulation, replicas and global batch determine the fourth.
void divide_batch(TrainingJob& job) {
  const auto replicas = job.number("data_parallel"), micro = job.number("micro_batch_size"),
             accumulation = job.number("gradient_accumulation");
  auto global = job.number("global_batch_size");
  // The replicas are unknown but follow from the ranks.
  const bool open = job.has("data_parallel") && job.text("data_parallel").empty() && !job.number("ranks");
  const std::int64_t local = job.number("local_batch").value_or(micro.value_or(0));  // per replica at once
  const auto in_replicas = [&](const char* name, std::string text) {
    if (open && !job.has(name)) job.set_unknown(name, "the replicas are not known", std::move(text));
  };
  if (!global && micro && !accumulation && job.has("gradient_accumulation")) {
    return job.otherwise_unknown("global_batch_size", "the accumulated micro-batches are not known");
  }
  if (!global && micro) {
    const std::int64_t each = local * accumulation.value_or(1);
    in_replicas("global_batch_size", fmt::format("{} x dp", each));
    if (replicas && !job.has("global_batch_size")) {
      global = each * *replicas;
      job.set("global_batch_size", *global, accumulation ? "micro x accumulated x DP" : "micro x DP");
    }
  }
  if (!global) return;
  const std::int64_t accumulated = accumulation.value_or(0);
  if (!micro && accumulated > 0) {
    in_replicas("micro_batch_size", fmt::format("{} / dp", *global / accumulated));
    if (replicas && *replicas > 0)
      job.otherwise("micro_batch_size", *global / (accumulated * *replicas), "global / (accumulated x DP)");
  }
  if (!micro || *micro < 1) return;
  in_replicas("gradient_accumulation", fmt::format("{} / dp", *global / *micro));
  if (!replicas || *replicas < 1) return;
  const std::int64_t at_once = *micro * *replicas;
  if (*global % at_once != 0)
    return say(job.problems, "{} sequences do not divide among {} replicas of {}: change the batch or the ranks",
               *global, *replicas, *micro);
  if (job.uses("deepspeed") && accumulation && *accumulation != *global / at_once)
    say(job.problems, "{} sequences are not {} replicas x {} x {} accumulated: DeepSpeed stops at them", *global,
        *replicas, *micro, *accumulation);
  job.set("gradient_accumulation", *global / at_once, "global / (micro x DP)");
}

// Reports sizes that do not divide and groups that span more than a node.
void check_divisions(TrainingJob& job) {
  const std::int64_t tensor = job.degree("tensor"), stages = job.degree("pipeline"),
                     chunks = std::max<std::int64_t>(1, job.number_or("virtual_pipeline", 1));
  if (job.number("model.heads")) job.otherwise("model.kv_heads", job.text("model.heads"), "as many as heads");
  const auto layers = job.number("model.layers"), heads = job.number("model.heads"),
             kv_heads = job.number("model.kv_heads"), hidden = job.number("model.hidden"),
             width = job.number("head_dim"), per_node = job.number("ranks_per_node");
  if (hidden && heads && *heads > 0 && width && *width != *hidden / *heads)
    say(job.cannot, "heads of width {}: hidden / heads = {} is counted", *width, *hidden / *heads);
  const std::int64_t counted = layers.value_or(0) + (job.text("embedding_as_layer") == "true" ? 2 : 0);
  if (layers && !job.has("uneven_stages") && counted % (stages * std::min(chunks, most_of_an_axis)) != 0)
    say(job.problems, "{} layers do not divide into {} stages{}", *layers, stages,
        chunks > 1 ? fmt::format(" of {} chunks", chunks) : "");
  if (chunks > 1) job.otherwise("pipeline_schedule", "interleaved", "virtual_pipeline");
  if (heads && *heads % tensor != 0) say(job.problems, "{} heads do not divide among TP {}", *heads, tensor);
  if (kv_heads && tensor > *kv_heads)
    job.note("TP {} is more than {} heads of keys and values: they are copied", tensor, *kv_heads);
  const bool rack = job.text("hardware").starts_with("gb");  // GB200 and GB300: NVLink connects the nodes
  if (per_node && *per_node > 0 && tensor > *per_node && !rack)
    say(job.problems, "TP {} spans nodes of {} ranks: every layer waits for the network", tensor, *per_node);
}

// Megatron-LM divides the experts of a stage's layers among ranks beside --expert-tensor-parallel-size, which is TP by
// default. In other frameworks EP and PP alone are known to divide the ranks.
void check_expert_ranks(TrainingJob& job) {
  const auto ranks = job.number("ranks");
  const std::int64_t stages = job.degree("pipeline"),
                     experts = std::clamp<std::int64_t>(job.number_or("expert_parallel", 1), 1, most_of_an_axis);
  const std::int64_t of_expert =
      std::clamp<std::int64_t>(job.their_number("--expert-tensor-parallel-size")
                                   .value_or(job.framework == "megatron-lm" ? job.degree("tensor") : 1),
                               1, most_of_an_axis);
  const std::int64_t together = experts * of_expert * stages;
  if (!ranks || experts == 1 || *ranks % together == 0) return;
  say(job.problems, "{} ranks are not a multiple of EP {}{}{} = {}: give the launcher more ranks, or lower EP", *ranks,
      experts, of_expert > 1 ? fmt::format(" x expert TP {}", of_expert) : "",
      stages > 1 ? fmt::format(" x PP {}", stages) : "", together);
}

void count_experts(TrainingJob& job) {
  for (const char* key : {"--num-experts", "--num-moe-experts", "num_experts", "num_local_experts", "n_routed_experts",
                          "model.ffn_config.moe_num_experts"}) {
    std::int64_t experts = 0;  // largest number in a layer, if layers differ
    const std::string counts = job.theirs(key);
    for (Text count : words_of(counts, 256)) experts = std::max(experts, number_in<std::int64_t>(count).value_or(0));
    if (experts < 2) continue;
    job.set("experts", experts, key);
    std::string each;
    for (const char* of_token : {"--moe-router-topk", "num_experts_per_tok", "model.ffn_config.moe_top_k"}) {
      if (job.says(of_token)) each = fmt::format(", {} of them per token", job.theirs(of_token));
    }
    say(job.cannot, "{} experts{}: the FLOP and the traffic of one dense MLP are counted", experts, each);
  }
}

// Reports settings that harness counts differently or can only predict.
void tell_limits(TrainingJob& job) {
  const auto cannot = [&](std::string text) { job.cannot.push_back(std::move(text)); };
  const std::int64_t context = job.degree("context");
  if (job.text("batching") == "packed")
    cannot(
        "packed documents, whose lengths are not said: attention is counted as if each filled a row; with backend sim, "
        "batching: packed and sequences: {distribution: lognormal, median: N, sigma: X} say otherwise");
  if (is_sharded_pipeline(job))
    cannot(
        fmt::format("sharding of {} in a pipeline (nearest: optimizer): weights and gradients are counted whole on "
                    "each rank, and less is gathered",
                    job.text("sharding")));
  const std::string precision = job.text("precision");
  if (precision == "fp8" || precision == "mxfp8")
    cannot(fmt::format("no GPU has run the {} of backend cuda yet (docs/gpu-status.md); nearest is bf16, which has run",
                       precision));
  if (precision == "nvfp4") cannot("nvfp4 is only predicted (backend sim); what a sweep can run is nearest with bf16");
  if (context > 1) cannot(fmt::format("context parallelism {} is only predicted (backend sim)", context));
  if (job.text("tp_overlap") == "true")
    cannot("overlap of tensor-parallel collectives is only predicted (backend sim)");
}

}  // namespace

void conclude_shape(TrainingJob& job) {
  if (job.framework.empty() && !job.has("model.layers")) return;  // no program and no model was found
  complete_layout(job);
  divide_ranks(job);
  divide_batch(job);
  check_divisions(job);
  check_expert_ranks(job);
  count_experts(job);
  tell_limits(job);
}

}  // namespace harness::evidence
