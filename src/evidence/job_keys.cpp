#include <algorithm>
#include <array>
#include <span>

#include "base/text.h"
#include "config/frameworks/framework.h"
#include "evidence/foreign_keys.h"
#include "evidence/input.h"
#include "evidence/training_job.h"

// Translates framework keys into harness names, after rewriting YAML fields named like Megatron-LM's as its flags.

namespace harness::evidence {
namespace {

// Frameworks that use Megatron-LM's field names.
constexpr Text like_megatron = "megatron-bridge|nemo|megatron-lm";

// Rewrites fields of NeMo 1 and Megatron-Bridge as Megatron-LM flags.
void as_megatron_flags(TrainingJob& job) {
  static const std::vector<KeyRow> names = key_rows(
      "vocab_size=--padded-vocab-size encoder_seq_length=--seq-length bucket_size=--ddp-bucket-size "
      "activations_checkpoint_granularity=--recompute-granularity activations_checkpoint_method=--recompute-method "
      "activations_checkpoint_num_layers=--recompute-num-layers "
      "num_layers_in_first_pipeline_stage=--decoder-first-pipeline-num-layers "
      "num_layers_in_last_pipeline_stage=--decoder-last-pipeline-num-layers "
      "virtual_pipeline_model_parallel_size=--num-virtual-stages-per-pipeline-rank "
      "cpu_offloading_num_layers=",  // cpu_offloading decides
      {{"gated_linear_unit", "--swiglu", "true="},
       {"share_embeddings_and_output_weights", "--untie-embeddings-and-output-weights", "false="},
       {"add_bias_linear|bias", "--disable-bias-linear", "false="},
       {"overlap_p2p_comm", "--no-overlap-p2p-communication", "false="},
       {"grad_reduce_in_fp32", "--grad-reduce-in-bf16", "false="},
       {"activation", "--swiglu", "swiglu=|fast-swiglu=|geglu=|fast-geglu=|reglu=|fast-reglu="},  // all are gated
       {"activation_func", "--swiglu", "swiglu="},
       {"ub_tp_comm_overlap", "--tp-comm-overlap", "true="},
       {"overlap_grad_sync", "--overlap-grad-reduce", "true="},
       {"overlap_param_sync", "--overlap-param-gather", "true="},
       {"name", "--use-distributed-optimizer", "distributed_fused_adam=|mcore_distributed_optim="}});
  std::vector<ForeignSetting> more;
  for (ForeignSetting& setting : job.settings) {
    const bool fields =
        is_one_of(like_megatron, setting.framework) || (setting.framework.empty() && !setting.key.starts_with('-'));
    constexpr Text other_sections =
        "checkpoint.|validation_ds.|test_ds.|vision|.teacher.";  // with keys of the same names
    const bool of_trainer =
        setting.key.starts_with("trainer.") && !has_any(setting.key, ".strategy.|.plugins.");  // the two are of NeMo 2
    if (!fields || is_one_of("program|argument|mixed_precision", setting.key) || of_trainer ||
        has_any(setting.key, other_sections))
      continue;
    std::string word = replaced(setting.key.substr(setting.key.rfind('.') + 1), {{'-', "_"}});
    if (setting.key.ends_with(".encoder.num_layers")) word = "encoder_num_layers";  // of NeMo's T5
    if (word == "activation" && setting.value == "squared-relu") {
      word = "squared_relu";
      setting.value = "true";
    }
    if (word == "num_query_groups" && setting.origin != dumped_arguments)
      more.push_back({"--group-query-attention", "", setting.origin, "", "megatron-lm"});
    // A tokenizer's vocab_size, and Megatron-LM's own, is not padded yet.
    const bool padded = setting.framework != "megatron-lm" && !contains(setting.key, "tokenizer.");
    setting.framework = "megatron-lm";
    const auto same_key = [&](const KeyRow& row) { return is_one_of(row.key, word); };
    const auto row = std::ranges::find_if(names, same_key);
    if (row != names.end() && (padded || word != "vocab_size")) {
      const auto value = mapped(row->values, setting.value);  // "" for a switch that is on
      setting.key = value ? row->here : "";
      setting.value = value.value_or("");
      continue;
    }
    if (setting.key.ends_with("tokenizer.type")) {
      setting.key = "--tokenizer-type";
      continue;
    }
    setting.key = "--" + replaced(word, {{'_', "-"}});
  }
  job.settings.insert(job.settings.begin(), more.begin(), more.end());  // the configuration itself may say false
}

struct Table {
  Text framework;
  std::span<const KeyRow> rows;
  std::span<const CannotRow> cannot;
  std::optional<config::Framework> shared;
};
const std::array<Table, 11> tables{{
    {"megatron-lm", megatron_keys, megatron_cannot, config::Framework::megatron},
    {"deepspeed", deepspeed_keys, deepspeed_cannot, config::Framework::deepspeed},
    {"torchtitan", torchtitan_keys, torchtitan_cannot, config::Framework::torchtitan},
    {"hugging face model", hf_model, hf_model_cannot, std::nullopt},
    {"hugging face trainer", hf_trainer, hf_trainer_cannot, std::nullopt},
    {"accelerate", accelerate_keys, accelerate_cannot, std::nullopt},
    {"llm-foundry", foundry_keys, foundry_cannot, std::nullopt},
    {"nanogpt", nanogpt_keys, {}, std::nullopt},
    {"maxtext", maxtext_keys, maxtext_cannot, std::nullopt},
    {"bridge options", bridge_options, {}, std::nullopt},
    {"llmb", llmb_keys, {}, std::nullopt},
}};

// `as_switch`: harness value if the key alone determines it, whatever follows.
void keep(TrainingJob& job, const ForeignSetting& setting, Text here, std::optional<std::string> ours,
          std::optional<std::string> as_switch) {
  // DeepSpeed's configuration holds, whatever its program does with flags of like names, of which the last one counts.
  const bool of_program = job.framework == "deepspeed" && setting.framework.empty() && !here.starts_with("model.");
  if (of_program && !job.text(here).empty() && !job.values.find(here)->second.origin.ends_with(setting.origin)) return;
  const std::string origin = fmt::format("{}, {}", setting.key, setting.origin);
  if (!setting.why_unknown.empty() && as_switch && !setting.is_field) {
    job.set(here, *as_switch, origin);
    job.more_arguments.push_back(setting.why_unknown);
  } else if (!setting.why_unknown.empty()) {
    job.refuse(here, setting.why_unknown);
  } else if (setting.value == "auto" && !ours) {  // stands for what another file says
    job.otherwise_unknown(here, origin + ": auto");
  } else if (ours) {
    job.set(here, *ours, origin);
  } else if (!setting.value.empty() && !is_one_of("false|False|none|None|no|null|0", setting.value)) {
    say(job.cannot, "{} {}: harness has nothing like it", setting.key, setting.value);
  }
}

// Translates a setting by one table; returns whether the table has its key.
bool translate(TrainingJob& job, const ForeignSetting& setting, const Table& table) {
  bool known = false;
  for (const CannotRow& row : table.cannot) {
    if (!is_one_of(row.key, setting.key)) continue;
    known = true;
    const std::vector<Text> harmless = split(row.harmless, '|');
    if (std::ranges::find(harmless, Text(setting.value)) != harmless.end() &&
        !(row.harmless.empty() && setting.value.empty()))
      continue;
    job.cannot.push_back(
        fmt::format(fmt::runtime(row.text), setting.why_unknown.empty() ? setting.value : std::string("unknown")));
  }
  for (const KeyRow& row : table.rows) {
    if (!is_one_of(row.key, setting.key)) continue;
    if (!row.here.empty())
      keep(job, setting, row.here,
           setting.value == "auto" && row.values.empty() ? std::nullopt : mapped(row.values, setting.value),
           row.values.empty() ? std::nullopt : mapped(row.values, ""));
    return true;
  }
  if (!table.shared) return known;
  for (const config::FrameworkRow& row : config::rows_of(*table.shared)) {
    if (row.key.empty() || row.key != setting.key) continue;
    known = true;
    const std::string here = row.here.substr(0, row.here.find(':'));
    if (contains(here, ", ") || here.starts_with("measure.")) continue;  // not a job value
    try {
      const auto as_switch = std::ranges::find(row.values, "", &std::pair<std::string, std::string>::first);
      keep(job, setting, here,
           setting.value == "auto" || !setting.why_unknown.empty() ? std::nullopt
                                                                   : config::parse_theirs(row, setting.value),
           as_switch == row.values.end() ? std::nullopt : std::optional(as_switch->second));
    } catch (const Error&) {  // no equivalent: the framework's default or a rule decides
    }
  }
  return known;
}

// Prefixes of Megatron-LM flags that do not affect the step time counted here.
const std::vector<Text> harmless_beginnings = split(
    "--DDP-impl|--account-for|--adam|--apply-layernorm|--async-save|--attention-|--bias-|--calculate-|"
    "--ckpt-|--clip-grad|--context-parallel|--cross-entropy|--data-|--dataloader-|--decoupled-|--deepspeed|"
    "--dist-ckpt|--distributed-|--enable-exp|--eval-|--exit-|--finetune|--fp4-|--fp8-|--hidden-|"
    "--init-method|--init-model|--kill-switch|--kv-channels|--load|--local|--log-|--loss-scale|--lr|"
    "--make-vocab|--manual-gc|--merge-file|--min-lr|--mock-data|--moe-|--no-|--no-load-|--no-save-|"
    "--norm-epsilon|--num-experts|--num-moe|--num-workers|--optimizer|--overlap-p2p|--override-|--override_|"
    "--pp-partition|--profile|--rampup-|--recompute-modules|--repeated-|--rotary-|--save|--seed|--split|"
    "--tensorboard|--timing-|--tokenizer-|--train-|--transformer-impl|--use-contiguous|--use-custom|"
    "--use-distributed|--use-mcore|--valid-|--vocab-|--wandb|--weight-decay",
    '|');

// Completes an abbreviated flag: Megatron-LM's command line accepts an unambiguous prefix of a name.
std::string whole_flag(const std::string& flag) {
  std::vector<std::string> known(harmless_beginnings.begin(), harmless_beginnings.end());  // "--optimizer" is whole
  const auto add_keys = [&](const auto& rows) {
    for (const auto& row : rows)
      for (Text key : split(row.key, '|')) known.emplace_back(key);
  };
  add_keys(megatron_keys);
  add_keys(megatron_cannot);
  for (const config::FrameworkRow& row : config::rows_of(config::Framework::megatron)) known.push_back(row.key);
  std::vector<std::string> fitting;
  for (const std::string& name : known) {
    if (name == flag) return flag;
    if (name.starts_with(flag) && !name.ends_with('-')) add_once(fitting, name);
  }
  constexpr std::size_t shortest = 8;  // "--num-la"; a shorter prefix more likely belongs to another flag
  if (fitting.empty() || flag.size() < shortest) return flag;
  const std::string first = std::ranges::min(fitting);  // prefix of the others, if any is
  return std::ranges::all_of(fitting, [&](const std::string& name) { return name.starts_with(first); }) ? first : flag;
}

// Rewrites settings that use Megatron-LM's field names as Megatron-LM flags.
void prepare_settings(TrainingJob& job) {
  for (ForeignSetting& setting : job.settings) {  // written by NeMo's launcher
    if (job.framework == "nemo" && setting.key.starts_with("training.")) setting.key.erase(0, Text("training.").size());
  }
  if (is_one_of(like_megatron, job.framework)) as_megatron_flags(job);
  if (const auto devices = job.their_number("trainer.devices")) {
    const std::int64_t nodes = job.their_number("trainer.num_nodes").value_or(1);
    if (*devices > 0 && nodes > 0 && *devices <= 1024 && nodes <= 1024)
      job.otherwise("ranks", *devices * nodes, "trainer.devices x trainer.num_nodes");
  }
}

}  // namespace

void translate(TrainingJob& job) {
  prepare_settings(job);
  std::vector<std::string> unknown;
  for (ForeignSetting& setting : job.settings) {
    const Text framework = setting.framework.empty() ? Text(job.framework) : Text(setting.framework);
    // Programs that these frameworks do not bring along mostly use common names.
    constexpr Text without_program = "hugging face trainer|hugging face model|accelerate|deepspeed";
    const bool own = setting.framework.empty() && (framework.empty() || is_one_of(without_program, framework));
    if (setting.key.starts_with("--")) {
      const std::string word = replaced(setting.key.substr(2), {{'-', "_"}});
      if (own) setting.key = word;
      // Beside DeepSpeed's configuration and in OpenRLHF, the name means sequences of all ranks.
      const bool of_all = framework == "deepspeed" || job.says("--micro_train_batch_size|micro_train_batch_size");
      if (own && of_all && word == "train_batch_size") setting.key = "global_batch_size";
      if (framework == "torchtitan") setting.key = replaced(setting.key.substr(2), {{'-', "_"}});
      if (is_one_of("nanogpt|maxtext", framework)) setting.key = setting.key.substr(2);
      if (framework == "bridge options") setting.key = "--" + word;
    }
    const bool flag = setting.framework.empty() && setting.key.starts_with("--");
    if (flag && is_one_of("megatron-lm|megatron-deepspeed", job.framework)) {
      setting.key = replaced(setting.key, {{'_', "-"}});  // as Megatron-LLM writes its flags
    }
    if (flag && job.framework == "megatron-lm") {
      std::string whole = whole_flag(setting.key);
      if (whole != setting.key) job.note("{} is taken for {}", setting.key, whole);
      setting.key = std::move(whole);
    }
    const Text name = framework == "megatron-deepspeed" ? Text("megatron-lm") : framework;
    if (name == "megatron-lm" && lower(setting.value) == "true") setting.value.clear();
    bool known = false;
    for (const Table& table : tables) {
      const bool fits = own ? table.framework.starts_with("hugging face") : table.framework == name;
      if (!known && fits) known = translate(job, setting, table);
    }
    if (!known && job.framework.starts_with("megatron-") && job.framework != "megatron-bridge" && flag &&
        !starts_with_any(setting.key, harmless_beginnings))
      unknown.push_back(setting.key);
  }
  if (!unknown.empty()) job.note("flags that are not known here: {}", join_first(unknown, 8));
  if (!job.more_arguments.empty())
    job.note("arguments that are not known and may say more: {}", join_first(job.more_arguments, 4));
}

std::string TrainingJob::text(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() || !found->second.known ? "" : found->second.value;
}

std::optional<std::int64_t> TrainingJob::number(std::string_view name) const {
  const auto value = as_number(text(name));
  constexpr double most = 3e9;  // products of two such numbers fit in 64 bits
  if (!value || *value < 0 || *value > most || *value != static_cast<double>(static_cast<std::int64_t>(*value)))
    return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::int64_t TrainingJob::degree(std::string_view axis) const {
  return std::clamp<std::int64_t>(number_or(fmt::format("layout.{}_parallel", axis), 1), 1, 1 << 20);
}

const ForeignSetting* TrainingJob::find(std::string_view keys) const {
  for (const Text key : split(keys, '|')) {
    const auto found = std::find_if(settings.rbegin(), settings.rend(), [&](const auto& s) { return s.key == key; });
    if (found != settings.rend()) return &*found;
  }
  return nullptr;
}

std::string TrainingJob::theirs(std::string_view key) const {
  const ForeignSetting* setting = find(key);
  return setting == nullptr ? "" : setting->value;
}

bool TrainingJob::is_on(std::string_view key) {
  const ForeignSetting* setting = find(key);
  const bool open = setting != nullptr && setting->is_open();
  if (open) add_once(refused, setting->why_unknown);
  return setting != nullptr && !open && setting->value != "false" && setting->value != "False";
}

void TrainingJob::set_by_switch(std::string_view name, std::string_view key, const char* on, const char* off,
                                const std::string& origin) {
  const ForeignSetting* setting = find(key);
  if (setting != nullptr && setting->is_open()) return refuse(name, setting->why_unknown);
  set(name, is_on(key) ? on : off, origin);
}

bool TrainingJob::uses(std::string_view name) const {
  return framework == name || std::ranges::find(settings, name, &ForeignSetting::framework) != settings.end();
}

}  // namespace harness::evidence
