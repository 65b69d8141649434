#include "doctor/stage.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/identity.h"
#include "base/text.h"
#include "base/units.h"
#include "job/job.h"

namespace harness::doctor {
namespace {

struct StageName {
  std::string_view name;
  Stage stage;
};
constexpr std::array<StageName, 3> stage_names{
    {{"static", Stage::facts}, {"nccl", Stage::nccl}, {"load", Stage::load}}};

// The supervisor says so of a worker that did nothing for as long as a deadline allows.
bool ran_out_of_time(const job::BlockOutcome& outcome) {
  return outcome.reason.find("(deadlines: ") != std::string::npos;
}

std::string host_of(const std::vector<Node>& nodes, int rank) {
  for (const Node& node : nodes) {
    if (std::ranges::find(node.ranks, rank, &Rank::rank) != node.ranks.end()) return node.host;
  }
  return "";
}

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

std::vector<Stage> parse_stages(std::string_view text) {
  std::vector<Stage> stages;
  std::vector<std::string> names;
  for (const StageName& row : stage_names) names.emplace_back(row.name);
  for (const std::string_view untrimmed : split(text, ',')) {
    const std::string_view word = trim(untrimmed);
    const auto row = std::ranges::find(stage_names, word, &StageName::name);
    if (row == stage_names.end()) {
      fail("--stages: found {}; allowed: {}, separated by commas{}", quote(word), join(names, ", "),
           did_you_mean(nearest(word, names)));
    }
    if (std::ranges::find(stages, row->stage) == stages.end()) stages.push_back(row->stage);
  }
  std::ranges::sort(stages);
  return stages;
}

std::optional<Finding> obstacle(const Bench& bench) {
  if (!bench.missing.empty()) return Finding{Verdict::info, "left out: " + bench.missing, ""};
  if (!config::traits_of(bench.backend).ranks_are_gpus) return std::nullopt;
  std::vector<std::string> blind, crowded;
  for (const auto& [number, node] : job::gpus_by_node(bench.job.places())) {
    if (node.unknown) continue;
    const auto gpus = node.gpus.size();
    if (node.blind_rank) {
      blind.push_back(node.host);
    } else if (static_cast<std::size_t>(node.ranks) > gpus) {
      crowded.push_back(fmt::format("{} has {} and {}", node.host, plural(node.ranks, "rank"),
                                    plural(static_cast<std::int64_t>(gpus), "GPU")));
    }
  }
  constexpr std::size_t shown = 8;
  if (!blind.empty()) {
    return Finding{Verdict::info, fmt::format("left out: a rank sees no GPU on {}", join_first(blind, shown)),
                   "look at CUDA_VISIBLE_DEVICES and at `nvidia-smi` on that node, or start no rank there"};
  }
  if (!crowded.empty()) {
    return Finding{Verdict::info, fmt::format("left out: {}", join_first(crowded, shown)),
                   "start one rank for each GPU (mpirun --map-by ppr:N:node), or leave the node out"};
  }
  return std::nullopt;
}

job::BlockRequest stage_block(const Bench& bench, const std::string& name, const config::Settings& settings,
                              const program::Layout& layout, const job::Task& task, const Limit& limit) {
  job::BlockRequest request;
  request.case_name = name;
  request.backend = bench.backend;
  request.settings = settings;
  request.layout = layout;
  request.task = task;
  request.warmup_steps = 1;
  request.deadlines = limit.deadlines();
  return request;
}

StageFinding failed_block(const Bench& bench, const std::string& check, const std::string& what,
                          const job::BlockOutcome& outcome) {
  if (outcome.stopped) return {check, {Verdict::info, what + " was stopped by a signal", ""}, ""};
  const std::string host = host_of(bench.nodes, outcome.culprit_rank);
  if (ran_out_of_time(outcome))
    return {check,
            {Verdict::fail, fmt::format("{} did not end: {}", what, outcome.reason),
             "a sweep would hang like this; see what holds this rank up: its GPU, its network, its CPUs"},
            host};
  return {check,
          {Verdict::fail, fmt::format("{} failed: {}", what, outcome.reason),
           "a sweep would fail like this on its first block"},
          host};
}

std::vector<std::size_t> nodes_of_ranks(const std::vector<Node>& nodes) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const Rank& rank : nodes[i].ranks) {
      const auto at = static_cast<std::size_t>(rank.rank);
      if (places.size() <= at) places.resize(at + 1);
      places[at] = i;
    }
  }
  return places;
}

std::string name_of_rank(const std::vector<Node>& nodes, int rank) {
  return fmt::format("rank {} on {}", rank, host_of(nodes, rank));
}

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
  return out;
}

}  // namespace harness::doctor
