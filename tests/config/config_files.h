#pragma once

#include <string>
#include <vector>

#include "config/experiment.h"
#include "support/errors.h"
#include "support/files.h"

namespace harness::test {

/// Returns the error message of load_experiment for a file, "" if there is none.
inline std::string complaint(const std::string& path, const std::vector<std::string>& overrides = {}) {
  return error_of([&] { config::load_experiment(path, overrides); });
}

/// Loads the experiment of a file with this text.
inline config::Experiment loaded(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const TemporaryFolder folder;
  return config::load_experiment(folder.write("a.yaml", text), overrides);
}
/// Returns the error message for a file with this text, "" if there is none.
inline std::string complaint_about(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const TemporaryFolder folder;
  return complaint(folder.write("a.yaml", text), overrides);
}

inline std::string issue_example() {
  return R"(name: laptop
backend: cpu
model: {layers: 4, hidden: 128, heads: 4, vocab: 2048, sequence: 128}
baseline:
  precision: fp32
  global_batch_size: 16
  micro_batch_size: 1
  layout: {tensor_parallel: 1, pipeline_parallel: 1}
  overlap_grad_reduce: true
  bucket_size: 1 MiB
  allreduce_algorithm: ring
sweep:
  micro_batch_size: [2, 4]
  layout: [{tensor_parallel: 2}, {pipeline_parallel: 2}]
  overlap_grad_reduce: [false]
  allreduce_algorithm: [halving_doubling]
measure: {rounds: 12, warmup_steps: 2, steps: 6, seed: 1, smallest_effect: 1 %,
          deadlines: {start: 60 s, step: 30 s}, time_budget: 10 min}
output: results/{name}-{date}.h5
)";
}

}  // namespace harness::test
