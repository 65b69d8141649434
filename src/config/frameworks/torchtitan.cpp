#include "config/frameworks/framework.h"

namespace harness::config::torchtitan {
namespace {

bool has_stages(const Settings& s) {
  return s.layout[program::Axis::pipeline] > 1;
}

}  // namespace

// The keys of its TOML files, and with -- before them of its command line. Since February 2026 configurations are
// Python; the command line keeps these names.
std::vector<FrameworkRow> rows() {
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
       .values = {{"float32", "fp32"}, {"bfloat16", "bf16"}}},
      {.key = "training.local_batch_size",
       .here = "micro_batch_size",
       .print = [](const Settings& s) { return written_if(!has_stages(s), std::to_string(s.micro_batch_size)); },
       .parse = same_number,
       .note = "of a data-parallel rank"},
      {.key = "parallelism.pipeline_parallel_microbatch_size",
       .here = "micro_batch_size",
       .print = [](const Settings& s) { return written_if(has_stages(s), std::to_string(s.micro_batch_size)); },
       .note = "give training.local_batch_size as well: global_batch_size / data-parallel ranks, which the pipeline "
               "cuts into micro-batches"},
      {.key = "training.global_batch_size", .here = "global_batch_size"},
      axis_row("parallelism.tensor_parallel_degree", program::Axis::tensor),
      axis_row("parallelism.pipeline_parallel_degree", program::Axis::pipeline),
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
       .note = "with parallelism.data_parallel_shard_degree above 1"},
  };
}

}  // namespace harness::config::torchtitan
