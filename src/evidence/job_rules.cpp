#include <algorithm>

#include "base/text.h"
#include "evidence/input.h"
#include "evidence/training_job.h"

// Defaults and dependent values of torchtitan, llm-foundry, nanoGPT, MaxText and recipes.

namespace harness::evidence {
namespace {

// Gives the first and last stage one layer less if the layers divide evenly only that way.
void count_embedding(TrainingJob& job, std::int64_t pieces, const char* whose) {
  const std::int64_t layers = job.number_or("model.layers", 0);
  if (layers % pieces == 0 || (layers + 2) % pieces != 0) return;
  job.set("embedding_as_layer", "true", "first and last stage have a layer less");
  job.note("{} layers do not divide by {}: {} first and last stage have one less", layers, pieces, whose);
}

// Since February 2026 configurations are Python and known only by name: "llama3_8b".
void titan_model(TrainingJob& job, bool by_name) {
  std::string flavor = job.theirs("model.flavor"), name = job.theirs("model.name"), from = "model.flavor " + flavor;
  if (by_name) {
    flavor = job.theirs("config");
    if (flavor == "llama3_8b") {  // the defaults, but for these
      job.note("configurations are Python since February 2026: they are known by name only");
      take_defaults(job, "model.sequence=8192 micro_batch_size=1", flavor);
    } else {
      job.note(
          "configurations are Python since February 2026: of this one the model is known by its name, and what its "
          "options do not set is not known here");
      for (const char* key : {"model.sequence", "micro_batch_size", "precision", "recompute", "layout.tensor_parallel",
                              "layout.pipeline_parallel", "layout.context_parallel", "expert_parallel"}) {
        job.otherwise_unknown(key, fmt::format("{} decides", quote(flavor)));
      }
    }
    flavor = flavor.substr(flavor.rfind('_') + 1);
    name = job.theirs("module");
    from = "the configuration's name";
  } else if (flavor.empty()) {
    flavor = "debugmodel";
    from = "default of torchtitan";
  }
  if (name.empty()) name = "llama3";
  job.otherwise("model.sequence", "2048", "default of torchtitan");
  take_model(job, name + "-" + lower(flavor), from);
  if (is_one_of("deepseek_v3|llama4|gpt_oss", name)) say(job.cannot, "experts of {}", name);
}

void titan_batch(TrainingJob& job) {
  constexpr std::int64_t unknown = std::int64_t{1} << 40;  // more than any number of tokens
  const std::int64_t context = std::max<std::int64_t>(1, job.number_or("model.sequence", unknown)),
                     stages = job.degree("pipeline");
  const auto tokens = job.their_number("training.num_tokens_per_microbatch_per_dp_rank"),
             step_tokens = job.their_number("training.num_tokens_per_train_step");
  if (tokens && *tokens >= context) {
    job.set("micro_batch_size", *tokens / context, "tokens of a micro-batch / context");
    job.note("{} tokens per micro-batch / context {} = {} sequences", *tokens, context, *tokens / context);
  }
  if (step_tokens && *step_tokens >= context)
    job.set("global_batch_size", *step_tokens / context, "tokens of a step / context");
  job.otherwise("micro_batch_size", "8", "default of torchtitan");
  if (stages == 1 || !job.number("micro_batch_size")) return;
  const std::int64_t local = job.number_or("micro_batch_size", 1);
  auto micro = job.their_number("parallelism.pipeline_parallel_microbatch_size").value_or(1);
  if (job.says("experimental.pipeline_parallel_degree"))  // until April 2025; default: one per stage
    micro = local /
            std::max<std::int64_t>(1, job.their_number("experimental.pipeline_parallel_microbatches").value_or(stages));
  micro = std::max<std::int64_t>(1, micro);
  job.set("local_batch", local, job.values["micro_batch_size"].origin);
  job.set("micro_batch_size", micro, "parallelism.pipeline_parallel_microbatch_size");
  job.note("local_batch_size {} is per data-parallel rank and is what the pipeline cuts: {} micro-batches of {}", local,
           local / micro, micro);
}

// Returns the number of pieces that the layers are cut into.
std::int64_t titan_pipeline(TrainingJob& job) {
  constexpr const char* from = "parallelism.pipeline_parallel_schedule";
  std::string schedule = job.theirs(from);
  if (schedule.empty()) schedule = job.theirs("experimental.pipeline_parallel_schedule");
  const std::string plain = replaced(lower(schedule), {{'_', ""}});
  const std::int64_t stages = job.degree("pipeline");
  const auto layers = job.number("model.layers"),
             of_stage = job.their_number("parallelism.pipeline_parallel_layers_per_stage");
  std::int64_t chunks = has_any(plain, "interleaved|zbv|dualpipe") ? 2 : 1;
  if (of_stage && *of_stage > 0 && layers)
    chunks = std::max<std::int64_t>(1, (*layers + 2 + *of_stage - 1) / *of_stage / stages);
  chunks = stages == 1 ? 1 : std::min<std::int64_t>(chunks, 1 << 20);
  const char* nearest = chunks > 1 ? "interleaved" : "1f1b";
  if (!plain.empty() && !is_one_of("1f1b|gpipe|interleaved1f1b", plain))
    say(job.cannot, "schedule {} (nearest: {})", schedule, nearest);
  job.set("virtual_pipeline", chunks, from);
  job.set("pipeline_schedule", plain == "gpipe" ? "gpipe" : nearest, from);
  count_embedding(job, stages * chunks, "torchtitan's");
  return stages * chunks;
}

void titan_checkpoints(TrainingJob& job, bool by_name, std::int64_t pieces) {
  const std::string mode = job.theirs("activation_checkpoint.mode"),
                    option = job.theirs("activation_checkpoint.selective_ac_option");
  if (mode == "full" || mode == "none") return job.set("recompute", mode, "activation_checkpoint.mode");
  if (by_name && mode.empty() && job.has("recompute")) return;  // unknown
  const bool budget = mode == "memory_budget";
  if (budget || option == "op" || by_name) {
    // It keeps the outputs of attention and every other product: time and memory match neither none nor full.
    const char* chosen = budget ? "by a memory budget" : "by operation";
    job.set("recompute", "none", "activation_checkpoint", fmt::format("{} (nearest: none)", chosen));
    say(job.cannot, "selective checkpoints {} (nearest: recompute none): a prediction is shorter and needs more memory",
        chosen);
    return;
  }
  const auto every = number_in<std::int64_t>(option).value_or(2);  // in harness the first: equal memory and time
  job.set("recompute", "full", "activation_checkpoint", fmt::format("one of {} layers", every));
  const std::int64_t of_chunk = std::max<std::int64_t>(1, job.number_or("model.layers", 0) / pieces);
  if (job.number("model.layers") && every > 0)
    job.set("recompute_layers", (of_chunk - 1) / every + 1, "activation_checkpoint");
}

void titan_shards(TrainingJob& job) {
  constexpr const char* from = "parallelism.data_parallel_shard_degree";
  auto shard = job.number("data_parallel_shard");
  const auto ranks = job.number("ranks");
  const std::int64_t replicate = job.number_or("data_parallel_replicate", 1);
  const std::int64_t others = job.degree("tensor") * job.degree("pipeline") * job.degree("context");
  if (!ranks && shard && *shard > 0 && replicate * *shard <= (1 << 20))
    job.set("ranks", replicate * *shard * others, fmt::format("{} x {} x {}", replicate, *shard, others));
  if (!shard && ranks && replicate * others > 0) shard = *ranks / (replicate * others);
  if (shard && *shard == 1) return job.set("sharding", "none", from);
  const std::string reshard = job.theirs("parallelism.fsdp_reshard_after_forward");
  job.set("sharding", reshard == "never" ? "gradients" : "parameters", from);
  job.set("overlap_param_gather", "true", "always in torchtitan");
  if (job.degree("pipeline") > 1 && reshard != "always")
    job.note("with pipeline stages, FSDP keeps weights after the forward pass by default");
  if (shard) hybrid_sharding(job, *shard, replicate, "parallelism.data_parallel_replicate_degree");
}

// Leaves unknown what a configuration decides that was not given, unless the command line says it.
void leave_to_configuration(TrainingJob& job, std::initializer_list<const char*> names) {
  if (!job.lacks_files) return;
  job.note("what is not on the command line stands in the configuration, which was not given");
  for (const char* name : names) job.otherwise_unknown(name, "a configuration that was not given");
}

void torchtitan(TrainingJob& job) {
  if (job.lacks_files) return leave_to_configuration(job, {});
  const bool by_name = job.says("config");
  titan_model(job, by_name);
  titan_batch(job);
  titan_checkpoints(job, by_name, titan_pipeline(job));
  const std::string quantized = job.theirs("model.converters");
  if (contains(quantized, "mx")) job.set("precision", "mxfp8", "model.converters");
  if (contains(quantized, "float8") || job.is_on("float8.enable_float8_linear"))
    job.set("precision", "fp8", "model.converters");
  take_defaults(job, "precision=bf16 overlap_grad_reduce=true prefetch_layers=1", "default of torchtitan");
  if (!job.has("layout.tensor_parallel") || job.number("layout.tensor_parallel"))
    job.otherwise("sequence_parallel", job.degree("tensor") > 1 ? "true" : "false", "with TP");
  titan_shards(job);
}

void foundry(TrainingJob& job) {
  const auto is_decided = [&](Text key) { return !job.lacks_files || job.says(key); };
  const std::string from = "default of llm-foundry", name = job.text("model_name");
  if (!name.empty()) {
    take_model(job, name, "model.pretrained_model_name_or_path");
  } else if (!job.lacks_files) {
    model_defaults(job,
                   "hidden=2048 heads=16 layers=24 vocab=50368 activation=gelu positions=learned norm=layer_norm "
                   "tied_embeddings=true biases=true",
                   from);
    const auto ratio = as_number(job.theirs("model.expansion_ratio")).value_or(4);
    if (const auto hidden = job.number("model.hidden"))
      job.otherwise("model.ffn", fmt::format("{:.0f}", ratio * static_cast<double>(*hidden)),
                    "expansion_ratio x d_model");
    if (job.theirs("model.attn_config.attn_type") == "multiquery_attention")
      job.set("model.kv_heads", "1", "attn_type");
  }
  std::string strategy = job.theirs("fsdp_config.sharding_strategy");
  const auto of_fsdp = [](const ForeignSetting& setting) { return setting.key.starts_with("fsdp_config."); };
  if (strategy.empty() && std::ranges::any_of(job.settings, of_fsdp)) strategy = "FULL_SHARD";
  const bool whole = strategy == "FULL_SHARD" || strategy == "HYBRID_SHARD";
  const char* divided = whole ? "parameters" : "gradients";
  if (!strategy.empty() || !job.lacks_files)
    job.set("sharding", strategy.empty() || strategy == "NO_SHARD" ? "none" : divided, "fsdp_config.sharding_strategy");
  if (begins_with(strategy, "HYBRID|_HYBRID")) job.set("sharding_group", "node", "fsdp_config.sharding_strategy");
  constexpr Text checkpoints = "fsdp_config.activation_checkpointing";
  if (is_decided(checkpoints)) job.set_by_switch("recompute", checkpoints, "full", "none", std::string(checkpoints));
  const bool pure = job.theirs("fsdp_config.mixed_precision") == "PURE" && job.text("precision") == "bf16";
  if (is_decided("fsdp_config.mixed_precision"))
    job.set("grad_reduce_precision", pure ? "bf16" : "fp32", "fsdp_config.mixed_precision");
  if (pure) job.note("mixed_precision PURE: gradients are reduced in bf16");
  leave_to_configuration(job, {"precision", "sharding", "recompute"});
  job.otherwise("overlap_grad_reduce", "true", "always in FSDP");
}

void nanogpt(TrainingJob& job) {
  if (job.lacks_files) return leave_to_configuration(job, {});
  const std::string from = "default of nanoGPT's train.py", start = job.theirs("init_from");
  if (start.starts_with("gpt2")) take_model(job, start, "init_from");
  model_defaults(job,
                 "layers=12 hidden=768 heads=12 sequence=1024 vocab=50304 activation=gelu norm=layer_norm "
                 "positions=learned tied_embeddings=true biases=false",
                 from);
  take_defaults(job, "precision=bf16 sharding=none recompute=none overlap_grad_reduce=true micro_batch_size=12", from);
  if (const auto hidden = job.number("model.hidden")) job.otherwise("model.ffn", 4 * *hidden, "4 x hidden");
  const auto all = job.their_number("gradient_accumulation_steps").value_or(40);
  const auto micro = job.number("micro_batch_size"), ranks = job.number("ranks");
  if (micro && all > 0) job.set("global_batch_size", *micro * all, "batch_size x gradient_accumulation_steps");
  if (!ranks)
    job.set_unknown("gradient_accumulation", "gradient_accumulation_steps of all ranks",
                    fmt::format("{} / ranks", all));
  job.note(
      "gradient_accumulation_steps counts all ranks together (since March 2023); what is not named is a default of "
      "train.py");
}

// A named model sets its sizes itself: those in files (base.yml has some of each) give way, those of the command line
// do not.
void maxtext_model(TrainingJob& job, const std::string& name) {
  const std::string from = "model_name " + name;
  TrainingJob named;
  const bool known = take_model(named, name, from);
  for (const ForeignSetting& setting : job.settings) {
    if (!known || setting.framework != "maxtext") continue;
    const std::string origin = fmt::format("{}, {}", setting.key, setting.origin);
    std::erase_if(job.values, [&](const auto& entry) {
      const bool size = entry.first == "head_dim" || (entry.first != "model.sequence" && named.has(entry.first));
      return size && entry.second.origin == origin;
    });
  }
  take_model(job, name, from);
}

void maxtext(TrainingJob& job) {
  if (const std::string name = job.text("model_name"); !name.empty() && name != "default") maxtext_model(job, name);
  if (job.theirs("decoder_block") == "gpt3")
    model_defaults(job, "norm=layer_norm positions=learned biases=true", "decoder_block gpt3");
  if (job.has("model.layers"))
    model_defaults(
        job, "activation=swiglu norm=rms_norm positions=rotary rope_theta=10000 tied_embeddings=false biases=false",
        "default of MaxText");
  // Returns nothing if an axis takes the remaining ranks (-1, which base.yml sets for two axes).
  const auto axis = [&](Text name) -> std::optional<std::int64_t> {
    std::int64_t product = 1;
    for (const char* level : {"ici", "dcn"}) {
      const std::string key = fmt::format("{}_{}_parallelism", level, name);
      const bool rest = key == "ici_fsdp_parallelism" || key == "dcn_data_parallelism";
      const std::int64_t n = job.their_number(key).value_or(rest ? -1 : 1);
      if (n < 1 || n > (1 << 20)) return std::nullopt;
      product *= n;
    }
    return product;
  };
  std::int64_t replica = 1;
  for (const char* name : {"tensor", "context", "pipeline"}) {
    const std::int64_t n = axis(name).value_or(1);
    replica = std::min<std::int64_t>(replica, 1 << 20) * n;
    job.set(fmt::format("layout.{}_parallel", name), n, fmt::format("ici_{0}_parallelism x dcn_{0}_parallelism", name));
  }
  const auto shards = axis("fsdp");
  job.set("sharding", shards == 1 ? "none" : "parameters", "ici_fsdp_parallelism x dcn_fsdp_parallelism");
  std::optional<std::int64_t> ranks = 1;
  for (const char* name : {"data", "fsdp", "fsdp_transpose", "sequence", "context", "tensor", "tensor_transpose",
                           "tensor_sequence", "pipeline", "expert"}) {
    const auto n = axis(name);
    ranks = n && ranks && *ranks <= (1 << 20) ? std::optional(*ranks * *n) : std::nullopt;
  }
  if (ranks) job.otherwise("ranks", *ranks, "ici x dcn of all axes");
  ranks = job.number("ranks");
  if (shards && *shards > 1 && !ranks)
    job.note("ici x dcn of fsdp: {} shards; data parallelism takes what remains, so ranks are a multiple", *shards);
  leave_to_configuration(job, {"precision", "recompute"});
  take_defaults(job, "recompute=full precision=bf16 overlap_grad_reduce=true", "default of MaxText");
  const auto each = as_number(job.theirs("per_device_batch_size"));
  if (!each) return;
  const double of_replica = *each * static_cast<double>(replica);  // the ranks of a replica share its sequences
  if (of_replica >= 1) job.set("micro_batch_size", fmt::format("{:.0f}", of_replica), "per_device_batch_size");
  const double of_rank = *each * static_cast<double>(job.number_or("gradient_accumulation", 1));
  if (ranks)
    job.set("global_batch_size", fmt::format("{:.0f}", of_rank * static_cast<double>(*ranks)),
            "per_device_batch_size x ranks");
  else
    job.set_unknown("global_batch_size", "per_device_batch_size", fmt::format("{:g} x ranks", of_rank));
}

void recipe(TrainingJob& job) {  // Megatron-Bridge's command line, and llmb
  std::string name = job.text("model_name");
  if (job.framework.starts_with("llmb")) {
    name = job.theirs("model_info.model_name") + "-" + job.theirs("model_info.model_size");
    job.set("model_name", name, "model_info");
    for (const ForeignSetting& setting : job.settings) {
      constexpr Text section = "job_config.env_overrides.";
      if (setting.key.starts_with(section) && is_of_interest(setting.key.substr(section.size())))
        job.environment.emplace_back(setting.key.substr(section.size()), setting.value);
    }
  }
  if (name.find_first_of("0123456789") != std::string::npos) take_model(job, name, "the recipe's name");
  job.otherwise("precision", "bf16", "default of the recipes");
  const std::int64_t chunks = std::clamp<std::int64_t>(job.number_or("virtual_pipeline", 1), 1, 1 << 20);
  count_embedding(job, job.degree("pipeline") * chunks, "the recipe's");
  job.note(
      "model sizes are known from the recipe's name; what a recipe sets besides these options depends on its version "
      "and is not in this file");
}

}  // namespace

void hybrid_sharding(TrainingJob& job, std::int64_t shard, std::int64_t replicate, const std::string& origin) {
  if (replicate < 2 || shard < 2) return;
  const std::int64_t spanned = std::min<std::int64_t>(shard, 1 << 20) * job.degree("tensor") * job.degree("context");
  const bool node = spanned == job.number_or("ranks_per_node", 8);
  job.set("sharding_group", node ? "node" : "data", origin,
          fmt::format("HSDP: {} shard, {} replicate", shard, replicate));
  if (!node && shard < (1 << 20) && replicate < (1 << 20))
    say(job.cannot, "sharding among {} of {} replicas (nearest: among all)", shard, shard * replicate);
}

void conclude_framework(TrainingJob& job) {
  conclude_hugging_face(job);
  if (job.framework == "torchtitan") torchtitan(job);
  if (job.framework == "llm-foundry") foundry(job);
  if (job.framework == "nanogpt") nanogpt(job);
  if (job.framework == "maxtext") maxtext(job);
  if (job.uses("bridge options") || job.framework.starts_with("llmb")) recipe(job);
  const bool megatron = job.framework.starts_with("megatron") || job.framework == "nemo";
  if (megatron && !job.uses("bridge options")) conclude_megatron(job);
}

}  // namespace harness::evidence
