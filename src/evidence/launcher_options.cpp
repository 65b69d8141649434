#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "evidence/input.h"
#include "evidence/shell.h"
#include "evidence/training_job.h"

namespace harness::evidence {

std::optional<std::string> LauncherOptions::value(std::string_view names) const {
  std::optional<std::string> found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const std::string name = replaced(word.substr(0, equals), {{'_', "-"}});  // "--nproc_per_node" is --nproc-per-node
    if (!is_one_of(names, name)) continue;
    if (equals != std::string::npos) {
      found = word.substr(equals + 1);
    } else if (i + 1 < words.size()) {
      found = words[i + 1];
    }
  }
  return found;
}

NameValues accelerate_settings(const LauncherOptions& options) {
  NameValues settings;
  if (options.has("--use_fsdp")) settings.emplace_back("distributed_type", "FSDP");
  if (options.has("--use_deepspeed")) settings.emplace_back("distributed_type", "DEEPSPEED");
  for (const std::string_view key :
       {"config_file", "mixed_precision", "fsdp_config.fsdp_sharding_strategy", "fsdp_config.fsdp_offload_params",
        "fsdp_config.fsdp_reshard_after_forward", "fsdp_config.fsdp_activation_checkpointing",
        "deepspeed_config.zero_stage", "deepspeed_config.deepspeed_config_file",
        "deepspeed_config.offload_optimizer_device", "deepspeed_config.offload_param_device"}) {
    const std::string option = "--" + replaced(key.substr(key.find('.') + 1), {{'_', "-"}});
    if (const auto value = options.value(option)) settings.emplace_back(key, *value);
  }
  return settings;
}

std::optional<std::vector<std::string>> command_of_front_end(const std::vector<std::string>& words,
                                                             const NameValues& environment) {
  const std::string name = file_name(words.front()), verb = words.size() > 1 ? words[1] : "";
  std::vector<std::string> command, rest(words.begin() + (words.size() > 1 ? 2 : 1), words.end());
  const std::string nodes = value_of(environment, "NNODES"), each = value_of(environment, "NPROC_PER_NODE");
  const bool factory = name == "llamafactory-cli" && verb == "train";
  const bool swift = is_one_of("swift|megatron", name) && is_one_of("sft|pt|rlhf", verb);
  if (name == "accelerate-launch") {
    command = {"accelerate", "launch", verb};
  } else if (name == "axolotl" && verb == "train") {
    std::vector<std::string> options = rest;
    const bool by_torch = LauncherOptions{options}.value("--launcher") == "torchrun";
    for (const char* launcher : {"accelerate", "torchrun"}) std::erase(options, launcher);
    command = {by_torch ? "torchrun" : "accelerate"};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"-m", "axolotl.cli.train"});
  } else if (factory || swift) {
    const bool by_torch = factory || !nodes.empty() || !each.empty();  // else ms-swift starts one process
    command = {by_torch ? "torchrun" : "python"};
    if (!nodes.empty()) command.insert(command.end(), {"--nnodes", nodes});
    if (factory || !each.empty()) command.insert(command.end(), {"--nproc-per-node", each.empty() ? "auto" : each});
    const char* folder = name == "megatron" ? "_megatron/" : "";
    command.push_back(factory ? "llamafactory/launcher.py" : fmt::format("swift/cli/{}{}.py", folder, verb));
  } else if (name == "colossalai" && verb == "run") {
    const LauncherOptions options{rest};
    const auto hosts = options.value("--host|-H"), first_hosts = options.value("--num-nodes");
    if (!first_hosts && options.value("--hostfile")) return std::nullopt;  // it says the nodes
    std::string count = first_hosts.value_or("1");
    if (!first_hosts && hosts) count = is_unknown(*hosts) ? *hosts : std::to_string(split(*hosts, ',').size());
    command = {"torchrun", "--nnodes", count};
  } else {
    return std::nullopt;
  }
  command.insert(command.end(), rest.begin(), rest.end());
  return command;
}

std::vector<std::string> slurm_words(const std::vector<std::string>& words) {
  std::vector<std::string> separated;
  for (const std::string& word : words) {
    const bool joined = word.size() > 2 && (word.starts_with("-N") || word.starts_with("-n"));
    if (joined) separated.push_back(word.substr(0, 2));
    separated.push_back(word.substr(joined ? 2 : 0));
  }
  return separated;
}

std::optional<std::int64_t> count_of(const std::optional<std::string>& text) {
  const auto number = text ? number_in<std::int64_t>(*text) : std::nullopt;
  return number && *number > 0 && *number <= (1 << 20) ? number : std::nullopt;
}

std::map<std::string, std::string> variables_of_batch(std::string_view text) {
  std::map<std::string, std::string> found;
  std::vector<std::string> words;
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with("#SBATCH")) continue;
    for (std::string_view word : words_of(line.substr(7), 16)) {
      if (word.starts_with('#')) break;
      words.emplace_back(word);
    }
  }
  const LauncherOptions options{slurm_words(words)};
  const auto nodes = count_of(options.value("-N|--nodes")), each = count_of(options.value("--ntasks-per-node"));
  const std::string of_node = options.value("--gpus-per-node").value_or(""),  // "8", "h100:8"
      listed = options.value("--gres").value_or("");                          // "gpu:h100:8(S:0-1),lscratch:100"
  auto gpus = count_of(of_node.substr(of_node.rfind(':') + 1));
  for (std::string_view resource : split(listed, ',')) {
    resource = resource.substr(0, resource.find('('));
    if (!gpus && resource.starts_with("gpu:")) gpus = count_of(std::string(resource.substr(resource.rfind(':') + 1)));
  }
  auto total = count_of(options.value("-n|--ntasks"));
  if (!total && nodes && each) total = *nodes * *each;
  const auto of_task = count_of(options.value("--gpus-per-task"));
  if (!gpus && of_task && each) gpus = *of_task * *each;
  for (const auto& [name, n] : {std::pair("SLURM_NNODES", nodes),
                                {"SLURM_JOB_NUM_NODES", nodes},
                                {"SLURM_NTASKS_PER_NODE", each},
                                {"SLURM_NTASKS", total},
                                {"SLURM_NPROCS", total},
                                {"SLURM_GPUS_PER_TASK", of_task},
                                {"SLURM_GPUS_ON_NODE", gpus},
                                {"SLURM_GPUS_PER_NODE", gpus}}) {
    if (n) found[name] = std::to_string(*n);
  }
  return found;
}

void take_arguments(const std::vector<std::string>& words, const Shell& shell, const std::string& origin,
                    TrainingJob& job) {
  const auto is_key = [](std::string_view word) {
    return word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0 &&
           word[1] != '.';
  };
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const bool assigns = equals != std::string::npos, flag = is_key(word);
    if (!flag && is_unknown(word.substr(0, equals)) && is_unknown(file_name(word))) {
      job.more_arguments.push_back(shell.why_unknown(word));
      continue;
    }
    if (!flag && !assigns) {  // a file
      job.settings.push_back({"argument", word, origin});
      continue;
    }
    ForeignSetting setting{word.substr(0, equals), assigns ? word.substr(equals + 1) : "", origin};
    setting.is_field = !flag;
    setting.is_assigned = assigns;
    if (!assigns && contains(word, " "))
      say(job.problems, "{} is one word here, which its program refuses: take the quotes away", quote(word));
    // An entirely unknown word may be a value or further arguments; "model.layers=4" never belongs to an option.
    const auto goes_on = [&](const std::string& next) {
      const std::string_view key = std::string_view(next).substr(0, std::min(next.find('='), next.size()));
      const bool names = key.size() < next.size() && key.find('.') != key.npos && key.find_first_of(" :/,") == key.npos;
      return !is_key(next) && !names && (setting.value.empty() || !is_unknown(next));
    };
    for (; !assigns && i + 1 < words.size() && goes_on(words[i + 1]); ++i)
      setting.value += (setting.value.empty() ? "" : " ") + words[i + 1];
    setting.why_unknown = shell.why_unknown(flag ? setting.value : word);
    job.settings.push_back(std::move(setting));
  }
}

}  // namespace harness::evidence
