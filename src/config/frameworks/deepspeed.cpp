#include <fmt/format.h>

#include "base/units.h"
#include "config/frameworks/framework.h"

namespace harness::config::deepspeed {
namespace {

std::string only_with_zero(const Settings& s) {
  return s.sharding == Sharding::none ? "has an effect only with ZeRO stage 1 or higher; measured without ZeRO" : "";
}

}  // namespace

std::vector<FrameworkRow> rows() {
  return {
      // precision and batches
      {.key = "bf16.enabled",
       .here = "precision",
       .values = {{"true", "bf16"}, {"false", "fp32"}},
       .unwritten =
           [](const Settings& s) {
             return has_fp8_products(s.precision)
                        ? "no key: " + with_transformer_engine(s)
                        : "no key: torch.set_float32_matmul_precision(\"high\") in the training script";
           }},
      {.key = "fp16.enabled", .here = "precision", .values = {{"true", "fp16"}}},
      {.key = "train_batch_size", .here = "global_batch_size"},
      {.key = "train_micro_batch_size_per_gpu", .here = "micro_batch_size"},
      {.key = "gradient_accumulation_steps",
       .here = "gradient_accumulation",
       .print =
           [](const Settings& s) {
             return written_if(s.gradient_accumulation > 0, std::to_string(s.gradient_accumulation));
           },
       .parse = same_number},

      // the layout
      {.key = "tensor_parallel.autotp_size",
       .here = "layout.tensor_parallel",
       .print = [](const Settings& s) -> std::optional<std::string> {
         return std::to_string(s.layout[program::Axis::tensor]);
       },
       .parse = [](std::string_view theirs) { return std::string(theirs == "0" ? "1" : theirs); },
       .note = [](const Settings& s) -> std::string {
         const int stages = s.layout[program::Axis::pipeline];
         if (stages == 1) return "";
         return fmt::format("{} {} has no key: PipelineModule(num_stages={}) in the training script",
                            program::row_of(program::Axis::pipeline).key, stages, stages);
       }},

      // what replicas exchange and divide
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

}  // namespace harness::config::deepspeed
