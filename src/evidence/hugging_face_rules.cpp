#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/units.h"
#include "evidence/input.h"
#include "evidence/training_job.h"

// Defaults and dependent values of Hugging Face's models, Trainer and accelerate, and of DeepSpeed, which they start.

namespace harness::evidence {
namespace {

constexpr Text like_llama = "norm=rms_norm positions=rotary activation=swiglu tied_embeddings=false biases=false";
constexpr Text like_gpt2 = "norm=layer_norm positions=learned activation=gelu tied_embeddings=true biases=true";
// Defaults of transformers' model classes, by model_type.
constexpr std::array<std::pair<Text, Text>, 9> model_classes{{
    {"llama|llama4_text|mllama_text_model|mistral|mixtral|qwen2|qwen2_vl_text|qwen2_5_vl_text|qwen3|qwen3_vl_text|"
     "qwen2_moe|qwen3_moe|phi3|olmo2",
     like_llama},
    {"gemma|gemma2|gemma3_text", "norm=rms_norm positions=rotary activation=swiglu tied_embeddings=true biases=false"},
    {"gpt2|gpt_bigcode|gpt_neo|opt|bloom", like_gpt2},
    {"mpt", "norm=layer_norm positions=learned activation=gelu tied_embeddings=true biases=false"},
    {"starcoder2", "norm=layer_norm positions=rotary activation=gelu tied_embeddings=true biases=true"},
    {"gpt_neox|gptj|phi", "norm=layer_norm positions=rotary activation=gelu tied_embeddings=false biases=true"},
    {"cohere|cohere2", "norm=layer_norm positions=rotary activation=swiglu tied_embeddings=true biases=false"},
    {"stablelm", "norm=layer_norm positions=rotary activation=swiglu tied_embeddings=false biases=false"},
    {"falcon", "norm=layer_norm positions=rotary activation=gelu tied_embeddings=true biases=false"},
}};

void hugging_face_model(TrainingJob& job) {
  std::string type = job.theirs("model_type");
  if (type.empty() && job.says("n_embd")) type = "gpt2";
  const auto known = std::ranges::find_if(model_classes, [&](const auto& row) { return is_one_of(row.first, type); });
  const bool layer_norms = job.says("layer_norm_eps|layer_norm_epsilon");
  const Text otherwise = layer_norms ? like_gpt2 : like_llama;
  if (known == model_classes.end())
    job.note("model_type {} is not known here: its keys are read as {}'s", quote(type),
             layer_norms ? "GPT-2" : "Llama");
  const std::string from = fmt::format("default of {}", type.empty() ? "its class" : type);
  const bool biased = job.theirs("attention_bias") == "true" || job.theirs("mlp_bias") == "true";
  if (biased) job.otherwise("model.biases", "true", from);
  if (known == model_classes.end() && job.has("model.rope_theta"))
    job.otherwise("model.positions", "rotary", "rope_theta");
  const bool like_neither = layer_norms && (job.text("model.activation") == "swiglu" || job.has("model.rope_theta"));
  if (known == model_classes.end() && like_neither && !job.has("model.biases"))
    job.set_unknown("model.biases", "its class decides");
  model_defaults(job, known == model_classes.end() ? otherwise : known->second, from);
  if (job.text("model.positions") == "rotary") job.otherwise("model.rope_theta", "10000", from);
  if (job.is_on("multi_query") && !job.is_on("new_decoder_architecture"))  // whatever num_kv_heads says
    job.set("model.kv_heads", "1", "multi_query");
  if (type == "bloom" || job.is_on("attn_config.alibi")) job.cannot.emplace_back("positions alibi (nearest: learned)");
  if (contains(type, "bert")) job.cannot.emplace_back("BERT, whose attention is not causal: half of it is counted");
  if (type.starts_with("gemma")) {  // always gated, regardless of hidden_act
    job.set("model.activation", "swiglu", from);
    job.cannot.emplace_back("GEGLU (nearest: swiglu, with the same FLOP of products)");
  }
  if (job.theirs("hidden_act") == "relu2")
    job.cannot.emplace_back("squared ReLU (nearest: gelu, with the same FLOP of products)");
  const auto window = job.their_number("sliding_window");
  if (window && !job.says("use_sliding_window"))
    say(job.cannot, "sliding-window attention ({}): it is counted in full", *window);
  if (is_one_of("qwen2|qwen2_vl_text|qwen2_5_vl_text", type))
    job.cannot.emplace_back("biases of queries, keys and values alone (nearest: none)");
  if (const auto hidden = job.number("model.hidden")) job.otherwise("model.ffn", 4 * *hidden, "4 x hidden");
  if (job.says("max_position_embeddings|n_positions"))
    job.note("max_position_embeddings is a limit, not the length that is trained: --set sequence=N");
  job.note("torch_dtype is how weights are stored, not what is computed in");
}

constexpr const char* zero_overlap = "default of DeepSpeed: true at stage 3, else false";

void deepspeed(TrainingJob& job) {
  const bool alone = job.framework == "deepspeed";  // otherwise the program's own arguments matter too
  if (alone) job.otherwise("precision", "fp32", "default of DeepSpeed");
  const ForeignSetting* stage = job.find("zero_optimization.stage");
  if (stage != nullptr && !job.has("sharding"))  // a template's placeholder
    job.refuse("sharding", fmt::format("{}, {}: a number from 0 to 3 is expected", stage->key, stage->origin));
  job.otherwise("sharding", "none", "default of DeepSpeed");
  if (const std::string sharding = job.text("sharding"); !sharding.empty())
    job.otherwise("overlap_grad_reduce", sharding == "parameters" ? "true" : "false", zero_overlap);
  job.otherwise("bucket_elements", "500000000", "default of DeepSpeed");
  if (alone && !(job.has("global_batch_size") && job.has("micro_batch_size")))
    job.otherwise("gradient_accumulation", "1", "default of DeepSpeed");
  const auto global = job.number("global_batch_size");
  const std::int64_t at_once = job.number_or("micro_batch_size", 0) * job.number_or("gradient_accumulation", 0);
  if (alone && global && at_once > 0 && *global % at_once == 0)
    job.set("data_parallel", *global / at_once, "train_batch_size / (micro x accumulated)");
  if (std::ranges::any_of(job.settings, [](const auto& s) { return s.key.starts_with("activation_checkpointing."); }))
    job.note("activation_checkpointing does nothing by itself: the model's code calls it");
  const std::string precision = job.text("precision");
  if (!precision.empty())
    job.otherwise("grad_reduce_precision", precision == "fp32" ? "fp32" : "bf16",
                  "communication_data_type: that of the computation");
  if (const auto shards = job.their_number("zero_optimization.mics_shard_size"); shards && *shards > 0)
    job.set("sharding_group", "node", "zero_optimization.mics_shard_size");
  if (const auto elements = job.number("bucket_elements"))
    job.otherwise("bucket_size", print_bytes_exact(4 * *elements), job.values["bucket_elements"].origin);
}

void accelerate(TrainingJob& job) {
  const std::string type = lower(job.theirs("distributed_type"));
  const bool fsdp = type == "fsdp", deepspeed = type == "deepspeed";
  if (type == "megatron_lm")
    job.cannot.emplace_back("accelerate's settings of Megatron-LM (nearest: data parallelism)");
  std::string strategy = job.theirs("fsdp_config.fsdp_sharding_strategy");
  if (strategy.empty()) strategy = job.theirs("fsdp_config.fsdp_reshard_after_forward");
  if (deepspeed && job.says("deepspeed_config.deepspeed_config_file"))
    job.otherwise_unknown("sharding", "its DeepSpeed configuration says it: give it as well");
  const char* without_fsdp = deepspeed ? "gradients" : "none";
  job.otherwise("sharding", fsdp ? "parameters" : without_fsdp, "default of accelerate");
  hybrid_sharding(job, job.number_or("data_parallel_shard", 1), job.number_or("data_parallel_replicate", 1),
                  "parallelism_config_dp_replicate_size");
  if (strategy.starts_with("HYBRID") || strategy == "4" || strategy == "5")
    job.set("sharding_group", "node", "fsdp_config.fsdp_sharding_strategy");
  const auto ranks = job.number("ranks"), machines = job.their_number("num_machines");
  if (ranks && machines && *machines > 0) {
    job.otherwise("ranks_per_node", *ranks / *machines, "num_processes / num_machines");
    job.note("num_processes is of all machines together, {} per machine here", *ranks / *machines);
  }
  job.otherwise("recompute", "none", "default of accelerate");
  if (deepspeed && job.has("sharding") && !job.text("sharding").empty())
    job.otherwise("overlap_grad_reduce", job.text("sharding") == "parameters" ? "true" : "false", zero_overlap);
  if (!deepspeed) job.otherwise("overlap_grad_reduce", "true", "always in FSDP and DistributedDataParallel");
}

void trainer_sharding(TrainingJob& job) {
  const std::string zero = job.theirs("deepspeed");
  const auto named = mapped(  // configurations that ms-swift brings along
      "zero0=none|zero1=optimizer|zero2=gradients|zero3=parameters|zero2_offload=gradients|zero3_offload=parameters",
      zero);
  if (named) job.otherwise("sharding", *named, "deepspeed " + zero);
  if (named && zero.ends_with("offload"))
    job.cannot.emplace_back("the optimizer on the host: its copies are not predicted");
  const bool elsewhere = job.says("zero_stage") || (job.is_on("deepspeed") && !job.uses("deepspeed"));
  if (elsewhere || job.lacks_files) job.otherwise_unknown("sharding", "its DeepSpeed configuration says it");
  const std::string fsdp = job.theirs("fsdp");
  const auto of_fsdp = [](const ForeignSetting& setting) {
    return setting.framework == "hugging face trainer" && setting.key.starts_with("fsdp_config.");
  };
  // Axolotl needs no word beside the settings; LLaMA-Factory 1 has its own.
  const bool by_settings = (job.says("base_model") && std::ranges::any_of(job.settings, of_fsdp)) ||
                           job.theirs("dist_config.name").starts_with("fsdp");
  if (!fsdp.empty() && fsdp != "false") {
    const bool gradients = contains(fsdp, "shard_grad_op") || contains(fsdp, "zero2");
    const char* sharding = gradients ? "gradients" : "parameters";
    job.set("sharding", contains(fsdp, "no_shard") ? "none" : sharding, "fsdp");
    if (contains(fsdp, "hybrid")) job.set("sharding_group", "node", "fsdp");
    if (contains(fsdp, "offload")) job.cannot.emplace_back("parameters on the host: their copies are not predicted");
  } else if (by_settings) {
    const bool kept = job.theirs("fsdp_config.reshard_after_forward") == "false";
    job.set("sharding", kept ? "gradients" : "parameters", "fsdp_config");
  }
  job.otherwise("sharding", "none", "DistributedDataParallel");
  if (!job.says("dp_shard_size")) return;
  const std::int64_t shard = job.number_or("data_parallel_shard", 1),
                     replicate = job.number_or("data_parallel_replicate", 1);
  if (shard > 1 && replicate > 1 && shard * replicate <= (1 << 20))
    job.otherwise("ranks", shard * replicate * job.degree("tensor") * job.degree("context"),
                  "dp_shard_size x dp_replicate_size x TP x CP");
  hybrid_sharding(job, shard, replicate, "dp_replicate_size");
}

void trainer_precision(TrainingJob& job) {
  const ForeignSetting* weights = job.find("torch_dtype");  // without mixed precision also that of the computation
  if (weights != nullptr && weights->framework != "hugging face model" && !job.has("precision")) {
    const std::string from = "torch_dtype " + weights->value;
    if (const auto name = mapped("bfloat16=bf16|bf16=bf16|float16=fp16|fp16=fp16", weights->value))
      job.set("precision", *name, from);
    else if (weights->value == "auto")
      job.set_unknown("precision", from + ": that of the checkpoint");
  }
  if (job.is_on("pure_bf16")) job.set("precision", "bf16", "pure_bf16");  // of LLaMA-Factory
  if (job.is_on("fp8")) job.set("precision", "fp8", "fp8");               // beside bf16
}

// It accumulates until 16 sequences or more make a batch, and computes in the precision of the checkpoint.
void ms_swift(TrainingJob& job) {
  const std::string from = "default of ms-swift";
  take_defaults(job, "micro_batch_size=1 recompute=full", from);
  job.otherwise_unknown("precision", from + ": that of the checkpoint");
  if (job.has("gradient_accumulation") || job.has("global_batch_size")) return;
  const auto micro = job.number("micro_batch_size"), ranks = job.number("ranks");
  constexpr std::int64_t least = 16;
  if (micro && ranks && *micro > 0 && *ranks > 0)
    job.set("gradient_accumulation", (least - 1) / (*micro * *ranks) + 1, from + ": 16 sequences or more");
  else
    job.set_unknown("gradient_accumulation", from + ": the ranks decide");
}

void trainer(TrainingJob& job) {
  trainer_precision(job);
  if (contains(job.theirs("program"), "swift/cli")) ms_swift(job);
  job.otherwise("micro_batch_size", "8", "default of the Trainer");
  if (!job.has("global_batch_size")) job.otherwise("gradient_accumulation", "1", "default of the Trainer");
  // A program that calls DeepSpeed itself has its own defaults.
  const ForeignSetting* zero = job.find("deepspeed");
  const bool own = job.says("zero_stage") || (zero != nullptr && zero->value.empty());
  // LLaMA-Factory, without Megatron's layout, recomputes unless told otherwise.
  if (job.says("finetuning_type") && !job.says("tensor_model_parallel_size"))
    job.otherwise("recompute", job.is_on("disable_gradient_checkpointing") ? "none" : "full",
                  "default of LLaMA-Factory");
  if (own) job.otherwise_unknown("precision", "its program decides");
  take_defaults(job, "precision=fp32 recompute=none overlap_grad_reduce=true", "default of the Trainer");
  trainer_sharding(job);
  if (const std::string name = job.text("model_name"); !name.empty() && !job.has("model.layers")) {
    const bool says_sequence = job.has("model.sequence");
    take_model(job, name, "model_name_or_path " + name);
    if (!says_sequence && job.has("model.sequence")) job.note("the sequence is the model's usual one: no flag says it");
  }
}

}  // namespace

void conclude_hugging_face(TrainingJob& job) {
  if (job.framework == "hugging face trainer")  // "auto" stands for its arguments or defaults
    std::erase_if(job.values, [](const auto& entry) {
      return !entry.second.known && entry.second.origin.ends_with(": auto") && !entry.first.starts_with("bucket");
    });
  if (job.uses("hugging face model")) hugging_face_model(job);
  if (job.uses("deepspeed") || (job.framework == "megatron-deepspeed" && !job.lacks_files)) deepspeed(job);
  const bool typed = job.says("distributed_type") || !job.lacks_files;  // else its configuration decides
  if (job.uses("accelerate") && typed) accelerate(job);
  if (job.framework == "hugging face trainer") trainer(job);
}

}  // namespace harness::evidence
