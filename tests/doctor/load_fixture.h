#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "bench_job.h"
#include "doctor/load_stage.h"

namespace harness::test {

// The load stage over a job that plays ranks.

/// Nodes as examine() gives them.
inline std::vector<doctor::Node> nodes_of(const job::Job& job) {
  std::vector<doctor::Node> nodes;
  for (const job::RankPlace& place : job.places()) {
    while (std::ssize(nodes) <= place.node) nodes.push_back({fmt::format("host{}", nodes.size()), {}, {}});
    nodes[static_cast<std::size_t>(place.node)].ranks.push_back({place.rank, {}});
  }
  return nodes;
}

inline void give_gpus(BenchJob& job, int of_node) {
  for (job::RankPlace& place : job.seats()) {
    place.gpus = {of_node, of_node, {}};
    for (int gpu = 0; gpu < of_node; ++gpu) place.gpus.names.push_back(std::to_string(gpu));
  }
}

inline std::vector<doctor::StageFinding> said_by(BenchJob& job, config::BackendKind backend = config::BackendKind::cuda,
                                                 const config::Hardware* hardware = nullptr) {
  const std::vector<doctor::Node> nodes = nodes_of(job);
  return doctor::run_load_stage({job, nodes, backend, ""}, hardware);
}

/// "warn load.products host0: …" of all that is worse than `than`.
inline std::vector<std::string> told(const std::vector<doctor::StageFinding>& all,
                                     doctor::Verdict than = doctor::Verdict::info) {
  std::vector<std::string> lines;
  for (const doctor::StageFinding& said : all) {
    if (said.finding.verdict >= than) continue;
    lines.push_back(
        fmt::format("{} {} {}: {}", name_of(said.finding.verdict), said.check, said.host, said.finding.evidence));
  }
  return lines;
}

}  // namespace harness::test
