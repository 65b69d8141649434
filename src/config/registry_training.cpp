#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/choice.h"
#include "config/fields.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

// Buckets are what is reduced together, and what overlap_optimizer updates together.
std::string without_buckets(const Settings& s) {
  if (s.sharding == Sharding::parameters && !has_one_replica(s)) return "with sharding parameters, a bucket is a layer";
  return s.overlap_optimizer ? "" : without_data_parallel(s);
}

std::string not_computed_by(const Settings& s, BackendKind kind) {
  const BackendTraits& backend = traits_of(kind);
  if (s.precision == Precision::tf32 && !backend.has_tf32) {
    return fmt::format("backend {} has no tf32, which needs the tensor cores of a GPU; allowed on {}: fp32, bf16",
                       backend.name, backend.name);
  }
  if (s.precision == Precision::fp16 && !backend.has_fp16) {
    return fmt::format(
        "backend {} has no fp16, which needs loss scaling; bf16 runs at the same rate without it, and "
        "backend sim predicts fp16",
        backend.name);
  }
  return "";
}

// ---- Words of other frameworks (framework_words.h says where they are from).

constexpr const char* high_precision = "torch.set_float32_matmul_precision(\"high\") in the training script";

Wordings::Wording one_flag(const char* name, std::int64_t Settings::*number) {
  return [=](const Settings& s) { return FrameworkWords{{{name, std::to_string(s.*number)}}}; };
}

FrameworkWords precision_for_megatron(const Settings& s) {
  if (s.precision == Precision::bf16) return {{{"--bf16", ""}}};
  if (s.precision == Precision::fp16) return {{{"--fp16", ""}}};
  if (s.precision == Precision::fp32) return no_word("fp32 is the default, without --bf16 and --fp16");
  return no_word(fmt::format("no flag: {}, without --bf16", high_precision));
}
FrameworkWords precision_for_deepspeed(const Settings& s) {
  if (s.precision == Precision::tf32) return no_word(fmt::format("no key: {}", high_precision));
  if (s.precision == Precision::fp16) return {{{"fp16.enabled", "true"}}};
  return {{{"bf16.enabled", s.precision == Precision::bf16 ? "true" : "false"}}};
}
FrameworkWords precision_for_pytorch(const Settings& s) {
  if (s.precision == Precision::bf16) {
    return {{{"autocast.device_type", "\"cuda\""}, {"autocast.dtype", "torch.bfloat16"}},
            "bf16 was measured with fp32 master weights, as torch.autocast keeps them"};
  }
  if (s.precision == Precision::fp16) {
    return {{{"autocast.device_type", "\"cuda\""}, {"autocast.dtype", "torch.float16"}}, "with torch.amp.GradScaler"};
  }
  return {{{"matmul.precision", s.precision == Precision::tf32 ? "\"high\"" : "\"highest\""}},
          "torch.set_float32_matmul_precision(**matmul_options), without autocast"};
}

FrameworkWords accumulation_for_megatron(const Settings& s) {
  if (s.gradient_accumulation == 0) return no_word("--global-batch-size decides");
  return no_word(fmt::format("no flag: --global-batch-size is {} x --micro-batch-size x data-parallel ranks",
                             s.gradient_accumulation));
}
FrameworkWords accumulation_for_deepspeed(const Settings& s) {
  if (s.gradient_accumulation == 0) return no_word("train_batch_size decides");
  return {{{"gradient_accumulation_steps", std::to_string(s.gradient_accumulation)}}};
}
FrameworkWords accumulation_for_pytorch(const Settings& s) {
  if (s.gradient_accumulation == 0) return no_word("the batches between two calls of optimizer.step() decide");
  return no_word(
      fmt::format("no argument: {} backward passes before optimizer.step(), all but the last under no_sync()",
                  s.gradient_accumulation));
}

constexpr const char* ranks_or_launcher = "ranks (a variable), or as many as mpirun starts";

Wordings::Wording ranks_for(const char* launcher) {
  return [=](const Settings& s) {
    return no_word(fmt::format("start it on {} ranks ({})", s.ranks == 0 ? "all" : std::to_string(s.ranks), launcher));
  };
}

std::string only_with_zero(const Settings& s) {
  return s.sharding == Sharding::none ? "has an effect only with ZeRO stage 1 or higher; measured without ZeRO" : "";
}

FrameworkWords overlap_for_megatron(const Settings& s) {
  if (s.overlap_grad_reduce) return {{{"--overlap-grad-reduce", ""}}};
  return no_word("omit --overlap-grad-reduce: gradients are then reduced after the backward pass");
}
FrameworkWords overlap_for_deepspeed(const Settings& s) {
  return {{{"zero_optimization.overlap_comm", s.overlap_grad_reduce ? "true" : "false"}}, only_with_zero(s)};
}
FrameworkWords overlap_for_pytorch(const Settings& s) {
  return no_word(s.overlap_grad_reduce ? "DistributedDataParallel always overlaps"
                                       : "DistributedDataParallel always overlaps; this cannot be turned off");
}

std::string gradients_of_bucket(const Settings& s) {
  return std::to_string(s.bucket_size_bytes / program::size_of(program::DType::f32));
}
FrameworkWords bucket_for_megatron(const Settings& s) {
  return {{{"--ddp-bucket-size", gradients_of_bucket(s)}},
          fmt::format("in parameters: {} of fp32 gradients; has an effect only with --overlap-grad-reduce",
                      print_bytes_exact(s.bucket_size_bytes))};
}
FrameworkWords bucket_for_deepspeed(const Settings& s) {
  std::string note = fmt::format("in elements: {} of fp32 gradients", print_bytes_exact(s.bucket_size_bytes));
  if (const std::string more = only_with_zero(s); !more.empty()) note += "; " + more;
  return {{{"zero_optimization.reduce_bucket_size", gradients_of_bucket(s)}}, note};
}
FrameworkWords bucket_for_pytorch(const Settings& s) {
  // It is multiplied by 1024 * 1024 and cut to whole bytes, so a fraction is fine.
  return {{{"ddp.bucket_cap_mb", fmt::format("{:.9g}", static_cast<double>(s.bucket_size_bytes) / 1048576)}},
          fmt::format("in MiB: {} of gradients; bf16 parameters have gradients of half the size",
                      print_bytes_exact(s.bucket_size_bytes))};
}

FrameworkWords fusion_for_megatron(const Settings& s) {
  if (s.fusion) return no_word("fusions are the default: leave --no-bias-gelu-fusion and the like out");
  return {{{"--no-bias-gelu-fusion", ""}, {"--no-bias-dropout-fusion", ""}, {"--no-gradient-accumulation-fusion", ""}},
          "nearest: which operations Megatron-LM fuses is not what was measured"};
}
FrameworkWords fusion_for_pytorch(const Settings& s) {
  return no_word(s.fusion ? "no argument: torch.compile(model) fuses what stands beside a product"
                          : "run the model eagerly, without torch.compile");
}

constexpr int max_accumulation = 1 << 16;
constexpr std::int64_t max_batch = std::int64_t{1} << 31;
constexpr std::int64_t min_bucket_bytes = 1024;

}  // namespace

// docs/adding.md walks through one.
std::vector<Variable> training_variables() {
  std::vector<Variable> rows;
  rows.push_back(one_of(
      &Settings::precision, precision_choices,
      {.name = "precision",
       .help = "number format of matrix products; bf16 keeps fp32 master weights, tf32 is fp32 that a GPU's tensor "
               "cores multiply with 10-bit mantissas, fp16 is only predicted",
       .backends = everywhere,
       .acts_on = {Part::matrix_products, Part::attention, Part::other_compute, Part::tensor, Part::pipeline},
       .fastest = "bf16",
       .moves_peak = true,
       .mathematics = Mathematics::rounded,
       .anew = Anew::program,
       .refused_by = not_computed_by,
       .lacking = [](const Settings& s, const Hardware& h) -> std::string {
         if (s.precision == Precision::fp32) return "";
         const int needed = s.precision == Precision::fp16 ? volta : ampere;
         return below_capability(h, needed, fmt::format("precision {} needs tensor cores of", name_of(s.precision)));
       },
       .words = {.megatron = precision_for_megatron,
                 .deepspeed = precision_for_deepspeed,
                 .pytorch = precision_for_pytorch},
       .synonyms = {{"dtype"},
                    {"params_dtype"},
                    {"mixed_precision"},
                    {"bf16", "precision: bf16"},
                    {"fp16", "precision: fp16"}}}));
  rows.push_back({.name = "global_batch_size",
                  .unit = "sequences",
                  .allowed = "a whole number",
                  .examples = {"32", "64"},
                  .help = "sequences per step, over all ranks",
                  .backends = everywhere,
                  .parse = [](Settings& s, auto text) { s.global_batch_size = parse_within(text, 1, max_batch); },
                  .print = [](const Settings& s) { return fmt::format("{}", s.global_batch_size); },
                  .acts_on = {Part::data, Part::embedding, Part::world, Part::bubble},
                  .mathematics = Mathematics::another,
                  .yields_to = "gradient_accumulation",
                  .without_effect =
                      [](const Settings& s) {
                        return s.gradient_accumulation == 0 ? "" : "gradient_accumulation says how large the batch is";
                      },
                  .workloads = only_gpt,
                  .words = {.megatron = one_flag("--global-batch-size", &Settings::global_batch_size),
                            .deepspeed = one_flag("train_batch_size", &Settings::global_batch_size),
                            .pytorch =
                                [](const Settings& s) {
                                  return no_word(fmt::format(
                                      "no argument: batch_size x accumulated steps x data-parallel ranks = {}",
                                      s.global_batch_size));
                                }},
                  .synonyms = {{"train_batch_size"}, {"gbs"}}});
  rows.push_back({.name = "micro_batch_size",
                  .unit = "sequences",
                  .allowed = "a whole number",
                  .examples = {"2", "4"},
                  .help = "sequences per forward pass of one rank; gradients accumulate up to the global batch",
                  .backends = everywhere,
                  .parse = [](Settings& s, auto text) { s.micro_batch_size = parse_within(text, 1, max_batch); },
                  .print = [](const Settings& s) { return fmt::format("{}", s.micro_batch_size); },
                  .acts_on = {Part::matrix_products, Part::attention, Part::other_compute, Part::tensor, Part::pipeline,
                              Part::bubble, Part::idle},
                  .workloads = only_gpt,
                  .words = {.megatron = one_flag("--micro-batch-size", &Settings::micro_batch_size),
                            .deepspeed = one_flag("train_micro_batch_size_per_gpu", &Settings::micro_batch_size),
                            .pytorch =
                                [](const Settings& s) {
                                  FrameworkWords words = one_flag("loader.batch_size", &Settings::micro_batch_size)(s);
                                  words.note = "accumulate gradients under no_sync() up to the global batch";
                                  return words;
                                }},
                  .synonyms = {{"local_batch_size"},
                               {"train_micro_batch_size_per_gpu"},
                               {"per_device_train_batch_size"},
                               {"mbs"}}});
  rows.push_back(
      whole_or("auto", &Settings::gradient_accumulation, 1, max_accumulation,
               {.name = "gradient_accumulation",
                .unit = "micro-batches",
                .help = "micro-batches of a replica in a step: the global batch is as many times micro_batch_size "
                        "and data_parallel; auto takes global_batch_size instead",
                .backends = everywhere,
                .acts_on = {Part::data, Part::embedding, Part::world, Part::bubble},
                .mathematics = Mathematics::another,
                .workloads = only_gpt,
                .words = {.megatron = accumulation_for_megatron,
                          .deepspeed = accumulation_for_deepspeed,
                          .pytorch = accumulation_for_pytorch},
                .synonyms = {{"gradient_accumulation_steps"}, {"accumulate_grad_batches"}}}));
  for (Variable& row : layout_variables()) rows.push_back(std::move(row));
  for (Variable& row : pipeline_variables()) rows.push_back(std::move(row));
  rows.push_back(whole_or(
      "all", &Settings::ranks, 1, max_ranks,
      {.name = "ranks",
       .unit = "ranks",
       .help = "use the first N ranks and leave the others idle: a scaling curve from one allocation",
       .backends = everywhere,
       .purpose = Purpose::scale,
       .words = {.megatron = ranks_for("torchrun --nnodes, --nproc-per-node"),
                 .deepspeed = ranks_for("deepspeed --num_nodes, --num_gpus"),
                 .pytorch = ranks_for("torchrun --nnodes, --nproc-per-node")},
       .synonyms = {
           {"world_size", ranks_or_launcher}, {"nranks", ranks_or_launcher}, {"num_gpus", ranks_or_launcher}}}));
  rows.push_back(true_or_false(
      &Settings::overlap_grad_reduce,
      {.name = "overlap_grad_reduce",
       .help = "reduce gradients bucket by bucket behind the backward pass, or all of them after it",
       .backends = everywhere,
       .acts_on = {Part::data},
       .fastest = "true",
       .without_effect = without_data_parallel,
       .workloads = only_gpt,
       .words = {
           .megatron = overlap_for_megatron, .deepspeed = overlap_for_deepspeed, .pytorch = overlap_for_pytorch}}));
  rows.push_back(
      {.name = "bucket_size",
       .unit = "B",
       .allowed = "a size such as 25 MiB",
       .examples = {"50 MiB", "100 MiB"},
       .help = "bytes of fp32 gradients that are reduced, or updated, together",
       .backends = everywhere,
       .parse =
           [](Settings& s, auto text) {
             const std::int64_t bytes = parse_bytes(text);
             if (bytes < min_bucket_bytes) fail("found {}; allowed: 1 KiB or more", quote(text));
             s.bucket_size_bytes = bytes;
           },
       .print = [](const Settings& s) { return print_bytes_exact(s.bucket_size_bytes); },
       .acts_on = {Part::data},
       .without_effect = without_buckets,
       .workloads = only_gpt,
       .words = {.megatron = bucket_for_megatron, .deepspeed = bucket_for_deepspeed, .pytorch = bucket_for_pytorch},
       .synonyms = {{"ddp_bucket_size"}, {"bucket_cap_mb"}, {"reduce_bucket_size"}}});
  rows.push_back(true_or_false(
      &Settings::overlap_optimizer,
      {.name = "overlap_optimizer",
       .help = "update the weights bucket by bucket beside the backward pass, or all of them after it",
       .backends = everywhere,
       .acts_on = {Part::other_compute},
       .fastest = "true",
       .workloads = only_gpt,
       .words = {.pytorch = [](const Settings& s) {
         return no_word(s.overlap_optimizer ? "no argument: an optimizer for each parameter, stepped in a hook that "
                                              "torch.Tensor.register_post_accumulate_grad_hook adds"
                                            : "optimizer.step() after the backward pass");
       }}}));
  rows.push_back({.name = "memory_cap",
                  .allowed = "a share above 0 and up to 1, such as 90 %; in a prediction up to 10",
                  .examples = {"90 %"},
                  .help = "the share of the device's memory that a case may need; one that needs more is not run",
                  .backends = everywhere,
                  .parse =
                      [](Settings& s, auto text) {
                        const double share = parse_share(text);
                        constexpr double most = 10;
                        if (!(share > 0) || share > most)
                          fail("found {}; allowed: above 0 % and at most 100 %, in a prediction 1000 %", quote(text));
                        s.memory_cap = share;
                      },
                  .print = [](const Settings& s) { return print_share_exact(s.memory_cap); },
                  .anew = Anew::program,
                  .refused_by =
                      [](const Settings& s, BackendKind backend) {
                        if (s.memory_cap <= 1 || traits_of(backend).predicts()) return std::string();
                        return fmt::format(
                            "{:.6g} % is more than the device has; only a prediction (backend: sim) may "
                            "assume more memory",
                            100 * s.memory_cap);
                      }});
  rows.push_back(true_or_false(
      &Settings::fusion,
      {.name = "fusion",
       .help = "run bias, GELU, residual and bias gradients inside the kernels beside them and cross-entropy "
               "as one, as far as the backend does, or each operation on its own; attention is a variable "
               "of its own",
       .backends = everywhere,
       .acts_on = {Part::matrix_products, Part::other_compute, Part::idle},
       .fastest = "true",
       .anew = Anew::program,
       .workloads = only_gpt,
       .words = {.megatron = fusion_for_megatron, .pytorch = fusion_for_pytorch},
       .synonyms = {{"bias_gelu_fusion"}, {"bias_dropout_fusion"}, {"torch_compile"}, {"compile"}}}));
  return rows;
}

}  // namespace harness::config
