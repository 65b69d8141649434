#include "doctor/nccl_stage.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "doctor/nccl_topology.h"

namespace harness::doctor {
namespace {

constexpr const char* nccl_check = "stage.nccl";
// Large enough for the connections of the algorithm that a training step has, which NCCL makes at the first use.
constexpr std::int64_t message_bytes = 64 << 20;
constexpr int max_logs = 512;  // each may be a MiB, and rank 0 holds them all

// NCCL compares versions itself, and gives up.
bool differs_in_version(const std::string& reason) {
  return reason.find("Mismatched NCCL version") != std::string::npos;
}

Said of_job(Verdict verdict, std::string evidence) {
  return {nccl_check, {verdict, std::move(evidence), ""}, ""};
}

// Where rank 0's worker, which is on the same node, has NCCL write it.
class TopologyFile {
 public:
  TopologyFile()
      : folder_("harness-topology"), path_(folder_.path().empty() ? "/dev/null" : folder_.path() + "/topology.xml") {}

  const std::string& path() const { return path_; }
  std::string text() const {
    constexpr std::size_t most_bytes = 4 << 20;
    return try_read_file(path_, most_bytes, TooLong::cut).text;
  }

 private:
  PrivateFolder folder_;
  std::string path_;
};

}  // namespace

std::vector<Said> run_nccl_stage(const Bench& bench, double limit_s) {
  if (!config::traits_of(bench.backend).uses_nccl) return {of_job(Verdict::skip, "no NVIDIA GPU")};
  if (const auto why = obstacle(bench)) return {{nccl_check, *why, ""}};
  if (bench.job.size() < 2) return {of_job(Verdict::skip, "one rank talks to nobody")};
  const Limit limit(bench.job.clock(), limit_s);
  config::Settings settings;
  settings.workload = "collective";
  settings.message_bytes = message_bytes;
  settings.in_place = false;
  settings.repetitions = 1;
  const int logs = std::min(bench.job.size(), max_logs);
  job::BlockRequest request =
      stage_block(bench, "nccl", settings, {{program::Axis::data, bench.job.size()}}, job::Observe{logs}, limit);
  const TopologyFile topology;
  request.environment = {{"NCCL_TOPO_DUMP_FILE", topology.path()}};
  const job::BlockOutcome outcome = bench.job.run_alone(request);
  if (!outcome.ok) {
    Said failed = failed_block(bench, nccl_check, "an all-reduce over all ranks", outcome);
    if (differs_in_version(outcome.reason)) failed.check = "nccl.version";
    return {failed};
  }
  std::vector<RankLog> read;
  for (int rank = 0; rank < logs; ++rank) {
    const std::string& text = outcome.of<job::ObserveSamples>(static_cast<std::size_t>(rank)).nccl_log;
    if (!text.empty()) read.push_back({rank, nccl::parse_log(text)});
  }
  std::vector<Said> said = judge_nccl(bench.nodes, read);
  Findings found;
  judge_topology(parse_topology(topology.text()), found);
  const std::string host = bench.nodes.at(nodes_of_ranks(bench.nodes).at(0)).host;
  for (const Finding& finding : found.list()) said.push_back({topology_check().id, finding, host});
  if (const auto idle = idle_gpus(bench)) said.push_back({nccl_check, *idle, ""});
  said.push_back(of_job(Verdict::pass, fmt::format("took {}", show_seconds(limit.used_s()))));
  return said;
}

}  // namespace harness::doctor
