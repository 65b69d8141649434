#include "doctor/nccl_stage.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

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

StageFinding of_job(Verdict verdict, std::string evidence) {
  return {nccl_check, {verdict, std::move(evidence), ""}, ""};
}

// "transport NET/IB/3/GDRDMA": device 3.
void read_transports(const nccl::Observed& seen, NodeLog& out) {
  for (const auto& [name, value] : seen.facts) {
    const std::vector<std::string> parts = split_text(name, "/");
    out.through_host = out.through_host || name.starts_with("transport SHM");
    out.over_nvlink = out.over_nvlink || name.starts_with("transport P2P/MNNVL");
    if (parts.size() < 3 || parts[0] != "transport NET") continue;
    if (const auto device = number_in<std::size_t>(parts[2])) out.used.insert(*device);
  }
}

}  // namespace

std::vector<StageFinding> run_nccl_stage(const Bench& bench, double limit_s) {
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
  const job::BlockRequest request =
      stage_block(bench, "nccl", settings, {{program::Axis::data, bench.job.size()}}, job::Observe{logs}, limit);
  const job::BlockOutcome outcome = bench.job.run_alone(request);
  if (!outcome.ok) {
    StageFinding failed = failed_block(bench, nccl_check, "an all-reduce over all ranks", outcome);
    if (differs_in_version(outcome.reason)) failed.check = "nccl.version";
    return {failed};
  }
  std::vector<RankLog> read;
  for (int rank = 0; rank < logs; ++rank) {
    const std::string& text = outcome.of<job::ObserveSamples>(static_cast<std::size_t>(rank)).nccl_log;
    if (!text.empty()) read.push_back({rank, nccl::parse_log(text)});
  }
  std::vector<StageFinding> said = judge_nccl(bench.nodes, read);
  if (const auto idle = idle_gpus(bench)) said.push_back({nccl_check, *idle, ""});
  said.push_back(of_job(Verdict::pass, fmt::format("took {}", show_seconds(limit.used_s()))));
  return said;
}

Words values_of(const std::vector<const RankLog*>& logs, std::string_view fact) {
  Words all;
  for (const RankLog* log : logs) {
    for (const std::string& value : split_text(log->seen.fact(fact), nccl::fact_separator)) {
      if (!value.empty()) all.insert(value);
    }
  }
  return all;
}

std::string text_of(const Words& words) {
  return join(std::vector<std::string>(words.begin(), words.end()), ", ");
}

NodeLog log_of(const Node& node, const std::vector<RankLog>& all, bool several_nodes) {
  NodeLog out{node, several_nodes};
  for (const RankLog& log : all) {
    if (std::ranges::find(node.ranks, log.rank, &Rank::rank) == node.ranks.end()) continue;
    out.logs.push_back(&log);
    read_transports(log.seen, out);
    for (const std::string& text : log.seen.warnings) out.warnings.insert(text);
    if (out.devices.empty()) out.devices = split_text(log.seen.fact("network_devices"), " ");
  }
  out.networks = values_of(out.logs, "network");
  out.interfaces = values_of(out.logs, "bootstrap_interface");
  out.versions = values_of(out.logs, "version");
  out.nvls = values_of(out.logs, "nvls");
  out.direct = values_of(out.logs, "gpu_direct");
  out.direct_sends = values_of(out.logs, "gpu_direct_send");
  out.direct_receives = values_of(out.logs, "gpu_direct_receive");
  out.mtus = values_of(out.logs, "ib_mtu");
  out.with_dma_buf = static_cast<std::size_t>(
      std::ranges::count_if(out.logs, [](const RankLog* log) { return !log->seen.fact("dma_buf").empty(); }));
  return out;
}

}  // namespace harness::doctor
