#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "evidence/input.h"

// Maps framework keys to harness names. Keys in config/frameworks are read through those rows. This file holds keys
// that `export` never writes, and frameworks that `export` does not support.

namespace harness::evidence {

/// A key that is read but never exported.
struct KeyRow {
  std::string_view key;          // alternative names, separated by '|'
  std::string_view here;         // harness name; "": no effect on the step, or handled in job_rules.cpp
  std::string_view values = "";  // "theirs=ours|…"; other values are rejected; "": same spelling in both
};
/// Returns rows from "key=here" pairs separated by spaces, whose values are spelled the same in both, plus `rows`.
inline std::vector<KeyRow> key_rows(std::string_view alike, std::vector<KeyRow> rows = {}) {
  for (const std::string_view row : split(alike, ' '))
    rows.push_back({row.substr(0, row.find('=')), row.substr(row.find('=') + 1)});
  return rows;
}
/// A key whose value has no equivalent in harness.
struct CannotRow {
  std::string_view key;       // alternative names, separated by '|'
  std::string_view harmless;  // values that request nothing, separated by '|'
  std::string_view text;      // {} is the value
};

// Not inline: an inline variable may be initialised after the variables of a source file that take a span of it.
const std::vector<KeyRow> megatron_keys = key_rows(
    "--max-position-embeddings|--group-query-attention|--num-query-groups|--vocab-size|--bf16|--fp16|--fp8-recipe|"
    "--sequence-parallel|--use-distributed-optimizer|--use-megatron-fsdp|--data-parallel-sharding-strategy|"
    "--num-distributed-optimizer-instances|--num-virtual-stages-per-pipeline-rank|"
    "--num-layers-per-virtual-pipeline-stage|--recompute-method|--decoder-first-pipeline-num-layers|"
    "--decoder-last-pipeline-num-layers|--pipeline-model-parallel-layout|--recompute-num-layers|"
    "--decoder-seq-length|--packed-sequence-size|--step-batch-size-schedule|--expert-tensor-parallel-size|"
    "--account-for-embedding-in-pipeline-split|--account-for-loss-in-pipeline-split|"
    "--accumulate-allreduce-grads-in-fp32|--num-key-value-heads|--multiple-of|--encoder-num-layers|--bert-binary-head|"
    "--microbatch-group-size-per-virtual-pipeline-stage|--actor-num-nodes|--actor-num-gpus-per-node= "
    "--kv-channels=head_dim "
    "--context-parallel-size|--ds-sequence-parallel-size=layout.context_parallel "
    "--expert-model-parallel-size=expert_parallel --pad-vocab-size-to=model.vocab --intermediate-size=model.ffn "
    "--max-length=model.sequence",
    {
        {"--torch-dtype", "precision", "bfloat16=bf16|float16=fp16|float32=fp32"},
        {"--packed-sequence|--packing", "batching", "=packed|true=packed|false=padded"},
        {"--overlap-param-gather", "overlap_param_gather", "=true|true=true|false=false"},
        {"--normalization", "model.norm",
         "LayerNorm=layer_norm|layernorm=layer_norm|layernorm1p=layer_norm|RMSNorm=rms_norm|rmsnorm=rms_norm"},
        {"--use-rotary-position-embeddings", "model.positions", "=rotary"},
        {"--position-embedding-type", "model.positions",
         "learned_absolute=learned|learned=learned|rope=rotary|rotary=rotary|mrope=rotary|yarn=rotary|"
         "none=rotary|relative=rotary|alibi=learned|ALiBi=learned"},
        {"--tp-comm-overlap", "tp_overlap", "=true|true=true"},
        {"--checkpoint-activations", "recompute", "=full"},
        {"--activations-checkpoint-method", "recompute", "uniform=full|block=full"},
        {"--quick-geglu", "model.activation", "=swiglu"},
        {"--enable-cuda-graph", "cuda_graph", "=true"},
        {"--cuda-graph-impl", "cuda_graph", "none=false|local=true|transformer_engine=true|full_iteration=true"},
        {"--attention-backend", "attention", "auto=fused|flash=fused|fused=fused|unfused=unfused|local=unfused"},
        {"--zero-stage", "sharding", "0=none|1=optimizer|2=gradients|3=parameters"},
    });
inline constexpr std::array<CannotRow, 15> megatron_cannot{{
    {"--tuner-type|--train-type", "full", "{}: all weights are counted as trained"},
    {"--expert-model-parallel-size", "1|0", "expert parallelism is left out (EP {}): its all-to-all is not predicted"},
    {"--multi-latent-attention", "false", "multi-latent attention: its products and its cache differ"},
    {"--mtp-num-layers", "0|None", "{} layers of multi-token prediction are left out"},
    {"--hybrid-override-pattern|--hybrid-layer-pattern|--is-hybrid-model", "None|false",
     "Mamba layers: all layers are counted as attention and MLP"},
    {"--cpu-offload|--cpu-offloading|--cpu-offloading-num-layers", "false|0",
     "offloading to the host: its copies are not predicted"},
    {"--optimizer-cpu-offload|--cpu-optimizer", "false", "the optimizer on the host: its copies are not predicted"},
    {"--window-size", "None", "sliding-window attention ({}): it is counted in full"},
    {"--quick-geglu", "false", "quick GEGLU (nearest: swiglu, with the same FLOP of products)"},
    {"--squared-relu", "false", "squared ReLU (nearest: gelu, with the same FLOP of products)"},
    {"--add-qkv-bias", "false", "biases of queries, keys and values alone (nearest: none)"},
    {"--qk-layernorm", "false", "norms of queries and keys are left out"},
    {"--use-torch-fsdp2", "false", "torch FSDP2 in Megatron: read as sharding of parameters"},
    {"--encoder-tensor-model-parallel-size", "0", "an encoder of its own is left out"},
    {"--freeze-LM", "false", "a frozen language model: its weights are counted as trained"},
}};

const std::vector<KeyRow> deepspeed_keys = key_rows(
    "zero_optimization.stage3_prefetch_bucket_size|zero_optimization.mics_shard_size|"
    "zero_optimization.zero_hpz_partition_size|zero_optimization.allgather_bucket_size|activation_checkpointing= "
    "sequence_parallel_size=layout.context_parallel zero_optimization.reduce_bucket_size=bucket_elements",
    {
        {"bf16.enabled|bfloat16.enabled", "precision", "true=bf16"},
        {"fp16.enabled", "precision", "true=fp16"},
        {"zero_optimization.overlap_comm", "overlap_grad_reduce", "true=true|false=false"},
        {"communication_data_type", "grad_reduce_precision", "fp32=fp32|bf16=bf16|bfp16=bf16|fp16=bf16"},
    });
inline constexpr std::array<CannotRow, 6> deepspeed_cannot{{
    {"zero_optimization.offload_optimizer.device", "none", "the optimizer on {}: its copies are not predicted"},
    {"zero_optimization.offload_param.device", "none", "parameters on {}: their copies are not predicted"},
    {"zero_optimization.zero_quantized_weights", "false", "quantized weights on the wire are counted whole"},
    {"zero_optimization.zero_quantized_gradients", "false", "quantized gradients on the wire are counted whole"},
    {"zero_optimization.zero_hpz_partition_size", "1", "hpZ: secondary shards of {} ranks are left out"},
    {"zero_optimization.cpu_offload", "false", "the optimizer on the host: its copies are not predicted"},
}};

const std::vector<KeyRow> torchtitan_keys = key_rows(
    "training.batch_size=micro_batch_size training.num_tokens_per_train_step|"
    "training.num_tokens_per_microbatch_per_dp_rank|experimental.pipeline_parallel_schedule|"
    "parallelism.pipeline_parallel_schedule|parallelism.fsdp_reshard_after_forward|activation_checkpoint.mode|"
    "model.name|model.flavor= training.max_context_length=model.sequence "
    "training.tensor_parallel_degree=layout.tensor_parallel training.data_parallel_degree|"
    "training.data_parallel_shard_degree|parallelism.data_parallel_shard_degree=data_parallel_shard "
    "training.data_parallel_replicate_degree|parallelism.data_parallel_replicate_degree=data_parallel_replicate "
    "parallelism.context_parallel_degree|experimental.context_parallel_degree=layout.context_parallel "
    "parallelism.expert_parallel_degree=expert_parallel "
    "experimental.pipeline_parallel_degree=layout.pipeline_parallel",
    {
        {"parallelism.enable_async_tensor_parallel|experimental.enable_async_tensor_parallel", "tp_overlap",
         "=true|true=true|false=false"},
        {"parallelism.enable_sequence_parallel", "sequence_parallel", "true=true|false=false"},
    });
inline constexpr std::array<CannotRow, 3> torchtitan_cannot{{
    {"training.enable_cpu_offload", "false", "offloading to the host: its copies are not predicted"},
    {"parallelism.expert_parallel_degree", "1",
     "expert parallelism is left out (EP {}): its all-to-all is not predicted"},
    {"lora.rank", "0", "LoRA ({}): all weights are counted as trained"},
}};

const std::vector<KeyRow> hf_model = key_rows(
    "num_hidden_layers|n_layer|n_layers|num_layers=model.layers hidden_size|n_embd|n_embed|d_model=model.hidden "
    "num_attention_heads|n_head|n_heads|num_heads=model.heads "
    "num_key_value_heads|num_kv_heads|multi_query_group_num|attn_config.kv_n_heads=model.kv_heads "
    "intermediate_size|n_inner|ffn_dim|ffn_hidden_size=model.ffn vocab_size|padded_vocab_size=model.vocab "
    "rope_theta|rope_parameters.rope_theta=model.rope_theta head_dim=head_dim "
    "attention_bias|mlp_bias|max_position_embeddings|torch_dtype|multi_query|new_decoder_architecture=",
    {
        {"hidden_act", "model.activation",
         "relu2=gelu|silu=swiglu|swish=swiglu|swiglu=swiglu|gelu=gelu|gelu_new=gelu|gelu_pytorch_tanh=gelu|"
         "gelu_fast=gelu|relu=gelu"},
        {"activation_function", "model.activation", "gelu=gelu|gelu_new=gelu|relu=gelu|silu=swiglu"},
        {"tie_word_embeddings", "model.tied_embeddings", "true=true|false=false"},
        {"use_bias", "model.biases", "true=true|false=false"},
    });
inline constexpr std::array<CannotRow, 5> hf_model_cannot{{
    {"is_encoder_decoder", "false", "an encoder beside a decoder: a decoder alone is counted"},
    {"vision_config.model_type", "", "a vision model ({}) is left out: only the language model is counted"},
    {"use_parallel_residual|parallel_attn", "false", "attention beside the MLP: they are counted one after the other"},
    {"kv_lora_rank", "", "multi-latent attention: its products and its cache differ"},
    {"use_sliding_window", "false", "sliding-window attention: it is counted in full"},
}};

// Flags of the Hugging Face Trainer and of programs built around it, with and without dashes.
const std::vector<KeyRow> hf_trainer = key_rows(
    "per_device_train_batch_size|micro_batch_size|train_batch_size|micro_train_batch_size=micro_batch_size "
    "global_batch_size=global_batch_size "
    "gradient_accumulation_steps=gradient_accumulation block_size|max_seq_length|max_seq_len|max_context_width|"
    "max_length|max_len|model_max_length|cutoff_len|sequence_len|seq_length=model.sequence "
    "fsdp|deepspeed|ddp_bucket_cap_mb|torch_compile|n_positions|max_source_length= hidden_width=model.hidden "
    "model_name_or_path|base_model|config_name|model|pretrain=model_name "
    "context_parallel_size|cp_size|sequence_parallel_size=layout.context_parallel "
    "tensor_parallel_size|tensor_model_parallel_size|parallelism_config.parallelism_config_tp_size="
    "layout.tensor_parallel pipeline_model_parallel_size=layout.pipeline_parallel "
    "virtual_pipeline_model_parallel_size=virtual_pipeline "
    "expert_parallel_size|expert_model_parallel_size=expert_parallel "
    "dp_shard_size=data_parallel_shard dp_replicate_size=data_parallel_replicate",
    {
        {"packing|sample_packing|neat_packing", "batching",
         "=packed|true=packed|True=packed|false=padded|False=padded"},
        {"bf16", "precision", "=bf16|true=bf16|True=bf16|1=bf16|auto=bf16"},
        {"fp16", "precision", "=fp16|true=fp16|True=fp16|1=fp16"},
        {"gradient_checkpointing|activation_checkpointing|fsdp_config.activation_checkpointing", "recompute",
         "=full|true=full|True=full|1=full|unsloth=full|offload=full|offload_disk=full|false=none|False=none|0=none"},
        {"recompute_granularity", "recompute", "full=full|selective=selective"},
        {"sequence_parallel", "sequence_parallel", "true=true|false=false"},
        {"zero_stage", "sharding", "0=none|1=optimizer|2=gradients|3=parameters"},
        {"use_distributed_optimizer", "sharding", "true=optimizer"},
        {"sharding_strategy", "sharding",
         "full=parameters|FULL_SHARD=parameters|hybrid=parameters|HYBRID_SHARD=parameters|"
         "SHARD_GRAD_OP=gradients|NO_SHARD=none|no=none"},
        {"dtype", "precision", "bf16=bf16|bfloat16=bf16|fp16=fp16|float16=fp16|fp32=fp32|float32=fp32"},
        {"attn_implementation", "attention", "flash_attention_2=fused|sdpa=fused|eager=unfused"},
    });
inline constexpr std::array<CannotRow, 8> hf_trainer_cannot{{
    {"offload_activations|activation_offloading", "0|false|False",
     "activations on the host: their copies are not predicted"},
    {"fsdp_config.offload_params|fsdp_config.fsdp_offload_params", "false|False",
     "parameters on the host: their copies are not predicted"},
    {"offload", "false|False|none", "parameters and the optimizer on the host: their copies are not predicted"},
    {"gradient_checkpointing", "|true|True|false|False",
     "gradient_checkpointing {}: the inputs of layers go to the host, and those copies are not predicted"},
    {"use_peft|use_lora", "false|False", "LoRA: all weights are counted as trained"},
    {"lora_r|lora_rank|lora_dim", "0", "LoRA of rank {}: all weights are counted as trained"},
    {"adapter|finetuning_type|tuner_type|train_type", "None|full", "{}: all weights are counted as trained"},
    {"load_in_4bit|load_in_8bit", "false|False", "weights of 4 or 8 bits: they are counted as bf16"},
}};

const std::vector<KeyRow> accelerate_keys = key_rows(
    "num_processes=ranks num_machines|distributed_type= "
    "parallelism_config.parallelism_config_tp_size=layout.tensor_parallel "
    "parallelism_config.parallelism_config_cp_size=layout.context_parallel "
    "parallelism_config.parallelism_config_dp_shard_size=data_parallel_shard "
    "parallelism_config.parallelism_config_dp_replicate_size=data_parallel_replicate "
    "deepspeed_config.gradient_accumulation_steps|gradient_accumulation_steps=gradient_accumulation",
    {
        {"mixed_precision", "precision", "no=fp32|fp16=fp16|bf16=bf16|fp8=fp8"},
        {"fsdp_config.fsdp_sharding_strategy", "sharding",
         "FULL_SHARD=parameters|SHARD_GRAD_OP=gradients|NO_SHARD=none|HYBRID_SHARD=parameters|"
         "HYBRID_SHARD_ZERO2=gradients|1=parameters|2=gradients|3=none|4=parameters|5=gradients"},
        {"fsdp_config.fsdp_reshard_after_forward", "sharding",
         "true=parameters|false=gradients|FULL_SHARD=parameters|SHARD_GRAD_OP=gradients|NO_SHARD=none|"
         "HYBRID_SHARD=parameters|HYBRID_SHARD_ZERO2=gradients"},
        {"fsdp_config.fsdp_activation_checkpointing", "recompute", "true=full|false=none"},
        {"fsdp_config.fsdp_backward_prefetch", "prefetch_layers", "BACKWARD_PRE=1|BACKWARD_POST=0|NO_PREFETCH=0"},
        {"deepspeed_config.zero_stage", "sharding", "0=none|1=optimizer|2=gradients|3=parameters"},
    });
inline constexpr std::array<CannotRow, 4> accelerate_cannot{{
    {"parallelism_config.parallelism_config_sp_size", "1",
     "sequences divided among {} ranks by DeepSpeed (nearest: 1)"},
    {"fsdp_config.fsdp_offload_params", "false", "parameters on the host: their copies are not predicted"},
    {"deepspeed_config.offload_optimizer_device", "none", "the optimizer on {}: its copies are not predicted"},
    {"deepspeed_config.offload_param_device", "none", "parameters on {}: their copies are not predicted"},
}};

const std::vector<KeyRow> foundry_keys = key_rows(
    "model.d_model=model.hidden model.n_heads=model.heads model.n_layers=model.layers model.vocab_size=model.vocab "
    "model.max_seq_len|max_seq_len=model.sequence model.attn_config.kv_n_heads=model.kv_heads "
    "model.ffn_config.ffn_hidden_size=model.ffn model.attn_config.rope_theta=model.rope_theta "
    "global_train_batch_size=global_batch_size device_train_microbatch_size=micro_batch_size "
    "device_train_grad_accum=gradient_accumulation model.pretrained_model_name_or_path=model_name",
    {
        {"model.ffn_config.ffn_type", "model.activation", "mptmlp=gelu|mptglu=swiglu"},
        {"model.attn_config.rope", "model.positions", "true=rotary|false=learned"},
        {"model.attn_config.attn_impl", "attention", "flash=fused|torch=unfused|triton=fused"},
        {"model.no_bias", "model.biases", "true=false|false=true"},
        {"model.tie_word_embeddings", "model.tied_embeddings", "true=true|false=false"},
        {"precision", "precision", "amp_bf16=bf16|amp_fp16=fp16|fp32=fp32|amp_fp8=fp8"},
        {"model.norm_type", "model.norm",
         "layernorm=layer_norm|low_precision_layernorm=layer_norm|rmsnorm=rms_norm|"
         "low_precision_rmsnorm=rms_norm"},
    });
inline constexpr std::array<CannotRow, 2> foundry_cannot{{
    {"model.attn_config.alibi", "false", "ALiBi (nearest: learned positions)"},
    {"peft_config.peft_type|model.peft_config.peft_type", "", "{}: all weights are counted as trained"},
}};

const std::vector<KeyRow> nanogpt_keys = key_rows(
    "n_layer=model.layers n_embd=model.hidden n_head=model.heads block_size=model.sequence vocab_size=model.vocab "
    "batch_size=micro_batch_size init_from=",
    {
        {"bias", "model.biases", "True=true|False=false|true=true|false=false"},
        {"dtype", "precision", "bfloat16=bf16|float16=fp16|float32=fp32"},
    });

const std::vector<KeyRow> maxtext_keys = key_rows(
    "base_emb_dim=model.hidden base_num_query_heads=model.heads base_num_kv_heads=model.kv_heads "
    "base_mlp_dim=model.ffn base_num_decoder_layers=model.layers head_dim=head_dim vocab_size=model.vocab "
    "max_target_length=model.sequence model_name=model_name rope_max_timescale=model.rope_theta "
    "per_device_batch_size= gradient_accumulation_steps=gradient_accumulation",
    {
        {"dtype", "precision", "bfloat16=bf16|float32=fp32"},
        {"quantization", "precision", "fp8=fp8|nanoo_fp8=fp8|te_fp8_delayedscaling=fp8|te_mxfp8=mxfp8"},
        {"remat_policy", "recompute", "full=full|minimal=none|minimal_with_context=none|minimal_flash=none|none=none"},
        {"attention", "attention",
         "cudnn_flash_te=fused|cudnn_flash_jax=fused|flash=fused|dot_product=unfused|autoselected=fused"},
        {"mlp_activations", "model.activation", "silu, linear=swiglu|gelu, linear=swiglu|gelu=gelu|relu=gelu"},
        {"logits_via_embedding", "model.tied_embeddings", "true=true|false=false"},
    });
inline constexpr std::array<CannotRow, 1> maxtext_cannot{{
    {"optimizer_memory_host_offload", "false", "the optimizer on the host: its copies are not predicted"},
}};

// Options of Megatron-Bridge's scripts/performance, by short and long name.
const std::vector<KeyRow> bridge_options = key_rows(
    "-tp|--tensor_model_parallel_size=layout.tensor_parallel "
    "-pp|--pipeline_model_parallel_size=layout.pipeline_parallel -cp|--context_parallel_size=layout.context_parallel "
    "-vp|--virtual_pipeline_model_parallel_size=virtual_pipeline -ep|--expert_model_parallel_size=expert_parallel "
    "-mb|--micro_batch_size=micro_batch_size -gb|--global_batch_size=global_batch_size "
    "-sl|--seq_length=model.sequence -ng|--num_gpus=ranks -gn|--gpus_per_node=ranks_per_node -g|--gpu=hardware "
    "-mr|--model_recipe_name|--recipe=model_name -rl|--recompute_num_layers=recompute_layers",
    {
        {"-c|--compute_dtype", "precision",
         "bf16=bf16|fp8_cs=fp8|fp8_ds=fp8|fp8_sc=fp8|fp8=fp8|fp8_mx=mxfp8|mxfp8=mxfp8|nvfp4=nvfp4"},
    });
const std::vector<KeyRow> llmb_keys = key_rows(
    "model_info.model_size= model_info.scale=ranks model_info.gpu_type=hardware "
    "cluster_info.gpus_per_node=ranks_per_node job_config.model_overrides.TP=layout.tensor_parallel "
    "job_config.model_overrides.PP=layout.pipeline_parallel job_config.model_overrides.CP=layout.context_parallel "
    "job_config.model_overrides.VP=virtual_pipeline job_config.model_overrides.MBS=micro_batch_size "
    "job_config.model_overrides.GBS=global_batch_size job_config.model_overrides.EP=expert_parallel",
    {
        {"model_info.dtype", "precision",
         "bf16=bf16|fp8=fp8|fp8_cs=fp8|fp8_ds=fp8|mxfp8=mxfp8|fp8_mx=mxfp8|nvfp4=nvfp4"},
    });

}  // namespace harness::evidence
