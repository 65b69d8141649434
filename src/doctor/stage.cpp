#include "doctor/stage.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.h"
#include "config/choice.h"
#include "job/job.h"

namespace harness::doctor {
namespace {

constexpr std::array<config::Choice<Stage>, 3> stage_names{
    {{"static", Stage::facts}, {"nccl", Stage::nccl}, {"load", Stage::load}}};

}  // namespace

std::vector<Stage> parse_stages(std::string_view text) {
  std::vector<Stage> stages;
  const std::vector<std::string> names = config::words_of(stage_names);
  for (const std::string_view untrimmed : split(text, ',')) {
    const std::string_view word = trim(untrimmed);
    const auto at = std::ranges::find(names, word);
    if (at == names.end())
      fail("--stages: found {}; allowed: {}, separated by commas{}", quote(word), join(names, ", "),
           did_you_mean(nearest(word, names)));
    add_once(stages, stage_names[at - names.begin()].second);
  }
  std::ranges::sort(stages);
  return stages;
}

StageFinding of_job(const std::string& check, Verdict verdict, std::string evidence, std::string remedy) {
  return {check, {verdict, std::move(evidence), std::move(remedy)}, ""};
}

std::optional<StageFinding> obstacle(const Bench& bench, const std::string& check) {
  if (!bench.missing.empty()) return of_job(check, Verdict::info, "left out: " + bench.missing);
  if (!config::traits_of(bench.backend).ranks_are_gpus) return std::nullopt;
  const auto [blind, crowded] = job::gpu_shortage(bench.job.places());
  constexpr std::size_t shown = 8;
  if (!blind.empty())
    return of_job(check, Verdict::info, "left out: a rank sees no GPU on " + join_first(blind, shown),
                  "look at CUDA_VISIBLE_DEVICES and at `nvidia-smi` on that node, or start no rank there");
  if (!crowded.empty())
    return of_job(check, Verdict::info, "left out: " + join_first(crowded, shown),
                  "start one rank for each GPU (mpirun --map-by ppr:N:node), or leave the node out");
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
  if (outcome.stopped) return of_job(check, Verdict::info, what + " was stopped by a signal");
  // The supervisor's words about a worker that made no progress within a deadline.
  const bool hangs = outcome.reason.find("(deadlines: ") != std::string::npos;
  return {check,
          {Verdict::fail, fmt::format("{} {}: {}", what, hangs ? "did not end" : "failed", outcome.reason),
           hangs ? "a sweep would hang like this; see what holds this rank up: its GPU, its network, its CPUs"
                 : "a sweep would fail like this on its first block"},
          host_of_rank(bench.nodes, outcome.culprit_rank)};
}

std::string host_of_rank(const std::vector<Node>& nodes, int rank) {
  for (const Node& node : nodes) {
    if (std::ranges::find(node.ranks, rank, &Rank::rank) != node.ranks.end()) return node.host;
  }
  return "";
}

std::string name_of_rank(const std::vector<Node>& nodes, int rank) {
  return fmt::format("rank {} on {}", rank, host_of_rank(nodes, rank));
}

}  // namespace harness::doctor
