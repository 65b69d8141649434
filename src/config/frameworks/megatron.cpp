#include <fmt/format.h>

#include "base/units.h"
#include "config/frameworks/framework.h"

namespace harness::config::megatron {
namespace {

std::optional<std::string> virtual_stages(const Settings& s) {
  return written_if(s.pipeline_schedule == PipelineSchedule::interleaved, std::to_string(s.chunks_of_stage()));
}

}  // namespace

std::vector<FrameworkRow> rows() {
  constexpr const char* remaining = "the remaining ranks are data-parallel";
  const auto all_layers = [](const Settings& s) { return s.recompute_layers == 0; };
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
       .parse = same_number},
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
            if (s.precision == Precision::fp32) return "";
            return "no flag: torch.set_float32_matmul_precision(\"high\") in the training script, without --bf16";
          }),
      {.key = "--global-batch-size", .here = "global_batch_size"},
      {.key = "--micro-batch-size", .here = "micro_batch_size"},
      switch_row("--reset-attention-mask", "batching", "packed"),
      switch_row("--reset-position-ids", "batching", "packed"),
      {.here = "sequences", .unwritten = "no flag: the documents of --data-path have the lengths that they have"},

      // the layout
      axis_row("--tensor-model-parallel-size", program::Axis::tensor, remaining),
      axis_row("--pipeline-model-parallel-size", program::Axis::pipeline, remaining),
      switch_row("--use-tp-pp-dp-mapping", "rank_order", "tp-pp-dp"),
      {.key = "--num-virtual-stages-per-pipeline-rank",
       .here = "virtual_pipeline",
       .print = [](const Settings& s) { return s.virtual_pipeline == 0 ? std::nullopt : virtual_stages(s); },
       .parse = same_number,
       .note = "since Megatron core 0.11"},
      {.key = "--num-virtual-stages-per-pipeline-rank",
       .here = "pipeline_schedule",
       .print = virtual_stages,
       .parse = [](std::string_view) { return std::string("interleaved"); },
       .note = "since Megatron core 0.11"},
      known_row("--num-layers-per-virtual-pipeline-stage", "virtual_pipeline, in chunks of a stage"),
      switch_row("--sequence-parallel", "sequence_parallel", "true"),

      // what replicas exchange and divide
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
       .print = [](const Settings& s) { return written_if(s.sharding > Sharding::optimizer); }},
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
      switch_row("--no-bias-dropout-fusion", "fusion", "false"),
      switch_row("--no-gradient-accumulation-fusion", "fusion", "false"),
      {.key = "--recompute-granularity",
       .here = "recompute",
       .values = {{"selective", "selective"}, {"full", "full"}},
       .note =
           [](const Settings& s) {
             const bool nothing = s.recompute == Recompute::selective && s.attention == AttentionKind::fused;
             return nothing ? "Megatron-LM also runs fused attention again, which frees nothing" : "";
           }},
      {.key = "--recompute-activations", .here = "recompute", .values = {{"", "selective"}}, .read_only = true},
      {.key = "--recompute-method",
       .here = "recompute_layers",
       .print =
           [=](const Settings& s) {
             return written_if(s.recompute == Recompute::full, all_layers(s) ? "uniform" : "block");
           }},
      {.key = "--recompute-num-layers",
       .here = "recompute_layers",
       .print =
           [=](const Settings& s) {
             return written_if(s.recompute == Recompute::full, std::to_string(all_layers(s) ? 1 : s.recompute_layers));
           }},
      {.key = "--attention-backend",
       .here = "attention",
       .values = {{"fused", "fused"}, {"unfused", "unfused"}},
       .note = "of Transformer Engine; fused is cuDNN's kernel, as it was measured"},
      {.key = "--use-flash-attn", .here = "attention", .values = {{"", "fused"}}, .read_only = true},
      {.key = "--cuda-graph-impl",
       .here = "cuda_graph",
       .values = {{"none", "false"}, {"full_iteration", "true"}},
       .note =
           [](const Settings& s) {
             return s.cuda_graph ? "measured with the whole step in one graph; Megatron's graph excludes the optimizer"
                                 : "";
           }},
      {.key = "--num-workers",
       .here = "loader_workers",
       .print = [](const Settings& s) { return written_if(!s.data_file.empty(), std::to_string(s.loader_workers)); },
       .parse = same_number,
       .note = "each prefetches 2 batches"},
      known_row("--data-path", "data_file, the .bin of it"),
  };
}

}  // namespace harness::config::megatron
