// Rows for a step: what it computes, overlaps and keeps, and how a backend runs it.
#include "base/units.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

constexpr std::array<Choice<Recompute>, 3> recompute_choices{
    {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}}};
constexpr std::array<Choice<AllReduceAlgorithm>, 2> allreduce_choices{
    {{"ring", AllReduceAlgorithm::ring}, {"halving_doubling", AllReduceAlgorithm::halving_doubling}}};
constexpr std::array<Choice<AttentionKind>, 2> attention_choices{
    {{"fused", AttentionKind::fused}, {"unfused", AttentionKind::unfused}}};

constexpr int max_accumulation = 1 << 16, max_layers = 1 << 16, max_threads = 4096, max_engine = 255;
constexpr std::int64_t max_batch = std::int64_t{1} << 31;
constexpr std::int64_t min_bucket_bytes = 1024;

// A bucket is the unit of gradient reduction and of overlap_optimizer's updates.
std::string without_buckets(const Settings& s) {
  if (s.sharding == Sharding::parameters && !has_one_replica(s)) return "with sharding parameters, a bucket is a layer";
  return s.overlap_optimizer ? "" : without_data_parallel(s);
}

std::string without_scores(const Settings& s) {
  const bool nothing = s.recompute == Recompute::selective && s.attention == AttentionKind::fused;
  return nothing ? "selective frees nothing: fused attention stores no scores" : "";
}

const auto shared_rows =
    only_along(program::Axis::tensor, "tensor_parallel is 1, so no rank shares its rows with another");

std::string overlap_conflict(const Settings& s) {
  if (!s.tp_overlap || s.layout[program::Axis::tensor] == 1 || s.sequence_parallel) return "";
  return "tp_overlap needs sequence_parallel: it divides gathers and scatters of rows, not all-reduces";
}

// Only the last gradient shows whether any gradient overflowed on any rank.
std::string early_update_conflict(const Settings& s) {
  if (!s.overlap_optimizer || s.precision != Precision::fp16) return "";
  return "overlap_optimizer does not go with precision fp16: an overflow in any gradient leaves out the whole update";
}

std::string attention_conflict(const Settings& s) {
  if (s.attention == AttentionKind::fused || s.context() == 1) return "";
  return fmt::format(
      "attention unfused and context_parallel {} do not go together: only fused attention takes a sequence part by "
      "part",
      s.context());
}

std::string not_computed_by(const Settings& s, BackendKind kind) {
  const BackendTraits& backend = traits_of(kind);
  if (s.precision == Precision::tf32 && !backend.has_tf32) {
    return fmt::format(
        "backend {} has no tf32, which needs the tensor cores of a GPU; allowed on {}: fp32, bf16, fp16, fp8, mxfp8",
        backend.name, backend.name);
  }
  if (backend.predicts()) return "";
  if (s.precision == Precision::fp16 && s.workload == "collective") {
    return "fp16 has too small a range for sums that are summed up again; bf16 has as many bytes";
  }
  if (has_fp8_products(s.precision)) {
    if (s.workload == training_workload) return "";
    return fmt::format("workload {} has no {}: it is of the linear layers of a training step (workload: {})",
                       s.workload, name_of(s.precision), training_workload);
  }
  if (is_low(s.precision)) {
    return fmt::format("backend {} has no {}, which needs Transformer Engine's kernels; backend sim predicts {}",
                       backend.name, name_of(s.precision), name_of(s.precision));
  }
  return "";
}

std::string lacking_tensor_cores(const Settings& s, const Hardware& h) {
  if (s.precision == Precision::fp32) return "";
  int needed = ampere;
  if (s.precision == Precision::fp16) needed = volta;
  if (s.precision == Precision::fp8) needed = ada;
  if (s.precision == Precision::mxfp8 || s.precision == Precision::nvfp4) needed = blackwell;
  return below_capability(h, needed, fmt::format("precision {} needs tensor cores of", name_of(s.precision)));
}

double parse_cap(std::string_view text) {
  return parse_if(
      text, parse_share, [](double share) { return share > 0 && share <= 10; },
      "above 0 % and at most 100 %, in a prediction 1000 %");
}

std::string cap_beyond_device(const Settings& s, BackendKind backend) {
  if (s.memory_cap <= 1 || traits_of(backend).predicts()) return "";
  return fmt::format("{:.6g} % is more than the device has; only a prediction (backend: sim) may assume more memory",
                     100 * s.memory_cap);
}

}  // namespace

// docs/architecture.md walks through one row.
std::vector<Variable> batch_variables() {
  return {
      one_of(&Settings::precision, precision_choices,
             {.name = "precision",
              .help = "number format of matrix products; bf16 and fp16 keep fp32 master weights, fp16 with dynamic "
                      "loss scaling; tf32 is fp32 that a GPU's tensor cores multiply with 10-bit mantissas; fp8 is of "
                      "a layer's four products (e4m3 forward, e5m2 gradients, a scale for each tensor), emulated on a "
                      "CPU; mxfp8 is fp8 with e4m3 alone and a scale for each 32 elements, on a GPU from Blackwell on; "
                      "nvfp4 of a layer's products is only predicted",
              .acts_on = {Part::matrix_products, Part::attention, Part::other_compute, Part::tensor, Part::pipeline},
              .fastest = "bf16",
              .moves_peak = true,
              .mathematics = Mathematics::rounded,
              .refused_by = not_computed_by,
              .lacking = lacking_tensor_cores,
              .workloads = any_workload}),
      whole(&Settings::global_batch_size, 1, max_batch,
            {.name = "global_batch_size",
             .allowed = "a whole number",
             .examples = {"32", "64"},
             .help = "sequences per step, over all ranks",
             .acts_on = {Part::data, Part::embedding, Part::world, Part::bubble},
             .mathematics = Mathematics::another,
             .overridden_by = "gradient_accumulation",
             .without_effect =
                 only_with(&Settings::gradient_accumulation, 0, "gradient_accumulation says how large the batch is")}),
      whole(&Settings::micro_batch_size, 1, max_batch,
            {.name = "micro_batch_size",
             .allowed = "a whole number",
             .examples = {"2", "4"},
             .help = "sequences per forward pass of one rank; gradients accumulate up to the global batch",
             .acts_on = {Part::matrix_products, Part::attention, Part::other_compute, Part::tensor, Part::pipeline,
                         Part::bubble, Part::idle}}),
      whole_or("auto", &Settings::gradient_accumulation, 1, max_accumulation,
               {.name = "gradient_accumulation",
                .help = "micro-batches of a replica in a step: the global batch is as many times micro_batch_size "
                        "and data_parallel; auto takes global_batch_size instead",
                .acts_on = {Part::data, Part::embedding, Part::world, Part::bubble},
                .mathematics = Mathematics::another}),
  };
}

std::vector<Variable> step_variables() {
  return {
      whole_or("all", &Settings::ranks, 1, max_ranks,
               {.name = "ranks",
                .help = "use the first N ranks and leave the others idle: a scaling curve from one allocation",
                .purpose = Purpose::scale,
                .workloads = any_workload}),
      true_or_false(&Settings::overlap_grad_reduce,
                    {.name = "overlap_grad_reduce",
                     .help = "reduce gradients bucket by bucket behind the backward pass, or all of them after it",
                     .acts_on = {Part::data},
                     .fastest = "true",
                     .without_effect = without_data_parallel}),
      number_of_bytes(&Settings::bucket_size_bytes, min_bucket_bytes,
                      {.name = "bucket_size",
                       .allowed = "a size such as 25 MiB",
                       .help = "bytes of fp32 gradients that are reduced, or updated, together",
                       .acts_on = {Part::data},
                       .without_effect = without_buckets}),
      true_or_false(&Settings::overlap_optimizer,
                    {.name = "overlap_optimizer",
                     .help = "update the weights bucket by bucket beside the backward pass, or all of them after it",
                     .acts_on = {Part::other_compute},
                     .fastest = "true",
                     .conflict = early_update_conflict}),
      {.name = "memory_cap",
       .allowed = "a share above 0 and up to 1, such as 90 %; in a prediction up to 10",
       .examples = {"90 %"},
       .help = "the share of the device's memory that a case may need; one that needs more is not run",
       .parse = [](Settings& s, auto text) { s.memory_cap = parse_cap(text); },
       .print = [](const Settings& s) { return print_share_exact(s.memory_cap); },
       .refused_by = cap_beyond_device,
       .workloads = any_workload},
      true_or_false(
          &Settings::fusion,
          {.name = "fusion",
           .help = "run bias, GELU, residual and bias gradients inside the kernels beside them and "
                   "cross-entropy as one, as far as the backend does, or each operation on its own; attention "
                   "is a variable of its own",
           .acts_on = {Part::matrix_products, Part::other_compute, Part::idle},
           .fastest = "true"}),
      one_of(&Settings::recompute, recompute_choices,
             {.name = "recompute",
              .help = "activations that are not kept for the backward pass but computed again in it; selective: the "
                      "probabilities of unfused attention; full: of a layer all but its input",
              .acts_on = {Part::recomputation, Part::tensor},
              .fastest = "none",
              .without_effect = without_scores}),
      whole_or(
          "all", &Settings::recompute_layers, 1, max_layers,
          {.name = "recompute_layers",
           .help = "with recompute: full, the first so many layers of each chunk of a pipeline stage, or all of them",
           .acts_on = {Part::recomputation, Part::tensor},
           .without_effect =
               only_with(&Settings::recompute, Recompute::full, "recompute is not full, which alone goes by layers")}),
      true_or_false(&Settings::sequence_parallel,
                    {.name = "sequence_parallel",
                     .help = "divide norms, residual stream and what the stages exchange among tensor-parallel ranks "
                             "by rows: a reduce-scatter and an all-gather instead of an all-reduce",
                     .acts_on = {Part::other_compute, Part::tensor, Part::pipeline},
                     .without_effect = shared_rows}),
      true_or_false(&Settings::tp_overlap,
                    {.name = "tp_overlap",
                     .help = "run a tensor-parallel collective beside parts of the product that it belongs to "
                             "(Transformer Engine's userbuffers; Megatron-LM: --tp-comm-overlap)",
                     .backends = only_sim,
                     .acts_on = {Part::tensor},
                     .fastest = "true",
                     .without_effect = shared_rows,
                     .conflict = overlap_conflict}),
      true_or_false(&Settings::embedding_as_layer,
                    {.name = "embedding_as_layer",
                     .help = "count the embedding and the loss as a layer each where pipeline stages divide the layers "
                             "(Megatron-LM: --account-for-embedding-in-pipeline-split and -loss-)",
                     .acts_on = {Part::bubble},
                     .without_effect = only_along(program::Axis::pipeline,
                                                  "pipeline_parallel is 1, so all layers are in one stage")}),
  };
}

std::vector<Variable> execution_variables() {
  return {
      one_of(&Settings::allreduce_algorithm, allreduce_choices,
             {.name = "allreduce_algorithm",
              .help = "Gloo's algorithm for all-reduces above 4 KiB (NCCL's is nccl_algo)",
              .backends = only_cpu,
              .acts_on = {Part::tensor, Part::data, Part::embedding},
              .without_effect = without_communication,
              .workloads = communicating}),
      whole_or("auto", &Settings::threads, 1, max_threads,
               {.name = "threads",
                .help = "compute threads per rank; auto is cores / ranks on the node",
                .backends = only_cpu,
                .acts_on = {Part::matrix_products, Part::attention, Part::other_compute},
                .moves_peak = true,
                .workloads = any_workload}),
      one_of(&Settings::attention, attention_choices,
             {.name = "attention",
              .help = "fused keeps the scores inside one kernel; unfused is two batched products and a softmax, "
                      "with the probabilities kept in memory for the backward pass",
              .acts_on = {Part::attention},
              .fastest = "fused",
              .conflict = attention_conflict,
              .workloads = {"gpt", "attention"}}),
      whole_or("auto", &Settings::attention_engine, 0, max_engine,
               {.name = "attention_engine",
                .examples = {"0", "1"},
                .help = "which of the fused attention kernels that cuDNN offers, in its order; auto is the first that "
                        "it can build",
                .backends = only_cuda,
                .acts_on = {Part::attention},
                .without_effect =
                    only_with(&Settings::attention, AttentionKind::fused, "attention is unfused, which has no engine"),
                .workloads = {"gpt", "attention"}}),
      true_or_false(
          &Settings::cuda_graph,
          {.name = "cuda_graph",
           .help = "capture a step once and launch it as one CUDA graph, or launch every kernel from the host; NCCL "
                   "registers no buffers for either (env: {NCCL_GRAPH_REGISTER: 1} does for the graph)",
           .backends = only_cuda,
           .acts_on = {Part::idle},
           .fastest = "true",
           .workloads = any_workload}),
  };
}

}  // namespace harness::config
