#include "config/synonyms.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace harness::config {
namespace {

constexpr const char* derived_replicas = "it follows: ranks / (tensor_parallel x pipeline_parallel)";
constexpr const char* derived_accumulation = "it follows: global_batch_size / (micro_batch_size x replicas)";
constexpr const char* no_recomputation = "harness does not recompute activations";
constexpr const char* no_sharding = "harness does not shard optimizer states, gradients or weights over replicas";
constexpr const char* no_such_parallelism = "harness has tensor, pipeline and data parallelism (layout)";

// What harness has comes first: "here it is …".
constexpr std::array<std::pair<std::string_view, std::string_view>, 46> here{{
    {"tensor_model_parallel_size", "layout.layout[program::Axis::tensor]"},
    {"tensor_parallel_size", "layout.layout[program::Axis::tensor]"},
    {"tp_size", "layout.layout[program::Axis::tensor]"},
    {"tp", "layout.layout[program::Axis::tensor]"},
    {"pipeline_model_parallel_size", "layout.layout[program::Axis::pipeline]"},
    {"pipeline_parallel_size", "layout.layout[program::Axis::pipeline]"},
    {"pp_size", "layout.layout[program::Axis::pipeline]"},
    {"pp", "layout.layout[program::Axis::pipeline]"},
    {"world_size", "ranks (a variable), or as many as mpirun starts"},
    {"nranks", "ranks (a variable), or as many as mpirun starts"},
    {"num_gpus", "ranks (a variable), or as many as mpirun starts"},
    {"num_layers", "model.layers"},
    {"n_layer", "model.layers"},
    {"num_hidden_layers", "model.layers"},
    {"hidden_size", "model.hidden"},
    {"n_embd", "model.hidden"},
    {"d_model", "model.hidden"},
    {"num_attention_heads", "model.heads"},
    {"num_heads", "model.heads"},
    {"n_head", "model.heads"},
    {"vocab_size", "model.vocab"},
    {"padded_vocab_size", "model.vocab"},
    {"seq_length", "model.sequence"},
    {"seq_len", "model.sequence"},
    {"max_position_embeddings", "model.sequence"},
    {"train_batch_size", "global_batch_size"},
    {"gbs", "global_batch_size"},
    {"train_micro_batch_size_per_gpu", "micro_batch_size"},
    {"per_device_train_batch_size", "micro_batch_size"},
    {"mbs", "micro_batch_size"},
    {"dtype", "precision"},
    {"params_dtype", "precision"},
    {"mixed_precision", "precision"},
    {"bf16", "precision: bf16"},
    {"train_iters", "measure.steps"},
    {"iterations", "measure.steps"},
    {"iters", "measure.steps"},
    {"repeats", "measure.rounds"},
    {"runs", "measure.rounds"},
    {"warmup_iters", "measure.warmup_steps"},
    {"warmup", "measure.warmup_steps"},
    {"ddp_bucket_size", "bucket_size"},
    {"bucket_cap_mb", "bucket_size"},
    {"reduce_bucket_size", "bucket_size"},
    {"use_flash_attn", "attention: fused"},
    {"threshold", "measure.smallest_effect"},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 19> nowhere{{
    {"data_parallel_size", derived_replicas},
    {"dp", derived_replicas},
    {"gradient_accumulation_steps", derived_accumulation},
    {"accumulate_grad_batches", derived_accumulation},
    {"recompute", no_recomputation},
    {"recompute_activations", no_recomputation},
    {"recompute_granularity", no_recomputation},
    {"activation_checkpointing", no_recomputation},
    {"gradient_checkpointing", no_recomputation},
    {"zero_stage", no_sharding},
    {"zero_optimization", no_sharding},
    {"use_distributed_optimizer", no_sharding},
    {"fsdp", no_sharding},
    {"sequence_parallel", no_such_parallelism},
    {"context_parallel_size", no_such_parallelism},
    {"expert_model_parallel_size", no_such_parallelism},
    {"virtual_pipeline_model_parallel_size", no_such_parallelism},
    {"num_layers_per_virtual_pipeline_stage", no_such_parallelism},
    {"fp16", "harness has fp32, tf32 and bf16 (precision)"},
}};

}  // namespace

std::string known_elsewhere_as(std::string_view key) {
  while (key.starts_with('-')) key.remove_prefix(1);
  std::string word = lower(key);
  std::ranges::replace(word, '-', '_');
  for (const auto& [name, answer] : here) {
    if (name == word) return "here it is " + std::string(answer);
  }
  for (const auto& [name, answer] : nowhere) {
    if (name == word) return std::string(answer);
  }
  return "";
}

}  // namespace harness::config
