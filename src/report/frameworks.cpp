#include "report/frameworks.h"

#include <fmt/format.h>

namespace harness::report {
namespace {

constexpr std::int64_t gradient_bytes = 4;  // fp32: what bucket_size counts in

FrameworkWords no_word(std::string note) {
  return {{}, std::move(note), false};
}

std::string text(std::int64_t number) {
  return std::to_string(number);
}

}  // namespace

// Flags: megatron/training/arguments.py, and those made from the fields of TransformerConfig and ModelParallelConfig.
FrameworkWords megatron_words(const ProvenSetting& p) {
  const config::Settings& s = p.settings;
  if (p.variable == "precision") {
    if (s.precision == config::Precision::bf16) return {{{"--bf16", ""}}, "", true};
    if (s.precision == config::Precision::fp32) return no_word("fp32 is the default, without --bf16 and --fp16");
    return no_word("no flag: torch.set_float32_matmul_precision(\"high\") in the training script, without --bf16");
  }
  if (p.variable == "global_batch_size") return {{{"--global-batch-size", text(s.global_batch_size)}}, "", true};
  if (p.variable == "micro_batch_size") return {{{"--micro-batch-size", text(s.micro_batch_size)}}, "", true};
  if (p.variable == "layout") {
    return {{{"--tensor-model-parallel-size", text(s.layout[program::Axis::tensor])},
             {"--pipeline-model-parallel-size", text(s.layout[program::Axis::pipeline])}},
            "the remaining ranks are data-parallel",
            true};
  }
  if (p.variable == "overlap_grad_reduce") {
    if (s.overlap_grad_reduce) return {{{"--overlap-grad-reduce", ""}}, "", true};
    return no_word("omit --overlap-grad-reduce: gradients are then reduced after the backward pass");
  }
  if (p.variable == "bucket_size") {
    return {{{"--ddp-bucket-size", text(s.bucket_size_bytes / gradient_bytes)}},
            fmt::format("in parameters: {} of fp32 gradients; has an effect only with --overlap-grad-reduce", p.value),
            true};
  }
  if (p.variable == "attention") {
    return {{{"--attention-backend", s.attention == config::AttentionKind::fused ? "fused" : "unfused"}},
            "of Transformer Engine; fused is cuDNN's kernel, as it was measured",
            true};
  }
  if (p.variable == "cuda_graph") {
    return {{{"--cuda-graph-impl", s.cuda_graph ? "full_iteration" : "none"}},
            s.cuda_graph ? "measured with the whole step in one graph; Megatron's graph excludes the optimizer" : "",
            true};
  }
  if (p.variable == "ranks") return no_word("start it on " + p.value + " ranks (torchrun --nnodes, --nproc-per-node)");
  return no_word("");
}

// Keys: docs/_pages/config-json.md of DeepSpeed.
FrameworkWords deepspeed_words(const ProvenSetting& p) {
  const config::Settings& s = p.settings;
  if (p.variable == "precision") {
    if (s.precision == config::Precision::tf32) {
      return no_word("no key: torch.set_float32_matmul_precision(\"high\") in the training script");
    }
    return {{{"bf16.enabled", s.precision == config::Precision::bf16 ? "true" : "false"}}, "", true};
  }
  if (p.variable == "global_batch_size") return {{{"train_batch_size", text(s.global_batch_size)}}, "", true};
  if (p.variable == "micro_batch_size") {
    return {{{"train_micro_batch_size_per_gpu", text(s.micro_batch_size)}}, "", true};
  }
  if (p.variable == "layout") {
    FrameworkWords words{{{"tensor_parallel.autotp_size", text(s.layout[program::Axis::tensor])}}, "", true};
    if (s.layout[program::Axis::pipeline] > 1) {
      words.note = fmt::format("pipeline_parallel {} has no key: PipelineModule(num_stages={}) in the training script",
                               s.layout[program::Axis::pipeline], s.layout[program::Axis::pipeline]);
    }
    return words;
  }
  if (p.variable == "overlap_grad_reduce") {
    return {{{"zero_optimization.overlap_comm", s.overlap_grad_reduce ? "true" : "false"}},
            "has an effect only with ZeRO stage 1 or higher; measured without ZeRO",
            true};
  }
  if (p.variable == "bucket_size") {
    return {
        {{"zero_optimization.reduce_bucket_size", text(s.bucket_size_bytes / gradient_bytes)}},
        fmt::format(
            "in elements: {} of fp32 gradients; has an effect only with ZeRO stage 1 or higher; measured without ZeRO",
            p.value),
        true};
  }
  if (p.variable == "ranks") return no_word("start it on " + p.value + " ranks (deepspeed --num_nodes, --num_gpus)");
  return no_word("");
}

// torch.nn.parallel.DistributedDataParallel, torch.utils.data.DataLoader and torchrun.
FrameworkWords pytorch_words(const ProvenSetting& p) {
  const config::Settings& s = p.settings;
  if (p.variable == "precision") {
    if (s.precision == config::Precision::bf16) {
      return {{{"autocast.device_type", "\"cuda\""}, {"autocast.dtype", "torch.bfloat16"}},
              "bf16 was measured with fp32 master weights, as torch.autocast keeps them",
              true};
    }
    return {{{"matmul.precision", s.precision == config::Precision::tf32 ? "\"high\"" : "\"highest\""}},
            "torch.set_float32_matmul_precision(**matmul_options), without autocast",
            true};
  }
  if (p.variable == "micro_batch_size") {
    return {{{"loader.batch_size", text(s.micro_batch_size)}},
            "the global batch was unchanged: accumulate gradients under no_sync() up to it",
            true};
  }
  if (p.variable == "global_batch_size") {
    return no_word(
        fmt::format("no argument: batch_size x accumulated steps x data-parallel ranks = {}", s.global_batch_size));
  }
  if (p.variable == "layout") {
    return no_word(
        fmt::format("no argument: init_device_mesh with tensor {} and pipeline {}, and a plan that splits "
                    "the model (torch.distributed.tensor.parallel, torch.distributed.pipelining)",
                    s.layout[program::Axis::tensor], s.layout[program::Axis::pipeline]));
  }
  if (p.variable == "overlap_grad_reduce") {
    return no_word(s.overlap_grad_reduce ? "DistributedDataParallel always overlaps"
                                         : "DistributedDataParallel always overlaps; this cannot be turned off");
  }
  if (p.variable == "bucket_size") {
    // It is multiplied by 1024 * 1024 and cut to whole bytes, so a fraction is fine.
    return {{{"ddp.bucket_cap_mb", fmt::format("{:.9g}", static_cast<double>(s.bucket_size_bytes) / 1048576)}},
            fmt::format("in MiB: {} of gradients; bf16 parameters have gradients of half the size", p.value),
            true};
  }
  if (p.variable == "overlap_optimizer") {
    return no_word(s.overlap_optimizer ? "no argument: an optimizer for each parameter, stepped in a hook that "
                                         "torch.Tensor.register_post_accumulate_grad_hook adds"
                                       : "optimizer.step() after the backward pass");
  }
  if (p.variable == "attention") {
    return {{{"sdpa.backends", s.attention == config::AttentionKind::fused
                                   ? "[torch.nn.attention.SDPBackend.CUDNN_ATTENTION]"
                                   : "[torch.nn.attention.SDPBackend.MATH]"}},
            "with torch.nn.attention.sdpa_kernel(**sdpa_options):",
            true};
  }
  if (p.variable == "cuda_graph") {
    return no_word(s.cuda_graph
                       ? "no argument: torch.compile(mode=\"reduce-overhead\") or torch.cuda.make_graphed_callables"
                       : "do not use CUDA graphs");
  }
  if (p.variable == "threads") {
    return no_word(s.threads == 0 ? "leave OMP_NUM_THREADS to torchrun"
                                  : "OMP_NUM_THREADS=" + text(s.threads) + " in the environment of torchrun");
  }
  if (p.variable == "ranks") return no_word("start it on " + p.value + " ranks (torchrun --nnodes, --nproc-per-node)");
  return no_word("");
}

}  // namespace harness::report
