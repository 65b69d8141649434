#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "evidence/input.h"
#include "evidence/shell.h"
#include "evidence/training_job.h"

// Combines files into a job: identifies the framework and the source of each value.

namespace harness::evidence {
namespace {

constexpr const char* unread =
    "{}: {} are not read (docs/read.md lists what is): give a script with the program's command, or its log or traces";

// Returns the framework that the command line belongs to.
std::string framework_of_program(const TrainingJob& job) {
  const std::string program = job.theirs("program"), name = file_name(program);
  const auto begins = [&](Text beginnings) {
    return std::ranges::any_of(job.settings, [&](const ForeignSetting& setting) {
      return setting.framework.empty() && begins_with(setting.key, beginnings);
    });
  };
  if (contains(program, "scripts/performance") || (job.says("-ng") && job.says("-m|-mr")) ||
      job.says("--model_recipe_name|train.global_batch_size|train.micro_batch_size"))
    return "megatron-bridge";
  if ((begins("trainer.") && begins("model.") && !contains(program, "verl")) ||
      begins("training.trainer.|training.model."))
    return "nemo";
  if (contains(program, "swift/cli/_megatron")) return "megatron-lm";
  if (job.says("--num-layers|--num-layer|--tensor-model-parallel-size|--tensor_model_parallel_size|--micro-batch-size|"
               "--hidden-size|--yaml-cfg")) {
    const bool zero = job.says("--deepspeed|--deepspeed_config|--deepspeed-config|--zero-stage");
    return zero ? "megatron-deepspeed" : "megatron-lm";
  }
  if (contains(program, "torchtitan") || begins("--training.|--parallelism.|--job.config")) return "torchtitan";
  if (contains(lower(program), "maxtext")) return "maxtext";
  if (job.launcher == "composer" || contains(program, "llmfoundry")) return "llm-foundry";
  const bool trainer = begins("--per_device|--per-device") || contains(program, "swift/cli/") ||
                       job.says("--model_name_or_path|--fsdp|--pretrain") ||
                       (job.says("--bf16") && job.says("--output_dir|--deepspeed"));
  const auto is_for_nanogpt = [](const ForeignSetting& setting) {
    constexpr Text keys = "--block_size|--n_layer|--n_head|--n_embd|--eval_iters|--max_iters|--init_from|--wandb_log";
    const bool configures = contains(setting.value, "config/") && setting.value.ends_with(".py");
    return setting.key == "argument" ? configures : setting.is_assigned && is_one_of(keys, setting.key);
  };
  if (name == "train.py" && !trainer && std::ranges::any_of(job.settings, is_for_nanogpt)) return "nanogpt";
  if (trainer || job.says("--gradient_accumulation_steps")) return "hugging face trainer";
  if (name.starts_with("pretrain_")) return "megatron-lm";
  return "";
}

// Asks for files that the script names but that were not given.
void ask_for_files(TrainingJob& job, const NameValues& given) {
  for (const ForeignSetting& setting : job.settings) {
    const std::string name = file_name(setting.value), ending = name.substr(std::min(name.rfind('.'), name.size()));
    const bool configures = is_one_of(".json|.yaml|.yml|.toml", ending) &&
                            (has_any(lower(setting.key), "config|deepspeed") || setting.key == "argument");
    const bool python = job.framework == "nanogpt" && setting.key == "argument" && ending == ".py";
    const bool of_script = setting.framework.empty() || setting.framework == "bridge options" ||
                           setting.key.ends_with("config_file") || setting.key == "deepspeed";
    const bool there = std::ranges::any_of(given, [&](const auto& file) { return file_name(file.first) == name; });
    if (there || !(python || (configures && of_script))) continue;
    const std::string stem = name.substr(0, name.size() - ending.size());
    const bool lacks_part = stem.empty() || stem.ends_with('_') || stem.ends_with('-');
    const char* remedy =
        lacks_part ? "a variable in this name seems to be empty: set it, and give the file as well" : "give it as well";
    say(job.refused, "{} is named at {}: {}", with_stars(name), setting.origin, remedy);
    const bool has_defaults = job.framework == "maxtext" && name == "base.yml";  // which are known
    job.lacks_files = job.lacks_files || !has_defaults;
  }
}

void fill(TrainingJob& job, const Gaps& gaps) {
  const auto set = [&](Text name, const std::string& value) { job.set(name, value, "--set"); };
  if (gaps.ranks > 0) set("ranks", std::to_string(gaps.ranks));
  if (gaps.global_batch_size > 0) set("global_batch_size", std::to_string(gaps.global_batch_size));
  if (!gaps.hardware.empty()) set("hardware", gaps.hardware);
  for (const auto& [key, value] : gaps.others) set(key, value);
}

// The log shows what ran, so it overrides the files.
void take_log(TrainingJob& job, const TrainingLog& log) {
  for (const auto& [key, name, always] : job_facts()) {
    const std::int64_t said = log.size(key);
    if (said <= 0 || std::string_view(key) == "dp") continue;  // replicas are derived from the ranks
    const auto written = job.number(name);
    if (written && *written != said)
      say(job.problems, "{} is {} in the files and {} in the log: the log counts, it is what ran", key, *written, said);
    job.set(name, said, "the log");
  }
  if (log.gpu.empty() || job.has("hardware")) return;
  if (const auto hardware = hardware_of(log.gpu, {})) job.set("hardware", hardware->file, "the log: " + log.gpu);
}

// Rejects values that should be whole numbers but are not, or that exceed any real job.
void refuse_numbers(TrainingJob& job) {
  std::vector<std::string> counts{"ranks", "micro_batch_size", "global_batch_size"};
  for (const GapKey& key : gap_keys()) {
    if (key.number) counts.push_back(key.name);
  }
  for (const std::string& name : counts) {
    const std::string text = job.text(name);
    if (text.empty() || job.number(name)) continue;
    if (text == "-1") {  // derived from the other values
      job.values.erase(name);
      continue;
    }
    const std::string origin = job.values[name].origin;
    say(job.problems, "{} ({}): a whole number is expected", quote(text), origin);
    job.set_unknown(name, origin);
  }
}

// Returns whether a script sources a file, or starts it if it is a script itself.
bool reads(Text script, const std::string& name, Text other) {
  return std::ranges::any_of(split(script, '\n'), [&](Text line) {
    line = trim(line);
    return (begins_with(line, "source |. ") || is_launch_script(other)) && !line.starts_with('#') &&
           contains(line, name);
  });
}

// Returns the names of files that a script among them sources or starts, in any order; none if every script is read by
// another.
std::set<std::string> read_along(const NameValues& files) {
  std::set<std::string> along, scripts;
  for (const auto& [script, text] : files) {
    if (!is_launch_script(text)) continue;
    scripts.insert(file_name(script));
    for (const auto& [name, other] : files) {
      if (name != script && reads(text, file_name(name), other)) along.insert(file_name(name));
    }
  }
  return std::ranges::includes(along, scripts) ? std::set<std::string>() : along;
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

// Sets the ranks of a launcher that takes them from its hostfile, if that file was given.
void JobReader::count_hosts(TrainingJob& job) const {
  if (hosts_.empty() || job.number("ranks") || !is_one_of("deepspeed|open mpi|mpich|colossalai", job.launcher)) return;
  const std::string why = job.has("ranks") ? job.values["ranks"].origin : "";
  if (job.has("ranks") && !contains(why, "its hostfile")) return;  // options decide, which are not all known
  const auto number = [&](Text key) {
    return std::ranges::find(hosts_, key, &std::pair<std::string, Value>::first)->second.get<std::int64_t>();
  };
  const std::int64_t slots = number("ranks"), listed = number("hosts");
  const std::int64_t hosts = std::min(integer_after(why, "--num_nodes ").value_or(listed), listed);
  if (slots % listed == 0) job.otherwise("ranks_per_node", slots / listed, "the hostfile");
  if (job.has("ranks_per_node"))
    job.set("ranks", job.number_or("ranks_per_node", 1) * hosts, "the hostfile");
  else if (hosts == listed)
    job.set("ranks", slots, "the hostfile");
}

// Follows the scripts and the files that they write and source. Returns the other files as documents.
NameValues JobReader::follow_scripts(TrainingJob& job) {
  NameValues documents, all = files_;
  std::ranges::copy(unknown_, std::back_inserter(all));
  const std::set<std::string> along = read_along(all);
  for (const auto& [name, text] : files_) {
    job.files.push_back(name);
    if (along.contains(file_name(name))) continue;
    try {
      if (is_launch_script(text))
        read_script(name, text, all, job, documents);
      else
        documents.emplace_back(name, text);
    } catch (const Error& error) {
      fail("{}: {}", quote(name), error.what());
    }
  }
  for (std::size_t i = unknown_.size(); i-- > 0;) {
    if (!along.contains(file_name(unknown_[i].first))) continue;
    job.files.push_back(unknown_[i].first);
    not_read_.erase(not_read_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return documents;
}

// Inserts the settings of configurations before those of the command line, and resolved values (Megatron-Bridge, a
// log's arguments) after them. Returns the framework of the documents.
std::string JobReader::take_documents(const NameValues& documents, const TrainingLog* log, TrainingJob& job) const {
  std::vector<ForeignSetting> configured, resolved;
  std::string of_documents;
  for (const auto& [name, text] : documents) {
    std::vector<ForeignSetting> found;
    const std::string file = file_name(with_stars(name));
    try {
      found = settings_of_document(file, text);
    } catch (const Error& error) {
      if (files_.size() == 1) fail("{}: {}", quote(name), error.what());
      say(job.refused, "{}: {}", file, error.what());
      continue;
    }
    const std::string framework = framework_of_document(found);
    const bool not_read = begins_with(framework, "configurations of |manifests of ");
    if (not_read) job.refused.push_back(fmt::format(unread, file, framework));
    const bool is_alone = files_.size() == 1 && files_.front().first == name;
    if (not_read && is_alone && log == nullptr) fail("{}", job.refused.back());
    if (framework.empty() || not_read) continue;
    for (const ForeignSetting& setting : found) {
      if (!setting.why_unknown.empty() && framework == "nanogpt") job.refused.push_back(setting.why_unknown);
    }
    const bool serves = is_one_of("deepspeed|accelerate", of_documents) && framework == "hugging face trainer";
    if (of_documents.empty() || of_documents == "hugging face model" || serves) of_documents = framework;
    const bool is_base =
        framework == "maxtext" && std::ranges::find(found, "base_config", &ForeignSetting::key) == found.end();
    auto& to = framework == "megatron-bridge" ? resolved : configured;
    to.insert(is_base ? to.begin() : to.end(), found.begin(), found.end());  // other files override base.yml
  }
  if (log != nullptr) {
    if (!log->arguments.empty()) job.more_arguments.clear();            // the log has them all
    constexpr Text on_by_default = "add_bias_linear|overlap_p2p_comm";  // only a flag against them is known
    for (const auto& [name, value] : log->arguments) {
      const bool off = value == "False";
      if (value == "None" || (off && !is_one_of(on_by_default, name))) continue;
      resolved.push_back({name, off ? "false" : value, dumped_arguments, "", "megatron-lm"});
    }
  }
  job.settings.insert(job.settings.begin(), configured.begin(), configured.end());
  job.settings.insert(job.settings.end(), resolved.begin(), resolved.end());
  return of_documents;
}

TrainingJob JobReader::finish(const Gaps& gaps, const TrainingLog* log) {
  TrainingJob job;
  job.typed = gaps.typed;
  const NameValues documents = follow_scripts(job);
  count_hosts(job);
  job.framework = framework_of_program(job);
  if (job.framework == "megatron-bridge") {
    for (ForeignSetting& setting : job.settings)
      setting.framework = setting.key.find('.') == std::string::npos ? "bridge options" : "megatron-bridge";
  }
  const bool says_nothing = job.settings.empty() && job.problems.empty() && job.refused.empty();
  const std::string of_documents = take_documents(documents, log, job);
  if (job.framework.empty()) job.framework = of_documents;
  if (job.framework.empty() && log != nullptr) job.framework = log->framework;
  if (job.framework.empty() && job.says("program"))
    job.note("{} is not known here: flags of common names are read, and --set says the rest",
             file_name(job.theirs("program")));
  if (job.framework == "llmb") job.framework = "llmb (dgxc-benchmarking)";
  if (log == nullptr && job.framework.empty() && says_nothing && job.refused.empty())
    fail(unread, quote(job.files.front()), "configurations of its framework");
  ask_for_files(job, documents);
  translate(job);
  if (std::ranges::any_of(job.refused, [](Text why) { return why.ends_with(" is given to the script"); }))
    job.note("the script takes arguments: give a script that starts it with them as well");
  refuse_numbers(job);
  if (log != nullptr) take_log(job, *log);
  fill(job, gaps);
  conclude_framework(job);
  fill(job, gaps);
  // Frameworks print and write its default also for learned positions.
  if (job.has("model.positions") && job.text("model.positions") != "rotary") job.values.erase("model.rope_theta");
  if (const auto file = mapped("h100=h100-sxm|h200=h200-sxm|a100=a100-sxm-80gb", lower(job.text("hardware"))))
    job.set("hardware", *file, job.values["hardware"].origin);
  conclude_shape(job);
  return job;
}

}  // namespace harness::evidence
