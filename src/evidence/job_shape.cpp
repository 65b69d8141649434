#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "config/hardware.h"
#include "evidence/lines.h"
#include "evidence/training_job.h"

// From files to a job: which framework they are of, and how ranks, replicas and batches follow from each other.

namespace harness::evidence {
namespace {

using Text = std::string_view;

// The framework whose command line it is.
std::string framework_of_program(const TrainingJob& job) {
  const std::string program = job.theirs("program"), name = file_name(program);
  const auto any = [&](std::initializer_list<Text> keys) {
    return std::ranges::any_of(keys, [&](Text key) { return job.find(key) != nullptr; });
  };
  const auto begins = [&](Text beginning) {
    return std::ranges::any_of(
        job.settings, [&](const ForeignSetting& s) { return s.framework.empty() && s.key.starts_with(beginning); });
  };
  if (contains(program, "scripts/performance") || (any({"-ng"}) && any({"-m", "-mr"})) ||
      any({"--model_recipe_name", "train.global_batch_size", "train.micro_batch_size"}))
    return "megatron-bridge";
  if ((begins("trainer.") && begins("model.")) || begins("training.trainer.") || begins("training.model."))
    return "nemo";
  if (any({"--num-layers", "--num-layer", "--tensor-model-parallel-size", "--micro-batch-size", "--hidden-size",
           "--yaml-cfg"})) {
    const bool deepspeed = any({"--deepspeed", "--deepspeed_config", "--deepspeed-config", "--zero-stage"});
    return deepspeed ? "megatron-deepspeed" : "megatron-lm";
  }
  if (contains(program, "torchtitan") || begins("--training.") || begins("--parallelism.") || begins("--job.config"))
    return "torchtitan";
  if (contains(lower(program), "maxtext")) return "maxtext";
  if (job.launcher == "composer" || contains(program, "llmfoundry")) return "llm-foundry";
  const bool trainer =
      begins("--per_device") || begins("--per-device") || any({"--model_name_or_path", "--fsdp", "--bf16"});
  if (name == "train.py" && !trainer &&
      (any({"--batch_size", "--block_size", "--n_layer"}) || contains(job.theirs("argument"), "config/")))
    return "nanogpt";
  if (trainer || any({"--gradient_accumulation_steps"})) return "hugging face trainer";
  if (name.starts_with("pretrain_")) return "megatron-lm";
  return "";
}

// Files that the script names and that were not given.
void ask_for_files(TrainingJob& job, const NameValues& given) {
  for (const ForeignSetting& setting : job.settings) {
    const std::string name = file_name(setting.value);
    const bool file =
        name.ends_with(".json") || name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".toml");
    const bool configures =
        contains(lower(setting.key), "config") || contains(setting.key, "deepspeed") || setting.key == "argument";
    const bool python = job.framework == "nanogpt" && setting.key == "argument" && name.ends_with(".py");
    if (!(file && configures) && !python) continue;
    const bool of_script = setting.framework.empty() || setting.framework == "bridge options";
    if (!of_script && !setting.key.ends_with("config_file") && setting.key != "deepspeed") continue;
    if (std::ranges::any_of(given, [&](const auto& entry) { return file_name(entry.first) == name; })) continue;
    job.refused.push_back(fmt::format("{} is named at {}: give it as well", name, setting.origin));
    job.lacks_files = true;
  }
}

void fill(TrainingJob& job, const Gaps& gaps) {
  const auto set = [&](Text name, const std::string& value) { job.set(name, value, "--set"); };
  if (gaps.ranks > 0) set("ranks", std::to_string(gaps.ranks));
  if (gaps.global_batch_size > 0) set("global_batch_size", std::to_string(gaps.global_batch_size));
  if (!gaps.hardware.empty()) set("hardware", gaps.hardware);
  for (const auto& [key, value] : gaps.others) set(key, value);
}

// The log says what ran, and wins over the files.
void take_log(TrainingJob& job, const TrainingLog& log) {
  for (const auto& [key, name, always] : job_facts()) {
    const std::int64_t said = log.size(key);
    if (said <= 0 || std::string_view(key) == "dp") continue;  // replicas follow from the ranks
    const auto written = job.number(name);
    if (written && *written != said)
      job.problems.push_back(
          fmt::format("{} is {} in the files and {} in the log: the log counts, it is what ran", key, *written, said));
    job.set(name, std::to_string(said), "the log");
  }
  if (log.gpu.empty() || job.has("hardware")) return;
  if (const auto hardware = hardware_of(log.gpu, {})) job.set("hardware", hardware->file, "the log: " + log.gpu);
}

// A hardware file for what people call a GPU.
void name_hardware(TrainingJob& job) {
  if (const auto file = mapped("h100=h100-sxm|h200=h200-sxm|a100=a100-sxm-80gb", lower(job.text("hardware"))))
    job.set("hardware", *file, job.values["hardware"].origin);
}

// Values that are to be whole numbers and are none, or larger than any job has.
void refuse_numbers(TrainingJob& job) {
  std::vector<std::string> counts{"ranks", "micro_batch_size", "global_batch_size"};
  for (const GapKey& key : gap_keys()) {
    if (key.number) counts.push_back(key.name);
  }
  for (const std::string& name : counts) {
    const std::string text = job.text(name);
    if (text.empty() || job.number(name)) continue;
    if (text == "-1") {  // as it follows from the rest
      job.values.erase(name);
      continue;
    }
    const std::string origin = job.values[name].origin;
    job.problems.push_back(fmt::format("{} ({}): a whole number is expected", quote(text), origin));
    job.set_unknown(name, "unknown", origin);
  }
}

// The files that a script among them reads along, wherever they stand in the list; none where each reads another.
std::set<std::string> read_along(const NameValues& files) {
  std::set<std::string> along;
  for (const auto& [name, text] : files) {
    if (files.size() < 2 || !is_launch_script(text)) continue;
    TrainingJob aside;
    NameValues documents;
    try {
      along.merge(read_script(name, text, files, aside, documents));
    } catch (const Error&) {  // said when the job is read
    }
  }
  const bool one_begins = std::ranges::any_of(
      files, [&](const auto& file) { return is_launch_script(file.second) && !along.contains(file_name(file.first)); });
  return one_begins ? along : std::set<std::string>();
}

}  // namespace

void complete(TrainingLog& log, const TrainingJob& job) {
  constexpr Text words = "activation|precision|sharding|recompute|overlap_grad_reduce|overlap_param_gather";
  for (const auto& [key, name, always] : job_facts()) {
    if (const auto said = job.number(name); said && *said > 0 && log.size(key) == 0) log.sizes[key] = *said;
    if (const std::string said = job.text(name); !said.empty() && is_one_of(words, key))
      log.words.try_emplace(key, said);
  }
}

void JobReader::unknown(const std::string& name, std::string text, std::string why) {
  unknown_.emplace_back(name, std::move(text));
  not_read_.push_back(std::move(why));
}

// Ranks of a launcher that takes them from its hostfile, which was given.
void JobReader::count_hosts(TrainingJob& job) const {
  if (hosts_.empty() || job.number("ranks") || !is_one_of("deepspeed|open mpi|mpich", job.launcher)) return;
  if (job.has("ranks") && contains(job.values["ranks"].origin, "--include")) return;  // some of the hosts
  const auto number = [&](Text key) {
    return std::ranges::find(hosts_, key, &std::pair<std::string, Value>::first)->second.get<std::int64_t>();
  };
  const std::int64_t ranks = number("ranks"), hosts = number("hosts");
  job.set("ranks", std::to_string(job.has("ranks_per_node") ? job.number_or("ranks_per_node", 1) * hosts : ranks),
          "the hostfile");
  if (ranks % hosts == 0) job.otherwise("ranks_per_node", std::to_string(ranks / hosts), "the hostfile");
}

TrainingJob JobReader::finish(const Gaps& gaps, const TrainingLog* log) {
  TrainingJob job;
  job.typed = gaps.typed;
  NameValues documents, all = files_;
  std::ranges::copy(unknown_, std::back_inserter(all));
  const std::set<std::string> along = read_along(all);
  for (const auto& [name, text] : files_) {
    job.files.push_back(name);
    if (along.contains(file_name(name))) continue;
    if (!is_launch_script(text)) {
      documents.emplace_back(name, text);
    } else {
      try {
        read_script(name, text, all, job, documents);
      } catch (const Error& error) {
        fail("{}: {}", quote(name), error.what());
      }
    }
  }
  for (std::size_t i = unknown_.size(); i-- > 0;) {
    if (!along.contains(file_name(unknown_[i].first))) continue;
    job.files.push_back(unknown_[i].first);
    not_read_.erase(not_read_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  count_hosts(job);
  job.framework = framework_of_program(job);
  if (job.framework == "megatron-bridge") {
    for (ForeignSetting& setting : job.settings)
      setting.framework = setting.key.find('.') == std::string::npos ? "bridge options" : "megatron-bridge";
  }
  std::vector<ForeignSetting> configured, resolved;
  std::string of_documents;
  for (const auto& [name, text] : documents) {
    std::vector<ForeignSetting> found;
    try {
      found = settings_of_document(file_name(name), text);
    } catch (const Error& error) {
      if (files_.size() == 1) fail("{}: {}", quote(name), error.what());
      job.refused.push_back(fmt::format("{}: {}", file_name(name), error.what()));
      continue;
    }
    const std::string framework = framework_of_document(found);
    if (framework.empty()) continue;
    for (const ForeignSetting& setting : found) {
      if (!setting.why_unknown.empty() && framework == "nanogpt") job.refused.push_back(setting.why_unknown);
    }
    if (of_documents.empty() || of_documents == "hugging face model") of_documents = framework;
    const bool is_base =
        framework == "maxtext" && std::ranges::find(found, "base_config", &ForeignSetting::key) == found.end();
    auto& to = framework == "megatron-bridge" ? resolved : configured;
    to.insert(is_base ? to.begin() : to.end(), found.begin(), found.end());  // others change a base.yml
  }
  if (log != nullptr && !log->arguments.empty()) {
    const char* of = log->arguments.contains("pipe_parallel_size") ? "gpt-neox" : "megatron-lm";
    for (const auto& [name, value] : log->arguments) {
      if (value != "None" && value != "False") resolved.push_back({name, value, dumped_arguments, "", of});
    }
  }
  if (job.framework.empty()) job.framework = of_documents;
  if (job.framework.empty() && log != nullptr) job.framework = log->framework;
  if (job.framework == "llmb") job.framework = "llmb (dgxc-benchmarking)";
  if (log == nullptr && job.framework.empty() && job.settings.empty() && job.problems.empty() && job.refused.empty())
    fail("{}: not a configuration of a framework that harness knows", quote(job.files.front()));
  job.settings.insert(job.settings.begin(), configured.begin(), configured.end());
  job.settings.insert(job.settings.end(), resolved.begin(), resolved.end());
  ask_for_files(job, documents);
  prepare_settings(job);
  translate(job);
  refuse_numbers(job);
  if (log != nullptr) take_log(job, *log);
  fill(job, gaps);
  conclude_framework(job);
  fill(job, gaps);
  name_hardware(job);
  conclude_shape(job);
  return job;
}

bool is_sharded_pipeline(const TrainingJob& job) {
  const std::string sharding = job.text("sharding");
  return job.number_or("layout.pipeline_parallel", 1) > 1 && (sharding == "gradients" || sharding == "parameters");
}

void conclude_shape(TrainingJob& job) {
  const auto problem = [&](std::string text) { job.problems.push_back(std::move(text)); };
  const bool model_alone = job.framework == "hugging face model";
  // The release chooses the layout of a recipe that names none.
  const bool recipe =
      job.framework.starts_with("llmb") || (job.framework == "megatron-bridge" && job.has("model_name"));
  if (job.framework.empty() && !job.has("model.layers")) return;  // no program was found, and nobody says what it is
  if (!model_alone && !recipe && job.framework != "deepspeed") {
    for (const char* axis :
         {"layout.tensor_parallel", "layout.pipeline_parallel", "layout.context_parallel", "expert_parallel"})
      job.otherwise(axis, "1", "default");
  }
  const auto size = [&](Text name) { return std::max<std::int64_t>(1, job.number(name).value_or(1)); };
  const std::int64_t tensor = size("layout.tensor_parallel"), stages = size("layout.pipeline_parallel"),
                     context = size("layout.context_parallel");
  constexpr std::int64_t most = 1 << 20;
  if (tensor > most || stages > most || context > most) fail("degrees of parallelism above {} are not possible", most);
  const std::int64_t replica = std::min(tensor * stages, most) * context;
  const auto ranks = job.number("ranks");
  const auto open = [&](Text axis) { return recipe ? !job.has(axis) : job.has(axis) && !job.number(axis); };
  const bool divides_experts = job.framework == "megatron-lm" && size("expert_parallel") > 1;
  const std::int64_t of_expert = job.their_number("--expert-tensor-parallel-size").value_or(tensor);
  const std::int64_t holds_experts = divides_experts
                                         ? std::min(std::clamp<std::int64_t>(of_expert, 1, most) * stages, most) *
                                               std::min(size("expert_parallel"), most)
                                         : 1;
  if (open("layout.tensor_parallel") || open("layout.pipeline_parallel") || open("layout.context_parallel")) {
    job.set_unknown("data_parallel", "unknown", "the layout is not known");
  } else if (ranks && *ranks % replica != 0) {
    job.set_unknown("data_parallel", "none", "ranks / (TP x PP x CP)");
    const std::string shape = context > 1 ? fmt::format("TP {} x PP {} x CP {}", tensor, stages, context)
                                          : fmt::format("TP {} x PP {}", tensor, stages);
    problem(fmt::format("{} ranks cannot hold {} = {} ranks: give the launcher more ranks, or the model fewer stages",
                        *ranks, shape, replica));
  } else if (ranks && *ranks % holds_experts != 0) {
    job.set_unknown("data_parallel", "none", "ranks / (TP x PP x EP)");
    problem(fmt::format("{} ranks cannot hold PP {} and EP {}: {} ranks or a multiple", *ranks, stages,
                        size("expert_parallel"), holds_experts));
  } else if (ranks) {
    job.set("data_parallel", std::to_string(*ranks / replica), fmt::format("{} ranks / {}", *ranks, replica));
  } else if (!model_alone && !recipe && !job.number("data_parallel")) {
    job.set_unknown("data_parallel", replica == 1 ? "ranks" : fmt::format("ranks / {}", replica),
                    "ranks are not known");
  }

  const auto replicas = job.number("data_parallel"), micro = job.number("micro_batch_size");
  auto global = job.number("global_batch_size");
  const auto accumulation = job.number("gradient_accumulation");
  const std::int64_t local = job.number("local_batch").value_or(micro.value_or(0));  // of a replica at once
  if (!global && !job.has("global_batch_size") && micro) {
    const std::int64_t each = local * accumulation.value_or(1);
    if (replicas) {
      global = each * *replicas;
      job.set("global_batch_size", std::to_string(*global), accumulation ? "micro x accumulated x DP" : "micro x DP");
    } else if (job.has("data_parallel") && job.text("data_parallel").empty() && !ranks) {
      job.set_unknown("global_batch_size", fmt::format("{} x dp", each), "the replicas are not known");
    }
  }
  if (global && !micro && accumulation && replicas && !job.has("micro_batch_size") && *accumulation * *replicas > 0)
    job.set("micro_batch_size", std::to_string(*global / (*accumulation * *replicas)), "global / (accumulated x DP)");
  if (global && micro && *micro > 0 && replicas && *replicas > 0) {
    if (*global % (*micro * *replicas) != 0) {
      problem(fmt::format("{} sequences do not divide among {} replicas of {}: change the batch or the ranks", *global,
                          *replicas, *micro));
    } else {
      const std::int64_t follows = *global / (*micro * *replicas);
      if (job.uses("deepspeed") && accumulation.value_or(follows) != follows)
        problem(fmt::format("{} sequences are not {} replicas x {} x {} accumulated: DeepSpeed stops at them", *global,
                            *replicas, *micro, *accumulation));
      job.set("gradient_accumulation", std::to_string(follows), "global / (micro x DP)");
    }
  } else if (global && micro && *micro > 0 && !replicas && !job.has("gradient_accumulation") &&
             job.text("data_parallel").empty() && !ranks) {
    job.set_unknown("gradient_accumulation", fmt::format("{} / dp", *global / *micro), "the replicas are not known");
  } else if (global && accumulation.value_or(0) > 0 && !job.has("micro_batch_size") &&
             job.text("data_parallel").empty() && !ranks) {
    job.set_unknown("micro_batch_size", fmt::format("{} / dp", *global / *accumulation), "the replicas are not known");
  }

  if (job.number("model.heads")) job.otherwise("model.kv_heads", job.text("model.heads"), "as many as heads");
  const auto layers = job.number("model.layers"), heads = job.number("model.heads"),
             kv_heads = job.number("model.kv_heads");
  const auto hidden = job.number("model.hidden"), width = job.number("head_dim");
  if (hidden && heads && *heads > 0 && width && *width != *hidden / *heads)
    job.cannot.push_back(fmt::format("heads of width {}: hidden / heads = {} is counted", *width, *hidden / *heads));
  const std::int64_t chunks = size("virtual_pipeline");
  const std::int64_t counted = layers.value_or(0) + (job.text("embedding_as_layer") == "true" ? 2 : 0);
  if (layers && !job.has("uneven_stages") && counted % (stages * std::min(chunks, most)) != 0)
    problem(fmt::format("{} layers do not divide into {} stages{}", *layers, stages,
                        chunks > 1 ? fmt::format(" of {} chunks", chunks) : ""));
  const std::int64_t micro_batches = job.number_or("gradient_accumulation", 0);
  if (chunks > 1 &&
      micro_batches % stages != 0) {  // torch takes groups of other sizes, and so does Megatron-LM if asked
    constexpr Text asks = "--microbatch-group-size-per-virtual-pipeline-stage|--microbatch-group-size-per-vp-stage";
    const bool refused = job.uses("megatron-lm") && std::ranges::none_of(job.settings, [&](const ForeignSetting& s) {
                           return is_one_of(asks, s.key);
                         });
    const std::string text = fmt::format("{} micro-batches are no multiple of {} stages", micro_batches, stages);
    if (refused) problem(text + ", which its interleaved schedule needs: change global_batch_size");
    if (!refused) job.cannot.push_back(text + ", which the interleaved schedule of harness needs");
  }
  if (heads && *heads % tensor != 0) problem(fmt::format("{} heads do not divide among TP {}", *heads, tensor));
  if (kv_heads && tensor > *kv_heads)
    job.note(fmt::format("TP {} is more than {} heads of keys and values: they are copied", tensor, *kv_heads));
  const auto per_node = job.number("ranks_per_node");
  const bool rack = job.text("hardware").starts_with("gb");  // of GB200 and GB300: NVLink joins its nodes
  if (per_node && *per_node > 0 && tensor > *per_node && !rack)
    problem(fmt::format("TP {} spans nodes of {} ranks: every layer waits for the network", tensor, *per_node));

  for (const char* key : {"--num-experts", "--num-moe-experts", "num_experts", "num_local_experts", "n_routed_experts",
                          "model.ffn_config.moe_num_experts"}) {
    std::int64_t experts = 0;  // the most of a layer, where layers differ
    const std::string counts = job.theirs(key);
    for (Text count : words_of(counts, 256)) experts = std::max(experts, number_in<std::int64_t>(count).value_or(0));
    if (experts < 2) continue;
    job.set("experts", std::to_string(experts), key);
    std::string each;
    for (const char* of_token : {"--moe-router-topk", "num_experts_per_tok", "model.ffn_config.moe_top_k"}) {
      if (job.find(of_token) != nullptr) each = fmt::format(", {} of them per token", job.theirs(of_token));
    }
    job.cannot.push_back(
        fmt::format("{} experts{}: the FLOP and the traffic of one dense MLP are counted", experts, each));
  }

  if (job.text("batching") == "packed")
    job.cannot.emplace_back(
        "packed documents, whose lengths are not said: attention is counted as if each filled a row; with backend sim, "
        "batching: packed and sequences: {distribution: lognormal, median: N, sigma: X} say otherwise");
  if (chunks > 1) job.otherwise("pipeline_schedule", "interleaved", "virtual_pipeline");
  if (is_sharded_pipeline(job))
    job.cannot.push_back(fmt::format(
        "sharding of {} in a pipeline (nearest: optimizer): weights and gradients are counted whole on each "
        "rank, and less is gathered",
        job.text("sharding")));
  // A prediction can do what a sweep cannot run.
  const std::string precision = job.text("precision");
  if (precision == "fp8" || precision == "mxfp8")
    job.cannot.push_back(fmt::format(
        "no GPU has run the {} of backend cuda yet (docs/gpu-status.md); nearest is bf16, which has run", precision));
  if (precision == "nvfp4")
    job.cannot.emplace_back("nvfp4 is only predicted (backend sim); what a sweep can run is nearest with bf16");
  if (context > 1) job.cannot.push_back(fmt::format("context parallelism {} is only predicted (backend sim)", context));
  if (job.text("tp_overlap") == "true")
    job.cannot.emplace_back("overlap of tensor-parallel collectives is only predicted (backend sim)");
}

}  // namespace harness::evidence
