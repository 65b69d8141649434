#include <algorithm>

#include "base/text.h"
#include "config/frameworks/framework.h"
#include "evidence/input.h"
#include "evidence/training_job.h"

// Defaults and dependent values of Megatron-LM's arguments (megatron/training/arguments.py of core 0.4 to 0.19, and of
// 2022 and 2023 before it). Megatron-Bridge and NeMo 1 use the same field names in YAML.

namespace harness::evidence {
namespace {

constexpr const char* by_default = "default of Megatron-LM";

std::string origin_of(const TrainingJob& job, Text flag) {
  const ForeignSetting* setting = job.find(flag);
  return setting == nullptr ? by_default : fmt::format("{}, {}", flag, setting->origin);
}
// Returns whether the job gives a flag. A log's arguments hold all that there are, with what is derived from others.
bool is_asked(const TrainingJob& job, Text flag) {
  const ForeignSetting* given = job.find(flag);
  return given != nullptr && given->origin != dumped_arguments;
}
// Returns 16 for "0.16"; 0: not given.
std::int64_t core_version(const TrainingJob& job) {
  const std::string version = job.text("framework_version");
  return version.starts_with("0.") ? number_in<std::int64_t>(Text(version).substr(2)).value_or(0) : 0;
}

// Sets a value that no argument decides. Arguments that are not known may decide it.
void default_of_switches(TrainingJob& job, Text name, const char* value) {
  if (!job.more_arguments.empty()) job.otherwise_unknown(name, job.more_arguments.front());
  job.otherwise(name, value, by_default);
}

bool is_slime(const TrainingJob& job) {
  return job.says("--actor-num-nodes|--actor-num-gpus-per-node");
}
bool is_swift(const TrainingJob& job) {
  return contains(job.theirs("program"), "swift/cli/_megatron");
}

// Programs around Megatron-LM have defaults of their own.
void defaults_of_program(TrainingJob& job) {
  if (is_slime(job)) {
    const auto count = [&](const char* flag, std::int64_t usual) {
      return job.says(flag) ? count_of(job.theirs(flag)) : std::optional(usual);
    };
    const auto nodes = count("--actor-num-nodes", 1), each = count("--actor-num-gpus-per-node", 8);
    constexpr const char* from = "--actor-num-nodes x --actor-num-gpus-per-node";
    nodes&& each ? job.otherwise("ranks", *nodes * *each, from) : job.otherwise_unknown("ranks", from);
    job.otherwise("sharding", "optimizer", "default of slime");
    job.cannot.emplace_back("samples are generated beside training, which is not counted");
  }
  if (!is_swift(job)) return;
  if (const std::string name = job.theirs("--model"); !name.empty()) take_model(job, name, "--model " + name);
  take_defaults(job, "micro_batch_size=1 global_batch_size=16 recompute=selective sharding=optimizer",
                "default of ms-swift");
}

void model(TrainingJob& job) {
  if (const auto decoded = job.their_number("--decoder-seq-length"))
    job.set("model.sequence", *decoded, origin_of(job, "--decoder-seq-length"));
  model_defaults(job, "activation=gelu norm=layer_norm positions=learned biases=true", by_default);
  default_of_switches(job, "model.tied_embeddings", "true");
  if (job.text("model.positions") == "rotary") job.otherwise("model.rope_theta", "10000", by_default);
  const auto hidden = job.number("model.hidden"), heads = job.number("model.heads");
  if (job.is_on("--group-query-attention")) {
    const ForeignSetting* groups = job.find("--num-query-groups");
    job.set("model.kv_heads", job.their_number("--num-query-groups").value_or(1), origin_of(job, "--num-query-groups"));
    if (groups != nullptr && !groups->why_unknown.empty()) job.refuse("model.kv_heads", groups->why_unknown);
  } else if (const auto groups = job.their_number("--num-key-value-heads")) {  // of Megatron-DeepSpeed
    job.set("model.kv_heads", *groups, origin_of(job, "--num-key-value-heads"));
  } else if (heads) {
    job.otherwise("model.kv_heads", *heads, "as many as heads");
    if (job.says("--num-query-groups")) job.note("--num-query-groups does nothing without --group-query-attention");
  }
  // FlagScale rounds the width as Llama's first release did.
  const auto multiple = job.their_number("--multiple-of");
  const double factor = as_number(job.theirs("--hidden-dim-multiplier")).value_or(1);
  const bool is_sane = multiple && *multiple > 0 && *multiple <= (1 << 20) && factor > 0 && factor < 16;
  if (hidden && job.text("model.activation") == "swiglu" && is_sane) {
    const std::int64_t of_llama = *hidden * 8 / 3;
    const auto width = static_cast<std::int64_t>(static_cast<double>(of_llama) * factor);
    job.otherwise("model.ffn", (width + *multiple - 1) / *multiple * *multiple,
                  "8/3 x hidden x hidden_dim_multiplier, to a multiple_of");
  }
  if (hidden && job.text("model.activation") == "swiglu" && !job.has("model.ffn")) {
    const std::int64_t width = *hidden * 4 * 2 / 3 / 64 * 64;
    job.set("model.ffn", width, fmt::format("default with --swiglu: int(4*{}*2/3/64)*64", *hidden));
    job.note(
        "ffn is the default with --swiglu, int(4*{}*2/3/64)*64 = {}: Llama's own widths differ, and "
        "--ffn-hidden-size sets them",
        *hidden, width);
  } else if (hidden) {
    job.otherwise("model.ffn", 4 * *hidden, "default of Megatron-LM: 4 x hidden");
  }
  const std::string type = lower(job.theirs("--position-embedding-type"));
  if (type == "none" || type == "relative" || type == "alibi")
    say(job.cannot, "positions {} (nearest: {})", type, job.text("model.positions"));
}

// Reports models that are no decoder alone.
void other_kinds(TrainingJob& job) {
  const std::string program = file_name(job.theirs("program"));
  if (contains(program, "bert") || is_asked(job, "--bert-binary-head"))
    job.cannot.emplace_back("BERT, whose attention is not causal: half of it is counted");
  if (contains(program, "_t5") || is_asked(job, "--encoder-num-layers"))
    job.cannot.emplace_back("an encoder beside a decoder: a decoder alone is counted");
}

// Megatron-LM pads the vocabulary so that tensor-parallel ranks divide it evenly.
void vocabulary(TrainingJob& job) {
  if (job.has("model.vocab")) return;
  const std::string tokenizer = job.theirs("--tokenizer-type");
  auto size = job.their_number("--vocab-size");
  const bool null = tokenizer == "NullTokenizer";
  // pretrain_gpt.py uses GPT-2's tokenizer by default.
  const bool gpt2 = tokenizer == "GPT2BPETokenizer" || (tokenizer.empty() && job.says("--merge-file"));
  if (!size && gpt2) size = 50257;
  if (!size && tokenizer == "Llama2Tokenizer") size = 32000;
  if (!size && tokenizer == "Llama3Tokenizer") size = 128256;
  if (!size || *size <= 0 || *size > (1 << 30))
    return job.set_unknown("model.vocab", "the tokenizer's files say it: --set vocab=N");
  if (job.has("layout.tensor_parallel") && !job.number("layout.tensor_parallel"))
    return job.set_unknown("model.vocab", "it is padded to a multiple of TP, which is not known");
  const std::int64_t divisor = job.their_number("--make-vocab-size-divisible-by").value_or(128);
  const std::int64_t of = std::clamp<std::int64_t>(divisor, 1, 1 << 20) * job.number_or("layout.tensor_parallel", 1);
  const auto padded = [&](std::int64_t n) { return (n + of - 1) / of * of; };
  const std::int64_t now = padded(*size), before = padded(*size + (null ? 1 : 0));
  const std::int64_t version = core_version(job);
  const bool newer = version >= 18;
  const std::string origin = fmt::format("{} padded to a multiple of {}", *size, of);
  std::string said = now == before || version > 0 ? "" : fmt::format("{} ({} from core 0.18 on)", before, now);
  if (tokenizer.empty() && job.their_number("--vocab-size").value_or(0) == 0)
    said = fmt::format("{} with GPT-2's tokenizer, unknown with another", now);
  job.set("model.vocab", newer ? now : before, origin, said);
  if (null)
    job.note("NullTokenizer adds an end token up to core 0.17: {} padded to a multiple of {}{}", *size + 1, of,
             now == before ? ": the same either way" : "");
  else
    job.note("vocab {} padded to a multiple of {} x TP = {}", *size, divisor, of);
}

void precision(TrainingJob& job) {
  std::string name = "fp32", from = by_default;
  const auto take = [&](const char* flag, const char* ours) {
    if (!job.is_on(flag)) return;
    name = ours;
    from = origin_of(job, flag);
  };
  take("--fp16", "fp16");
  take("--bf16", "bf16");
  const ForeignSetting* mixed = job.find("mixed_precision|trainer.precision|--precision");  // the last of NeMo 2
  if (mixed != nullptr) {
    const std::string word = lower(mixed->value);
    for (const Text row : split("16=fp16|bf16=bf16|bfloat16=bf16|fp8=fp8|mxfp8=mxfp8|nvfp4=nvfp4", '|')) {
      const std::size_t equals = row.find('=');
      if (contains(word, row.substr(0, equals))) name = row.substr(equals + 1);
    }
    from = fmt::format("{}, {}", mixed->key, mixed->origin);
  }
  const bool switched_off = job.says("--fp8") && !job.is_on("--fp8");  // then NeMo ignores the format
  for (const char* flag : {"--fp8-format", "--fp8-hybrid", "--fp8-e4m3", "--fp8"}) {
    if (job.theirs(flag) != "None" && !switched_off) take(flag, "fp8");
  }
  if (name == "fp8" && job.theirs("--fp8-recipe") == "mxfp8") name = "mxfp8";
  for (const char* flag : {"--fp4-format", "--fp4"}) {
    if (job.theirs(flag) != "None") take(flag, "nvfp4");
  }
  const bool says_more = name == "mxfp8" || name == "nvfp4";  // than a single flag, which its row has already read
  if (job.has("precision") && !says_more) return;
  if (from == by_default && is_slime(job)) return job.otherwise("precision", "bf16", "default of slime");
  if (from == by_default && is_swift(job))
    return job.otherwise_unknown("precision", "default of ms-swift: that of the checkpoint");
  if (from == by_default) return default_of_switches(job, "precision", "fp32");
  job.set("precision", name, from);
}

// Harness supports a first and a last stage with one layer less each.
void uneven_stages(TrainingJob& job, std::int64_t stages) {
  constexpr Text first = "--decoder-first-pipeline-num-layers", last = "--decoder-last-pipeline-num-layers",
                 embedding = "--account-for-embedding-in-pipeline-split", loss = "--account-for-loss-in-pipeline-split",
                 layout = "--pipeline-model-parallel-layout", method = "--pp-partition-method";
  // DeepSpeed cuts where the layers of these kinds balance: "type:transformer|embedding".
  const std::string kinds = job.theirs(method);
  const bool counts_embedding = contains(kinds, "embedding");
  const bool balances = (job.number_or("model.layers", 0) + (counts_embedding ? 2 : 0)) % stages == 0;
  if (counts_embedding && balances) return job.set("embedding_as_layer", "true", origin_of(job, method));
  const std::int64_t begin = job.their_number(first).value_or(0), end = job.their_number(last).value_or(0);
  const std::int64_t inner = job.number_or("model.layers", 0) - begin - end;
  const bool a_layer_less = begin > 0 && begin == end && inner == (begin + 1) * (stages - 2);
  if (a_layer_less || (job.is_on(embedding) && job.is_on(loss))) {
    job.set("embedding_as_layer", "true", origin_of(job, a_layer_less ? first : embedding));
    if (a_layer_less) job.note("first and last stage have {} layers, the others {}", begin, begin + 1);
    return;
  }
  std::vector<std::string> said;
  for (const Text flag : {first, last, embedding, loss, layout}) {
    if (job.is_on(flag)) said.push_back(fmt::format("{} {}", flag, job.theirs(flag)));
  }
  if (!kinds.empty() && !balances) said.push_back(fmt::format("{} {}", method, kinds));
  if (said.empty()) return;
  job.set("uneven_stages", "true", said.front());
  say(job.cannot, "stages of unequal numbers of layers ({}): they are counted even", join(said, ", "));
}

void pipeline(TrainingJob& job) {
  const std::int64_t stages = job.number_or("layout.pipeline_parallel", 1);
  const auto layers = job.number("model.layers");
  const auto of_stage = job.their_number("--num-virtual-stages-per-pipeline-rank");
  const auto of_chunk = job.their_number("--num-layers-per-virtual-pipeline-stage");
  std::int64_t chunks = 1;
  std::string from = by_default;
  if (of_stage && *of_stage > 0) {
    chunks = *of_stage;
    from = origin_of(job, "--num-virtual-stages-per-pipeline-rank");
  } else if (of_chunk && *of_chunk > 0 && layers && stages > 0) {
    from = origin_of(job, "--num-layers-per-virtual-pipeline-stage");
    chunks = std::max<std::int64_t>(1, *layers / stages / *of_chunk);
    job.note("vpp = {} / {} / {} = {} per stage{}", *layers, stages, *of_chunk, plural(chunks, "chunk"),
             chunks == 1 ? ": Megatron-LM drops the interleaved schedule" : "");
  }
  if (stages == 1) chunks = 1;
  if (!job.has("virtual_pipeline")) job.set("virtual_pipeline", chunks, from);
  const bool interleaved = job.number_or("virtual_pipeline", 1) > 1;
  job.set("pipeline_schedule", interleaved ? "interleaved" : "1f1b", from);
  const bool old = job.says("--DDP-impl");
  const bool overlaps =
      interleaved && !job.is_on("--no-overlap-p2p-communication") && (!old || job.is_on("--overlap-p2p-communication"));
  job.set("overlap_p2p", overlaps ? "true" : "false", from);
  if (stages > 1) uneven_stages(job, stages);
}

void replicas(TrainingJob& job) {
  const bool fsdp = job.is_on("--use-megatron-fsdp") || job.is_on("--use-custom-fsdp");
  const std::string flag = job.is_on("--use-custom-fsdp") ? "--use-custom-fsdp" : "--use-megatron-fsdp";
  const std::string strategy = job.theirs("--data-parallel-sharding-strategy");
  const auto named =
      mapped("no_shard=none|optim=optimizer|optim_grads=gradients|optim_grads_params=parameters", strategy);
  if (fsdp && named) {
    job.set("sharding", *named, origin_of(job, "--data-parallel-sharding-strategy"));
  } else if (fsdp) {
    const std::int64_t version = core_version(job);
    const bool older = (version > 0 && version < 18) || flag == "--use-custom-fsdp";
    job.set("sharding", older ? "none" : "parameters", origin_of(job, flag),
            version == 0 && !older ? "parameters (core 0.18 on), none before" : "");
    job.note(
        "--data-parallel-sharding-strategy is not given: its default was no_shard in core 0.12 to 0.17 and is "
        "optim_grads_params since 0.18: --set framework_version=0.17 says which");
  } else if (job.is_on("--use-torch-fsdp2")) {
    job.set("sharding", "parameters", origin_of(job, "--use-torch-fsdp2"));
  } else if (!job.has("sharding") && job.lacks_files && job.framework == "megatron-deepspeed") {
    job.set_unknown("sharding", "DeepSpeed's configuration says it: give it as well");
  } else if (!job.says("--use-distributed-optimizer")) {
    default_of_switches(job, "sharding", "none");
  } else if (!job.has("sharding")) {
    job.set_by_switch("sharding", "--use-distributed-optimizer", "optimizer", "none",
                      origin_of(job, "--use-distributed-optimizer"));
  }
  take_defaults(job, "overlap_grad_reduce=false overlap_param_gather=false", by_default);
  if (is_one_of("megatron-lm|megatron-bridge", job.framework) && job.text("precision") != "fp16")
    job.otherwise("grad_reduce_precision", "fp32", by_default);
  const auto instances = job.their_number("--num-distributed-optimizer-instances"), ranks = job.number("ranks");
  if (instances.value_or(1) < 2) return;
  const std::string from = origin_of(job, "--num-distributed-optimizer-instances");
  job.set("sharding_group", "node", from);
  const std::int64_t replicas =
      ranks.value_or(0) / (job.degree("tensor") * job.degree("pipeline") * job.degree("context"));
  hybrid_sharding(job, replicas / *instances, *instances, from);
  job.values["sharding_group"].shown.clear();
}

// --recompute-modules exists since core 0.12; before it, and by default, only core_attn is recomputed.
void selective(TrainingJob& job) {
  std::string modules = job.theirs("--recompute-modules");
  if (modules.empty()) modules = "core_attn";
  if (modules != "core_attn")
    say(job.cannot, "selective recomputation of {} (nearest: selective, of attention alone)", modules);
  else if (job.text("attention") == "fused")
    job.note("recompute selective changes nothing with fused attention");
}

void computation(TrainingJob& job) {
  default_of_switches(job, "recompute", "none");
  const auto layers = job.their_number("--recompute-num-layers");
  if (job.text("recompute") == "full" && layers) {
    if (job.theirs("--recompute-method") == "block" && *layers == 0) {  // as configurations of NeMo switch it off
      job.set("recompute", "none", origin_of(job, "--recompute-num-layers"));
    } else if (job.theirs("--recompute-method") == "block") {
      job.set("recompute_layers", *layers, origin_of(job, "--recompute-num-layers"));
    } else if (*layers > 1) {
      say(job.cannot, "inputs of every {} layers are kept (nearest: of each layer)", *layers);
    }
  }
  const bool local = job.theirs("--transformer-impl") == "local" && !job.is_on("--use-flash-attn");
  job.otherwise("attention", local ? "unfused" : "fused", by_default);
  const bool divided = job.number_or("layout.tensor_parallel", 1) > 1;
  if (job.text("recompute") == "selective") selective(job);
  if (divided) {
    job.set_by_switch("sequence_parallel", "--sequence-parallel", "true", "false",
                      origin_of(job, "--sequence-parallel"));
  } else {
    job.set("sequence_parallel", "false", origin_of(job, "--sequence-parallel"));
    if (job.is_on("--sequence-parallel")) job.note("--sequence-parallel is switched off by Megatron-LM at TP 1");
  }
  if (const std::string dropout = job.theirs("--hidden-dropout"); as_number(dropout).value_or(0.1) > 0)
    job.note("dropout is not in harness's step: it takes 1 to 3 % of the time");
}

void batch(TrainingJob& job) {
  if (const auto packed = job.their_number("--packed-sequence-size"); packed && *packed > 0) {  // NeMo
    job.set("batching", "packed", origin_of(job, "--packed-sequence-size"));
    job.set("model.sequence", *packed, origin_of(job, "--packed-sequence-size"));
  }
  if (const std::string ramp = job.theirs("--rampup-batch-size"); !ramp.empty()) {
    const std::string plain = replaced(ramp, {{',', ""}});  // a list in YAML
    const auto parts = words_of(plain);
    if (parts.size() == 3)
      job.note("batch ramp {} + {} every {} samples: the final size counts", parts[0], parts[1], parts[2]);
  }
  const std::string steps = job.theirs("--step-batch-size-schedule");
  if (const auto last = number_in<std::int64_t>(Text(steps).substr(steps.rfind(':') + 1)))
    job.otherwise("global_batch_size", *last, origin_of(job, "--step-batch-size-schedule") + ": the last");
  const auto exclude = [&](const char* one, const char* other) {
    if (is_asked(job, one) && is_asked(job, other))
      say(job.problems, "{} and {} exclude each other: Megatron-LM stops", one, other);
  };
  exclude("--step-batch-size-schedule", "--global-batch-size");
  exclude("--num-virtual-stages-per-pipeline-rank", "--num-layers-per-virtual-pipeline-stage");
}

void age(TrainingJob& job) {
  std::vector<std::string> old;
  for (const char* flag : {"--checkpoint-activations", "--DDP-impl", "--layernorm-epsilon"}) {
    const ForeignSetting* given = job.find(flag);  // configurations have their own layernorm_epsilon
    if (given != nullptr && given->framework.empty()) old.emplace_back(flag);
  }
  if (!old.empty() && job.framework == "megatron-lm") {
    job.problems.push_back(and_list(old) + ", of 2022: later versions of Megatron-LM stop there");
    job.note("--DDP-impl and the like exist until core 0.3, where pipeline messages did not overlap by default");
  }
}

}  // namespace

void conclude_megatron(TrainingJob& job) {
  if ((job.framework == "megatron-bridge" || job.framework == "nemo") && !job.has("model.layers"))
    return job.note(
        "it changes a recipe, whose other settings are not in it: give the whole configuration (of Megatron-Bridge "
        "run_config.yaml)");
  defaults_of_program(job);
  model(job);
  other_kinds(job);
  vocabulary(job);
  precision(job);
  pipeline(job);
  replicas(job);
  computation(job);
  batch(job);
  age(job);
  const bool divides =
      job.number_or("layout.tensor_parallel", 1) > 1 || job.number_or("layout.context_parallel", 1) > 1;
  if (divides && job.kind == "launch script" && value_of(job.environment, "CUDA_DEVICE_MAX_CONNECTIONS").empty())
    job.note(
        "CUDA_DEVICE_MAX_CONNECTIONS=1 is not exported here: before Blackwell, Megatron-LM wants it with TP or CP");
}

}  // namespace harness::evidence
