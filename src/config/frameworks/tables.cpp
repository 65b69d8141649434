// The keys of frameworks and their meaning here, one function per framework.
#include <fmt/format.h>

#include "base/units.h"
#include "config/frameworks/framework.h"

namespace harness::config {
namespace {

// A switch that stands for one value of ours.
FrameworkRow switch_row(std::string key, std::string here, std::string ours, Note note = {}, Note unwritten = {}) {
  return {.key = std::move(key),
          .here = std::move(here),
          .values = {{"", std::move(ours)}},
          .note = std::move(note),
          .unwritten = std::move(unwritten)};
}

// Returns the value if the key is written.
std::optional<std::string> written_if(bool written, std::string value = "") {
  return written ? std::optional(std::move(value)) : std::nullopt;
}

// A key that is recognised but never written.
FrameworkRow known_row(std::string key, std::string here) {
  return {.key = std::move(key), .here = std::move(here), .read_only = true};
}

// Convert a bucket to its number of fp32 gradients, and back.
std::string elements_of_bucket(const Settings& settings) {
  return std::to_string(settings.bucket_size_bytes / program::size_of(program::DType::f32));
}

std::string bucket_of_elements(std::string_view elements) {
  return print_bytes_exact(parse_integer(elements) * program::size_of(program::DType::f32));
}

// ---- Megatron-LM

bool is_interleaved(const Settings& s) {
  return s.pipeline_schedule == PipelineSchedule::interleaved;
}

std::vector<FrameworkRow> megatron_rows() {
  constexpr const char* remaining = "the remaining ranks are data-parallel";
  const auto recompute_method = [](const Settings& s) { return s.recompute_layers == 0 ? "uniform" : "block"; };
  const auto recompute_number = [](const Settings& s) {
    return std::to_string(s.recompute_layers == 0 ? 1 : s.recompute_layers);
  };
  return {
      // the model
      {.key = "--num-layers", .here = "model.layers"},
      {.key = "--hidden-size", .here = "model.hidden"},
      {.key = "--ffn-hidden-size", .here = "model.ffn"},
      {.key = "--num-attention-heads", .here = "model.heads"},
      {.key = "--group-query-attention",
       .here = "model.kv_heads",
       .print_model = [](const Model& m) { return written_if(m.kv_heads != m.heads); }},
      {.key = "--num-query-groups",
       .here = "model.kv_heads",
       .print_model = [](const Model& m) { return written_if(m.kv_heads != m.heads, std::to_string(m.kv_heads)); }},
      {.key = "--seq-length", .here = "model.sequence"},
      {.key = "--max-position-embeddings", .here = "model.sequence"},
      switch_row("--swiglu", "model.activation", "swiglu"),
      {.key = "--normalization",
       .here = "model.norm",
       .values = {{"LayerNorm", "layer_norm"}, {"RMSNorm", "rms_norm"}}},
      {.key = "--position-embedding-type",
       .here = "model.positions",
       .values = {{"learned_absolute", "learned"}, {"rope", "rotary"}}},
      {.key = "--rotary-base",
       .here = "model.rope_theta",
       .print_model =
           [](const Model& m) {
             return written_if(m.positions == Positions::rotary,
                               std::to_string(static_cast<std::int64_t>(m.rope_theta)));
           },
       .parse = [](std::string_view theirs) { return std::string(theirs); }},
      switch_row("--untie-embeddings-and-output-weights", "model.tied_embeddings", "false"),
      switch_row("--disable-bias-linear", "model.biases", "false"),
      known_row("--padded-vocab-size", "model.vocab"),
      known_row("--train-iters", "measure.steps"),

      // precision and batches
      {.key = "--bf16",
       .here = "precision",
       .values = {{"", "bf16"}},
       .print =
           [](const Settings& s) {
             return written_if(s.precision == Precision::bf16 || has_fp8_products(s.precision));
           }},
      {.key = "--fp8-format",
       .here = "precision",
       .values = {{"hybrid", "fp8"}, {"e4m3", "fp8"}},
       .print = [](const Settings& s) -> std::optional<std::string> {
         if (!has_fp8_products(s.precision)) return std::nullopt;
         return s.precision == Precision::mxfp8 ? "e4m3" : "hybrid";
       }},
      {.key = "--fp8-recipe", .here = "precision", .values = {{"tensorwise", "fp8"}, {"mxfp8", "mxfp8"}}},
      switch_row(
          "--fp16", "precision", "fp16", {},
          [](const Settings& s) {
            if (s.precision != Precision::tf32) return "";
            return "no flag: torch.set_float32_matmul_precision(\"high\") in the training script, without --bf16";
          }),
      {.key = "--global-batch-size", .here = "global_batch_size"},
      {.key = "--micro-batch-size", .here = "micro_batch_size"},
      switch_row("--reset-attention-mask", "batching", "packed"),
      switch_row("--reset-position-ids", "batching", "packed"),
      {.here = "sequences", .unwritten = "no flag: the documents of --data-path have the lengths that they have"},

      // the layout
      {.key = "--tensor-model-parallel-size", .here = "layout.tensor_parallel", .note = remaining},
      {.key = "--pipeline-model-parallel-size", .here = "layout.pipeline_parallel", .note = remaining},
      {.key = "--context-parallel-size", .here = "layout.context_parallel"},
      switch_row("--use-tp-pp-dp-mapping", "rank_order", "tp-pp-dp"),
      {.key = "--num-virtual-stages-per-pipeline-rank",
       .here = "virtual_pipeline",
       .only_if = [](const Settings& s) { return s.virtual_pipeline != 0 && is_interleaved(s); },
       .note = "since Megatron core 0.11"},
      {.key = "--num-virtual-stages-per-pipeline-rank",
       .here = "pipeline_schedule",
       .only_if = is_interleaved,
       .print = [](const Settings& s) { return std::optional(std::to_string(s.chunks_of_stage())); },
       .parse = [](std::string_view) { return std::string("interleaved"); },
       .note = "since Megatron core 0.11"},
      known_row("--num-layers-per-virtual-pipeline-stage", "virtual_pipeline, in chunks of a stage"),
      switch_row("--sequence-parallel", "sequence_parallel", "true"),
      switch_row("--tp-comm-overlap", "tp_overlap", "true"),
      {.key = "--account-for-embedding-in-pipeline-split",
       .here = "embedding_as_layer",
       .print = [](const Settings& s) { return written_if(s.embedding_as_layer); }},
      {.key = "--account-for-loss-in-pipeline-split",
       .here = "embedding_as_layer",
       .print = [](const Settings& s) { return written_if(s.embedding_as_layer); }},

      // exchange and sharding among replicas
      switch_row("--overlap-grad-reduce", "overlap_grad_reduce", "true"),
      {.key = "--ddp-bucket-size",
       .here = "bucket_size",
       .print = elements_of_bucket,
       .parse = bucket_of_elements,
       .note =
           [](const Settings& s) {
             return fmt::format("in parameters: {} of fp32 gradients; has an effect only with --overlap-grad-reduce",
                                print_bytes_exact(s.bucket_size_bytes));
           }},
      {.key = "--use-distributed-optimizer",
       .here = "sharding",
       .values = {{"", "optimizer"}},
       .print = [](const Settings& s) { return written_if(s.sharding != Sharding::none); }},
      {.key = "--use-megatron-fsdp",
       .here = "sharding",
       .print = [](const Settings& s) { return written_if(s.sharding > Sharding::optimizer); },
       .beside = [](const Settings& s) -> NameValues {
         if (s.sharding <= Sharding::optimizer) return {};
         return {{"--ckpt-format", "fsdp_dtensor"}};
       }},
      {.key = "--data-parallel-sharding-strategy",
       .here = "sharding",
       .values = {{"optim_grads", "gradients"}, {"optim_grads_params", "parameters"}}},
      known_row("--num-distributed-optimizer-instances", "sharding_group"),
      switch_row("--overlap-param-gather", "overlap_param_gather", "true",
                 "Megatron-LM wants --overlap-grad-reduce with it"),
      switch_row("--grad-reduce-in-bf16", "grad_reduce_precision", "bf16",
                 "Megatron-LM then also adds micro-batches up in bf16; measured with fp32 sums, in bf16 on the wire "
                 "only"),

      // the computation, and how it runs
      switch_row("--no-bias-gelu-fusion", "fusion", "false",
                 "nearest: which operations Megatron-LM fuses is not what was measured"),
      switch_row("--no-bias-swiglu-fusion", "fusion", "false"),
      switch_row("--no-bias-dropout-fusion", "fusion", "false"),
      switch_row("--no-gradient-accumulation-fusion", "fusion", "false"),
      {.key = "--recompute-granularity",
       .here = "recompute",
       .values = {{"selective", "selective"}, {"full", "full"}},
       .beside = [=](const Settings& s) -> NameValues {  // without which Megatron-LM stops
         if (s.recompute != Recompute::full) return {};
         return {{"--recompute-method", recompute_method(s)}, {"--recompute-num-layers", recompute_number(s)}};
       },
       .note =
           [](const Settings& s) {
             const bool nothing = s.recompute == Recompute::selective && s.attention == AttentionKind::fused;
             return nothing ? "Megatron-LM also runs fused attention again, which frees nothing" : "";
           }},
      {.key = "--recompute-activations", .here = "recompute", .values = {{"", "selective"}}, .read_only = true},
      {.key = "--recompute-method",
       .here = "recompute_layers",
       .print = [=](const Settings& s) { return written_if(s.recompute == Recompute::full, recompute_method(s)); }},
      {.key = "--recompute-num-layers",
       .here = "recompute_layers",
       .print = [=](const Settings& s) { return written_if(s.recompute == Recompute::full, recompute_number(s)); }},
      {.key = "--attention-backend",
       .here = "attention",
       .values = {{"fused", "fused"}, {"unfused", "unfused"}},
       .note = "of Transformer Engine; fused is cuDNN's kernel, as it was measured"},
      {.key = "--use-flash-attn", .here = "attention", .values = {{"", "fused"}}, .read_only = true},
      {.key = "--cuda-graph-impl",
       .here = "cuda_graph",
       .values = {{"none", "false"}, {"full_iteration", "true"}},
       .beside = [](const Settings& s) -> NameValues {
         if (!s.cuda_graph) return {};
         return {{"--no-check-for-nan-in-loss-and-grad", ""}};
       },
       .note =
           [](const Settings& s) {
             return s.cuda_graph ? "measured with the whole step in one graph; Megatron's graph excludes the optimizer"
                                 : "";
           }},
      {.key = "--num-workers",
       .here = "loader_workers",
       .only_if = [](const Settings& s) { return !s.data_file.empty(); },
       .note = "each prefetches 2 batches"},
      known_row("--data-path", "data_file, the .bin of it"),
  };
}

// ---- DeepSpeed

std::string only_with_zero(const Settings& s) {
  return s.sharding == Sharding::none ? "has an effect only with ZeRO stage 1 or higher; measured without ZeRO" : "";
}

// Names the call that runs GEMMs in 8-bit floats, for which there is no key.
std::string with_transformer_engine(const Settings& s) {
  return fmt::format("transformer_engine.pytorch.fp8_autocast with {}() around its Linear layers",
                     s.precision == Precision::mxfp8 ? "MXFP8BlockScaling" : "Float8CurrentScaling");
}

std::vector<FrameworkRow> deepspeed_rows() {
  return {
      // precision and batches
      {.key = "bf16.enabled",
       .here = "precision",
       .values = {{"true", "bf16"}, {"false", "fp32"}},
       .print = [](const Settings& s) -> std::optional<std::string> {
         if (s.precision == Precision::bf16 || has_fp8_products(s.precision)) return "true";
         return written_if(s.precision == Precision::fp32, "false");
       },
       .note = [](const Settings& s) { return has_fp8_products(s.precision) ? with_transformer_engine(s) : ""; },
       .unwritten =
           [](const Settings& s) {
             if (s.precision != Precision::tf32) return "";
             return "no key: torch.set_float32_matmul_precision(\"high\") in the training script";
           }},
      {.key = "fp16.enabled", .here = "precision", .values = {{"true", "fp16"}}},
      {.key = "train_batch_size", .here = "global_batch_size"},
      {.key = "train_micro_batch_size_per_gpu", .here = "micro_batch_size"},
      {.key = "gradient_accumulation_steps",
       .here = "gradient_accumulation",
       .only_if = [](const Settings& s) { return s.gradient_accumulation > 0; }},

      // the layout
      {.key = "tensor_parallel.autotp_size",
       .here = "layout.tensor_parallel",
       .parse = [](std::string_view theirs) { return std::string(theirs == "0" ? "1" : theirs); },
       .note = [](const Settings& s) -> std::string {
         const int stages = s.layout[program::Axis::pipeline];
         if (stages == 1) return "";
         return fmt::format("{} {} has no key: PipelineModule(num_stages={}) in the training script",
                            program::row_of(program::Axis::pipeline).key, stages, stages);
       }},
      {.key = "sequence_parallel_size",
       .here = "layout.context_parallel",
       .note = "with data_parallel_size, and DeepSpeed-Ulysses in the training script"},

      // exchange and sharding among replicas
      {.key = "zero_optimization.overlap_comm", .here = "overlap_grad_reduce", .note = only_with_zero},
      {.key = "zero_optimization.reduce_bucket_size",
       .here = "bucket_size",
       .print = elements_of_bucket,
       .parse = bucket_of_elements,
       .note =
           [](const Settings& s) {
             const std::string more = only_with_zero(s);
             return fmt::format("in elements: {} of fp32 gradients{}{}", print_bytes_exact(s.bucket_size_bytes),
                                more.empty() ? "" : "; ", more);
           }},
      {.key = "zero_optimization.stage",
       .here = "sharding",
       .values = {{"0", "none"}, {"1", "optimizer"}, {"2", "gradients"}, {"3", "parameters"}}},
      known_row("zero_optimization.mics_shard_size", "sharding_group: node"),
      known_row("zero_optimization.zero_hpz_partition_size", "sharding_group: node"),
      known_row("zero_optimization.stage3_prefetch_bucket_size", "prefetch_layers"),
      {.key = "communication_data_type",
       .here = "grad_reduce_precision",
       .values = {{"\"fp32\"", "fp32"}, {"\"bf16\"", "bf16"}}},
  };
}

// ---- torchtitan

bool has_stages(const Settings& s) {
  return s.layout[program::Axis::pipeline] > 1;
}

// The keys of its TOML files up to release 0.2.2, which are also those of its command line after a --. Notes name those
// that replaced them in August 2026.
std::vector<FrameworkRow> torchtitan_rows() {
  return {
      {.key = "training.seq_len", .here = "model.sequence"},
      {.key = "training.mixed_precision_param",
       .here = "precision",
       .values = {{"bfloat16", "bf16"}, {"float32", "fp32"}},
       .unwritten =
           [](const Settings& s) {
             if (!has_fp8_products(s.precision)) return "";
             return s.precision == Precision::fp8
                        ? "bfloat16, and float8 with the recipe tensorwise in model.converters"
                        : "bfloat16, and mx with the recipe mxfp8_cublas in model.converters";
           }},
      {.key = "training.mixed_precision_reduce",
       .here = "grad_reduce_precision",
       .values = {{"float32", "fp32"}, {"bfloat16", "bf16"}},
       .only_if = [](const Settings& s) { return s.grad_reduce_type == program::DType::f32; },
       .unwritten = "torchtitan reduces in float32 alone"},
      {.key = "training.local_batch_size",
       .here = "micro_batch_size",
       .only_if = [](const Settings& s) { return !has_stages(s); },
       .note = "of a data-parallel rank; after torchtitan 0.2.2 in tokens: "
               "training.num_tokens_per_microbatch_per_dp_rank"},
      {.key = "parallelism.pipeline_parallel_microbatch_size",
       .here = "micro_batch_size",
       .print = [](const Settings& s) { return written_if(has_stages(s), std::to_string(s.micro_batch_size)); },
       .note =
           "give training.local_batch_size as well: global_batch_size / data-parallel ranks, which the pipeline "
           "cuts into micro-batches; after torchtitan 0.2.2 in tokens: training.num_tokens_per_microbatch_per_dp_rank"},
      {.key = "training.global_batch_size",
       .here = "global_batch_size",
       .note = "after torchtitan 0.2.2 in tokens: training.num_tokens_per_train_step"},
      {.key = "parallelism.tensor_parallel_degree", .here = "layout.tensor_parallel"},
      {.key = "parallelism.pipeline_parallel_degree", .here = "layout.pipeline_parallel"},
      {.key = "parallelism.context_parallel_degree", .here = "layout.context_parallel"},
      {.key = "parallelism.pipeline_parallel_schedule",
       .here = "pipeline_schedule",
       .values = {{"1F1B", "1f1b"}, {"GPipe", "gpipe"}, {"Interleaved1F1B", "interleaved"}}},
      {.key = "activation_checkpoint.mode",
       .here = "recompute",
       .values = {{"none", "none"}, {"full", "full"}},
       .note = "its selective keeps every second layer, or products, which recompute: selective does not"},
      switch_row("compile.enable", "fusion", "true", "which operations torch.compile fuses is not what was measured"),
      {.key = "parallelism.fsdp_reshard_after_forward",
       .here = "sharding",
       .values = {{"never", "gradients"}, {"always", "parameters"}},
       .beside = [](const Settings& s) -> NameValues {
         if (s.sharding != Sharding::none) return {};
         return {{"parallelism.data_parallel_shard_degree", "1"}};
       },
       .note =
           [](const Settings& s) {
             return s.sharding == Sharding::none
                        ? "give parallelism.data_parallel_replicate_degree as well: the data-parallel ranks"
                        : "with parallelism.data_parallel_shard_degree above 1";
           }},
  };
}

}  // namespace

std::span<const FrameworkRow> rows_of(Framework framework) {
  static const std::array tables{megatron_rows(), deepspeed_rows(), torchtitan_rows()};
  return tables.at(static_cast<std::size_t>(framework));
}

}  // namespace harness::config
