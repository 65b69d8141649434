#include <fmt/format.h>

#include "base/units.h"
#include "config/frameworks/framework.h"

namespace harness::config::pytorch {
namespace {

using Text = std::optional<std::string>;

bool autocasts(const Settings& s) {
  return s.precision == Precision::bf16 || s.precision == Precision::fp16;
}

// Names of schedules: torch/distributed/pipelining/schedules.py.
std::string schedule_note(const Settings& s) {
  switch (s.pipeline_schedule) {
    case PipelineSchedule::one_forward_one_backward:
      return "no argument: torch.distributed.pipelining.Schedule1F1B";
    case PipelineSchedule::gpipe:
      return "no argument: torch.distributed.pipelining.ScheduleGPipe";
    case PipelineSchedule::interleaved:
      return fmt::format(
          "no argument: torch.distributed.pipelining.ScheduleInterleaved1F1B with {} stages on each rank",
          s.chunks_of_stage());
  }
  return "";
}

std::string sharding_note(const Settings& s) {
  if (s.sharding == Sharding::none) return "DistributedDataParallel divides nothing";
  if (s.sharding > Sharding::optimizer) {
    return fmt::format(
        "no argument: torch.distributed.fsdp.fully_shard on each layer and on the model, reshard_after_forward={}",
        s.sharding == Sharding::parameters ? "True" : "False");
  }
  return "no argument: torch.distributed.optim.ZeroRedundancyOptimizer around AdamW, which all-reduces gradients where "
         "this was measured with a reduce-scatter";
}

}  // namespace

std::vector<FrameworkRow> rows() {
  return {
      // precision and batches
      {.key = "autocast.device_type",
       .here = "precision",
       .print = [](const Settings& s) { return written_if(autocasts(s), "\"cuda\""); },
       .note =
           [](const Settings& s) {
             return s.precision == Precision::bf16
                        ? "bf16 was measured with fp32 master weights, as torch.autocast keeps them"
                        : "with torch.amp.GradScaler";
           },
       .unwritten =
           [](const Settings& s) {
             return has_fp8_products(s.precision) ? "no argument: " + with_transformer_engine(s) : "";
           }},
      {.key = "autocast.dtype", .here = "precision", .values = {{"torch.bfloat16", "bf16"}, {"torch.float16", "fp16"}}},
      {.key = "matmul.precision",
       .here = "precision",
       .values = {{"\"high\"", "tf32"}, {"\"highest\"", "fp32"}},
       .note = "torch.set_float32_matmul_precision(**matmul_options), without autocast"},
      {.here = "global_batch_size",
       .unwritten =
           [](const Settings& s) {
             return fmt::format("no argument: batch_size x accumulated steps x data-parallel ranks = {}",
                                s.global_batch_size);
           }},
      {.key = "loader.batch_size",
       .here = "micro_batch_size",
       .note = "accumulate gradients under no_sync() up to the global batch"},
      {.key = "loader.num_workers",
       .here = "loader_workers",
       .print = [](const Settings& s) { return written_if(!s.data_file.empty(), std::to_string(s.loader_workers)); },
       .parse = same_number},
      {.here = "gradient_accumulation",
       .unwritten =
           [](const Settings& s) {
             if (s.gradient_accumulation == 0)
               return std::string("the batches between two calls of optimizer.step() decide");
             return fmt::format(
                 "no argument: {} backward passes before optimizer.step(), all but the last under no_sync()",
                 s.gradient_accumulation);
           }},
      {.here = "ranks", .unwritten = started_by("torchrun --nnodes, --nproc-per-node")},

      // the layout
      {.here = "layout",
       .unwritten =
           [](const Settings& s) {
             return fmt::format(
                 "no argument: init_device_mesh with tensor {} and pipeline {}, and a plan that splits the model "
                 "(torch.distributed.tensor.parallel, torch.distributed.pipelining)",
                 s.layout[program::Axis::tensor], s.layout[program::Axis::pipeline]);
           }},
      {.here = "rank_order",
       .unwritten =
           [](const Settings& s) {
             return fmt::format(
                 "no argument: the order of mesh_dim_names of init_device_mesh, slowest first; {} has "
                 "the fastest first",
                 printed("rank_order", s));
           }},
      {.here = "pipeline_schedule", .unwritten = schedule_note},
      {.here = "virtual_pipeline",
       .unwritten =
           [](const Settings& s) {
             return s.virtual_pipeline == 0 ? std::string("pipeline_schedule decides") : schedule_note(s);
           }},
      {.here = "sequence_parallel",
       .unwritten = {&Settings::sequence_parallel,
                     "no argument: torch.distributed.tensor.parallel.SequenceParallel for the norms, in the plan that "
                     "splits the model",
                     "no SequenceParallel in the plan that splits the model"}},

      // what replicas exchange and divide
      {.here = "overlap_grad_reduce",
       .unwritten = {&Settings::overlap_grad_reduce, "DistributedDataParallel always overlaps",
                     "DistributedDataParallel always overlaps; this cannot be turned off"}},
      // It is multiplied by 1024 * 1024 and cut to whole bytes, so a fraction is fine.
      {.key = "ddp.bucket_cap_mb",
       .here = "bucket_size",
       .print = [](const Settings& s) -> Text {
         return fmt::format("{:.9g}", static_cast<double>(s.bucket_size_bytes) / 1048576);
       },
       .parse =
           [](std::string_view theirs) {
             return print_bytes_exact(static_cast<std::int64_t>(parse_real(theirs) * 1048576));
           },
       .note =
           [](const Settings& s) {
             return fmt::format("in MiB: {} of gradients; bf16 parameters have gradients of half the size",
                                print_bytes_exact(s.bucket_size_bytes));
           }},
      {.here = "sharding", .unwritten = sharding_note},
      {.here = "sharding_group",
       .unwritten = {divides_among_all, "a mesh of one dimension is the default of fully_shard",
                     "no argument: fully_shard with a mesh of two dimensions, the nodes and the data-parallel ranks of "
                     "a node (FullyShardedDataParallel: ShardingStrategy.HYBRID_SHARD)"}},
      {.here = "prefetch_layers",
       .unwritten =
           [](const Settings& s) {
             if (s.sharding != Sharding::parameters)
               return std::string("only where fully_shard frees weights after the forward pass");
             return fmt::format(
                 "no argument: set_modules_to_forward_prefetch and set_modules_to_backward_prefetch "
                 "with the next {} layers",
                 s.prefetch_layers);
           }},
      {.here = "grad_reduce_precision",
       .unwritten =
           [](const Settings& s) {
             return s.grad_reduce_type == program::DType::f32
                        ? "register no communication hook"
                        : "no argument: DistributedDataParallel.register_comm_hook with "
                          "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook";
           }},
      {.here = "overlap_optimizer",
       .unwritten = {&Settings::overlap_optimizer,
                     "no argument: an optimizer for each parameter, stepped in a hook that "
                     "torch.Tensor.register_post_accumulate_grad_hook adds",
                     "optimizer.step() after the backward pass"}},

      // the computation, and how it runs
      {.here = "fusion",
       .unwritten = {&Settings::fusion, "no argument: torch.compile(model) fuses what stands beside a product",
                     "run the model eagerly, without torch.compile"}},
      {.here = "recompute",
       .unwritten =
           [](const Settings& s) {
             if (s.recompute == Recompute::none) return std::string("do not call torch.utils.checkpoint.checkpoint");
             return fmt::format("no argument: torch.utils.checkpoint.checkpoint around each {} in the training script",
                                recomputed_module(s));
           }},
      {.here = "threads",
       .unwritten =
           [](const Settings& s) {
             return s.threads == 0 ? std::string("leave OMP_NUM_THREADS to torchrun")
                                   : fmt::format("OMP_NUM_THREADS={} in the environment of torchrun", s.threads);
           }},
      {.here = "host_binding", .unwritten = bound_by_launcher},
      {.key = "sdpa.backends",
       .here = "attention",
       .values = {{"[torch.nn.attention.SDPBackend.CUDNN_ATTENTION]", "fused"},
                  {"[torch.nn.attention.SDPBackend.MATH]", "unfused"}},
       .note = "with torch.nn.attention.sdpa_kernel(**sdpa_options):"},
      {.here = "cuda_graph",
       .unwritten = {&Settings::cuda_graph,
                     "no argument: torch.compile(mode=\"reduce-overhead\") or torch.cuda.make_graphed_callables",
                     "do not use CUDA graphs"}},
  };
}

}  // namespace harness::config::pytorch
