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

constexpr int max_accumulation = 1 << 16;
constexpr std::int64_t max_batch = std::int64_t{1} << 31;
constexpr std::int64_t min_bucket_bytes = 1024;

}  // namespace

// docs/architecture.md walks through one.
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
       .rebuild = Rebuild::program,
       .refused_by = not_computed_by,
       .lacking = [](const Settings& s, const Hardware& h) -> std::string {
         if (s.precision == Precision::fp32) return "";
         const int needed = s.precision == Precision::fp16 ? volta : ampere;
         return below_capability(h, needed, fmt::format("precision {} needs tensor cores of", name_of(s.precision)));
       }}));
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
                  .overridden_by = "gradient_accumulation",
                  .without_effect =
                      [](const Settings& s) {
                        return s.gradient_accumulation == 0 ? "" : "gradient_accumulation says how large the batch is";
                      },
                  .workloads = only_gpt});
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
                  .workloads = only_gpt});
  rows.push_back(
      whole_or("auto", &Settings::gradient_accumulation, 1, max_accumulation,
               {.name = "gradient_accumulation",
                .unit = "micro-batches",
                .help = "micro-batches of a replica in a step: the global batch is as many times micro_batch_size "
                        "and data_parallel; auto takes global_batch_size instead",
                .backends = everywhere,
                .acts_on = {Part::data, Part::embedding, Part::world, Part::bubble},
                .mathematics = Mathematics::another,
                .workloads = only_gpt}));
  for (Variable& row : layout_variables()) rows.push_back(std::move(row));
  for (Variable& row : pipeline_variables()) rows.push_back(std::move(row));
  rows.push_back(
      whole_or("all", &Settings::ranks, 1, max_ranks,
               {.name = "ranks",
                .unit = "ranks",
                .help = "use the first N ranks and leave the others idle: a scaling curve from one allocation",
                .backends = everywhere,
                .purpose = Purpose::scale}));
  rows.push_back(
      true_or_false(&Settings::overlap_grad_reduce,
                    {.name = "overlap_grad_reduce",
                     .help = "reduce gradients bucket by bucket behind the backward pass, or all of them after it",
                     .backends = everywhere,
                     .acts_on = {Part::data},
                     .fastest = "true",
                     .without_effect = without_data_parallel,
                     .workloads = only_gpt}));
  rows.push_back({.name = "bucket_size",
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
                  .workloads = only_gpt});
  rows.push_back(
      true_or_false(&Settings::overlap_optimizer,
                    {.name = "overlap_optimizer",
                     .help = "update the weights bucket by bucket beside the backward pass, or all of them after it",
                     .backends = everywhere,
                     .acts_on = {Part::other_compute},
                     .fastest = "true",
                     .workloads = only_gpt}));
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
                  .rebuild = Rebuild::program,
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
       .rebuild = Rebuild::program,
       .workloads = only_gpt}));
  return rows;
}

}  // namespace harness::config
