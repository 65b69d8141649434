#pragma once

#include <string>
#include <vector>

#include "program/verify.h"
#include "workloads/gpt/gpt.h"
#include "workloads/workload.h"

namespace harness::workloads {

/// What a training step is built from.
struct Job {
  config::Model model;
  config::Settings settings;
  program::Layout layout;
};

inline Job job(config::Model model, int tp, int pp, int dp, std::int64_t micro_batches,
               std::int64_t micro_batch_size = 1) {
  Job j{std::move(model), {}, {}};
  j.settings.layout = {{program::Axis::tensor, tp}, {program::Axis::pipeline, pp}};
  j.settings.micro_batch_size = micro_batch_size;
  j.settings.global_batch_size = dp * micro_batches * micro_batch_size;
  j.layout.size = {tp, 1, dp, pp};
  return j;
}

inline program::ProgramSet build(const Job& j) {
  return build_programs(j.model, j.settings, j.layout);
}

inline std::string texts(const std::vector<program::Problem>& problems) {
  std::string all;
  for (const auto& p : problems) all += p.text + "\n";
  return all;
}

}  // namespace harness::workloads
