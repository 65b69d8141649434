#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "doctor/load_stage.h"
#include "node_fixture.h"
#include "program/program.h"
#include "workloads/workload.h"

namespace harness::test {

/// A fake job with the same number of ranks on each node, one for each GPU, whose blocks take `block_s` on a virtual
/// clock. The test sets what ranks and links reach, and what fails.
class GpuJob : public AnsweringJob {
 public:
  GpuJob(int nodes, int ranks_per_node) : AnsweringJob(nodes, ranks_per_node) {
    const auto ranks = static_cast<std::size_t>(nodes * ranks_per_node);
    product_s.assign(ranks, 1e-3);
    link_bytes_per_s.assign(ranks, 50e9);
    gpu.resize(ranks);
    host_copies.assign(ranks, {55e9, 52e9, 90e9});
    for (job::RankPlace& place : seats()) {
      place.gpus = {ranks_per_node, ranks_per_node, {}};
      for (int number = 0; number < ranks_per_node; ++number) place.gpus.names.push_back(std::to_string(number));
    }
  }
  ~GpuJob() override { EXPECT_TRUE(waiting_.empty()) << "workers wait for a block that does not come"; }

  job::BlockOutcome run(const job::BlockOnSet& block) override {
    const job::BlockRequest& request = block.request;
    EXPECT_EQ(workloads::workload_of(request.settings).why_impossible_on({}, request.settings, request.layout), "");
    EXPECT_TRUE(block.set.ranks.empty() || std::ssize(block.set.ranks) == request.layout.ranks());
    requests.push_back(request);
    begun_s.push_back(clock_.now_s);
    clock_.now_s += std::min(block_s, request.deadlines.start_s + request.deadlines.step_s);
    job::BlockOutcome outcome;
    if (fails) outcome.reason = fails(request);
    outcome.ok = outcome.reason.empty();
    started += waiting_.erase(block.set.number) == 0 ? 1 : 0;
    if (outcome.ok && !block.last) waiting_.insert(block.set.number);
    if (!outcome.ok) {
      outcome.culprit_rank = 3;
      return outcome;
    }
    for (int number = 0; number < request.layout.ranks(); ++number) outcome.samples.push_back(sample(block, number));
    return outcome;
  }
  const Clock& clock() const override { return clock_; }
  int stop_requests() const override { return stops; }

  std::vector<double> product_s;                               // by rank
  std::vector<double> link_bytes_per_s;                        // by rank, to other nodes
  std::function<double(int, int)> way;                         // limit between two nodes in bytes/s; empty: none
  std::vector<double> node_bytes_per_s;                        // within each node; empty: 300e9
  std::vector<machine::GpuStatistics> gpu;                     // by rank
  std::vector<machine::HostCopies> host_copies;                // by rank
  std::function<std::string(int)> log;                         // NCCL's log, by rank
  std::function<std::string(const job::BlockRequest&)> fails;  // returns the reason; "": the block succeeds
  double block_s = 1;                                          // on the virtual clock, at most what its deadlines allow
  int stops = 0;
  std::vector<job::BlockRequest> requests;
  int started = 0;  // how often workers were started
  std::vector<double> begun_s;

 private:
  class Virtual : public Clock {
   public:
    double seconds() const override { return now_s; }
    double unix_s() const override { return now_s; }
    double now_s = 0;
  };

  static int rank_of(const job::BlockOnSet& block, int number) {
    return block.set.ranks.empty() ? number : block.set.ranks.at(number);
  }

  job::Samples sample(const job::BlockOnSet& block, int number) const {
    const job::BlockRequest& request = block.request;
    const int rank = rank_of(block, number);
    job::Samples samples;
    if (std::holds_alternative<job::CopyWithHost>(request.task)) {
      const int bus = 0x1a + places()[rank].local_rank;
      samples.task =
          job::HostCopySamples{fmt::format("0000:{:02X}:00.0 NVIDIA H100 80GB HBM3", bus), host_copies.at(rank)};
    } else if (std::holds_alternative<job::Observe>(request.task)) {
      samples.task = job::ObserveSamples{log ? log(rank) : ""};
    } else if (const auto* timed = std::get_if<job::TimeSteps>(&request.task)) {
      const double slowest = *std::ranges::max_element(product_s);  // a step ends when all ranks have ended
      job::TimedSamples taken;
      taken.step_s.assign(request.warmup_steps + timed->steps, slowest * request.settings.repetitions);
      taken.gpu = gpu.at(rank);
      samples.task = taken;
    } else if (request.settings.workload == "gemm") {
      job::TimelineSamples taken;
      const double seconds = product_s.at(rank) * request.settings.repetitions;
      taken.totals = {{"fill", "compute", 1e-6, 1}, {"matmul", "compute", seconds, request.settings.repetitions}};
      samples.task = taken;
    } else {
      samples.task = collective(block, number);
    }
    return samples;
  }

  // The last rank to arrive does not wait; the durations of the others include waiting.
  job::TimelineSamples collective(const job::BlockOnSet& block, int number) const {
    const job::BlockRequest& request = block.request;
    const auto over = request.settings.collective_over == config::CollectiveOver::tensor ? program::Axis::tensor
                                                                                         : program::Axis::data;
    const program::Group group{"", program::AxisSet::of({over}), {}};
    double least = 300e9;
    const std::vector<int> members = group.members(request.layout, request.layout.coordinates(number));
    const auto node_of = [&](int member) { return places()[rank_of(block, member)].node; };
    for (const int member : members) {
      if (node_of(member) == node_of(members.front())) continue;
      for (const int end : {member, members.front()}) least = std::min(least, link_bytes_per_s[rank_of(block, end)]);
      if (way) least = std::min(least, way(node_of(members.front()), node_of(member)));
    }
    const bool within = node_of(members.front()) == node_of(members.back());
    if (within && !node_bytes_per_s.empty()) least = node_bytes_per_s[node_of(number)];
    const auto n = static_cast<double>(members.size());
    const double seconds = 2 * (n - 1) / n * static_cast<double>(request.settings.message_bytes) / least;
    job::TimelineSamples taken;
    const double waiting = number == members.front() ? 0 : 0.1;
    taken.communication_s.assign(request.settings.repetitions, static_cast<float>(seconds + waiting));
    taken.communication_s.push_back(1);  // the closing collective of all ranks
    return taken;
  }

  Virtual clock_;
  std::set<int> waiting_;  // numbers of sets whose workers wait for another block
};

// The load stage over a fake job.

/// Returns the nodes as examine() does.
inline std::vector<doctor::Node> nodes_of(const job::Job& job) {
  std::vector<doctor::Node> nodes;
  for (const job::RankPlace& place : job.places()) {
    while (std::ssize(nodes) <= place.node) nodes.push_back({fmt::format("host{}", nodes.size()), {}, {}});
    nodes[place.node].ranks.push_back({place.rank, {}});
  }
  return nodes;
}

inline std::vector<doctor::StageFinding> said_by(GpuJob& job, const config::Hardware* hardware = nullptr) {
  const std::vector<doctor::Node> nodes = nodes_of(job);
  return doctor::run_load_stage({job, nodes, config::BackendKind::cuda, ""}, hardware);
}

/// Returns lines such as "warn load.products host0: …" for all findings worse than `than`.
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
