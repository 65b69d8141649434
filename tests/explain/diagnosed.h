#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/text.h"
#include "config/experiment.h"
#include "explain/explain.h"
#include "plan/plan.h"
#include "sim/simulation.h"
#include "support/paths.h"
#include "sweep/rounds.h"
#include "workloads/workload.h"

namespace harness::test {

/// A job of a few large layers: the shape of a GPT-3 6.7B, with little of it per rank.
struct Job {
  int nodes = 2, ranks_of_node = 8;
  std::string layout = "tensor_parallel: 8";
  std::string hardware = "h100-sxm";
  int sequences = 4;  // per replica
  bool overlaps = false;

  int ranks() const { return nodes * ranks_of_node; }
};

inline config::Experiment experiment_of(const Job& job, const std::string& calibration = "harness") {
  const std::string text = fmt::format(
      "name: sample\nbackend: sim\nhardware: {}\ncalibration: {}\n"
      "model: {{layers: 8, hidden: 4096, heads: 32, vocab: 51200, sequence: 2048}}\n"
      "baseline: {{precision: bf16, micro_batch_size: 1, overlap_grad_reduce: {}, layout: {{{}}}}}\n",
      job.hardware, calibration, job.overlaps, job.layout);
  config::Experiment e = config::load_experiment(source_dir() + "/configs/sample.yaml", {}, text);
  const plan::Division division = plan::divide_ranks(e.model, e.baseline, job.ranks());
  const int replicas = division.layout[program::Axis::data];
  return config::load_experiment(e.path, {fmt::format("baseline.global_batch_size={}", job.sequences * replicas)},
                                 text);
}

/// Returns a sweep of the baseline, with ranks placed node by node, before any profiling. Its configuration states no
/// faults.
inline store::Result unmeasured(const Job& job, const config::Experiment& e) {
  store::Result result;
  result.backend = "cuda";
  result.ranks = job.ranks();
  result.nodes = job.nodes;
  result.config_text = e.text;
  result.config_path = e.path;
  result.overrides = e.overrides;
  result.model = e.model.resolved();
  result.variables = config::variable_names();
  store::ResultCase baseline;
  baseline.name = store::baseline_name;
  baseline.status = store::CaseStatus::ok;
  baseline.ranks = job.ranks();
  for (const config::Variable& v : config::registry()) baseline.settings.push_back(v.print(e.baseline));
  result.cases.push_back(std::move(baseline));
  for (std::int32_t rank = 0; rank < job.ranks(); ++rank) {
    store::ResultRank row;
    row.rank = rank;
    row.node = rank / job.ranks_of_node;
    row.host = fmt::format("node{}", row.node);
    result.rank_table.push_back(std::move(row));
  }
  return result;
}

/// Adds the profiled step of `predicted`, its only one.
inline void add_step(store::Result& result, store::Result predicted) {
  result.timeline = std::move(predicted.timeline);
  result.splits = std::move(predicted.splits);
  result.totals = std::move(predicted.totals);
  result.operations = std::move(predicted.operations);
  result.roles = std::move(predicted.roles);
}

/// Places the ranks of a result as these faults do.
inline void place(store::Result& result, const config::Faults& faults) {
  std::vector<int> node_of;
  for (const store::ResultRank& row : result.rank_table) node_of.push_back(row.node);
  node_of = config::places(faults, std::move(node_of));
  for (std::size_t rank = 0; rank < node_of.size(); ++rank) {
    result.rank_table[rank].node = node_of[rank];
    result.rank_table[rank].host = fmt::format("node{}", node_of[rank]);
  }
}

/// Returns a result as measured with these faults, with all computations `slower` times as long.
inline store::Result measured(const Job& job, const config::Faults& faults, double slower = 1) {
  store::Result result = unmeasured(job, experiment_of(job));
  place(result, faults);
  const explain::Reference reference = explain::reference_of(result);
  add_step(result, explain::CaseModel(reference, result, 0).predict(faults, slower));
  return result;
}

}  // namespace harness::test

namespace harness::explain {

using ::testing::HasSubstr;

// Clusters with one fault.

inline config::Faults slow_gpu(int rank, double speed) {
  return {.slow_gpus = {{rank, speed}}, .slow_links = {}, .narrow_pcie = {}};
}
inline config::Faults slow_link(int node, double share) {
  return {.slow_gpus = {}, .slow_links = {{node, share}}, .narrow_pcie = {}};
}
inline config::Faults pcie(int rank, int node, double share) {
  return {.slow_gpus = {}, .slow_links = {}, .narrow_pcie = {{rank, node, share}}};
}
inline config::Faults socket(double bytes_per_s) {
  return {.slow_gpus = {}, .slow_links = {}, .narrow_pcie = {}, .socket_bytes_per_s = bytes_per_s};
}
inline config::Faults everywhere(bool config::Faults::*fault) {
  config::Faults faults;
  faults.*fault = true;
  return faults;
}

}  // namespace harness::explain
