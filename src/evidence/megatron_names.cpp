#include <algorithm>

#include "evidence/foreign_keys.h"
#include "evidence/lines.h"
#include "evidence/training_job.h"

// Megatron-LM's flags for the fields of those who name them in YAML.

namespace harness::evidence {
namespace {

using Text = std::string_view;

// They name Megatron-LM's fields.
constexpr Text like_megatron = "megatron-bridge|nemo|megatron-lm";

// Fields of NeMo 1 and Megatron-Bridge by Megatron-LM's flags.
void as_megatron_flags(TrainingJob& job) {
  static const std::vector<KeyRow> names = key_rows(
      "vocab_size=--padded-vocab-size encoder_seq_length=--seq-length bucket_size=--ddp-bucket-size "
      "activations_checkpoint_granularity=--recompute-granularity activations_checkpoint_method=--recompute-method "
      "activations_checkpoint_num_layers=--recompute-num-layers "
      "virtual_pipeline_model_parallel_size=--num-virtual-stages-per-pipeline-rank",
      {{"gated_linear_unit", "--swiglu", "true="},
       {"share_embeddings_and_output_weights", "--untie-embeddings-and-output-weights", "false="},
       {"add_bias_linear|bias", "--disable-bias-linear", "false="},
       {"grad_reduce_in_fp32", "--grad-reduce-in-bf16", "false="},
       {"activation", "--swiglu", "fast-swiglu="},
       {"activation_func", "--swiglu", "swiglu="},
       {"ub_tp_comm_overlap", "--tp-comm-overlap", "true="},
       {"overlap_grad_sync", "--overlap-grad-reduce", "true="},
       {"overlap_param_sync", "--overlap-param-gather", "true="},
       {"name", "--use-distributed-optimizer", "distributed_fused_adam=|mcore_distributed_optim="}});
  std::vector<ForeignSetting> more;
  for (ForeignSetting& setting : job.settings) {
    const bool fields =
        is_one_of(like_megatron, setting.framework) || (setting.framework.empty() && !setting.key.starts_with('-'));
    if (!fields || is_one_of("program|argument|mixed_precision", setting.key) || setting.key.starts_with("trainer.") ||
        contains(setting.key, "checkpoint."))
      continue;
    const std::string word = replaced(setting.key.substr(setting.key.rfind('.') + 1), {{'-', "_"}});
    if (word == "num_query_groups" && setting.origin != dumped_arguments)
      more.push_back({"--group-query-attention", "", setting.origin, "", "megatron-lm"});
    const bool padded = setting.framework != "megatron-lm";  // Megatron-LM's own vocab_size is the tokenizer's
    setting.framework = "megatron-lm";
    const auto same_key = [&](const KeyRow& row) { return is_one_of(row.key, word); };
    const auto row = std::ranges::find_if(names, same_key);
    if (row != names.end() && (padded || word != "vocab_size")) {
      const auto value = mapped(row->values, setting.value);  // of a switch "", where it is set
      setting.key = value ? row->here : "";
      setting.value = value.value_or("");
      continue;
    }
    if (setting.key.ends_with("tokenizer.type")) {
      setting.key = "--tokenizer-type";
      continue;
    }
    setting.key = "--" + replaced(word, {{'_', "-"}});
    if (setting.value == "true" || setting.value == "True") setting.value.clear();
  }
  job.settings.insert(job.settings.end(), more.begin(), more.end());
}

}  // namespace

void prepare_settings(TrainingJob& job) {
  for (ForeignSetting& setting : job.settings) {  // of NeMo's launcher
    if (job.framework == "nemo" && setting.key.starts_with("training.")) setting.key.erase(0, Text("training.").size());
  }
  if (is_one_of(like_megatron, job.framework)) as_megatron_flags(job);
  if (const auto devices = job.their_number("trainer.devices")) {
    const std::int64_t nodes = job.their_number("trainer.num_nodes").value_or(1);
    if (*devices > 0 && nodes > 0 && *devices <= 1024 && nodes <= 1024)
      job.otherwise("ranks", *devices * nodes, "trainer.devices x trainer.num_nodes");
  }
}

}  // namespace harness::evidence
