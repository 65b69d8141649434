#include "doctor/load_stage.h"

#include <algorithm>

#include "base/median.h"
#include "base/text.h"
#include "base/units.h"
#include "workloads/workload.h"

namespace harness::doctor {
namespace {

constexpr const char* load_check = "stage.load";
constexpr int products_set = 0;  // the number of the worker set that runs the products
constexpr double copies_s = 2;

// Sizes that reach a device's full rate and fit in its memory.
struct Sizes {
  config::Precision precision;
  config::GemmShape product;
  double products_s;  // duration of the products
  std::int64_t node_message_bytes, pair_message_bytes;
};
Sizes sizes_for(config::BackendKind backend) {
  if (config::traits_of(backend).ranks_are_gpus)
    return {config::Precision::bf16, {8192, 8192, 8192}, 5, 256 << 20, 64 << 20};
  return {config::Precision::fp32, {512, 512, 512}, 1, 4 << 20, 4 << 20};
}

config::Settings products_of(const Sizes& sizes) {
  config::Settings settings;
  settings.workload = "gemm";
  settings.precision = sizes.precision;
  settings.gemm = sizes.product;
  return settings;
}

class LoadStage {
 public:
  LoadStage(const Bench& bench, RankGrid grid)
      : bench_(bench),
        grid_(std::move(grid)),
        limit_(bench.job.clock(), load_limit_s),
        sizes_(sizes_for(bench.backend)) {
    load_.backend = bench.backend;
    load_.precision = sizes_.precision;
    load_.ranks.resize(static_cast<std::size_t>(bench.job.size()));
  }

  std::vector<StageFinding> run(const config::Hardware* hardware) {
    copy_with_hosts(multiply());
    reduce_in_nodes();
    for (const PairRound& round : pair_rounds(grid_.nodes())) run_pair_round(round);
    std::vector<StageFinding> said = judge_load(bench_.nodes, load_, grid_, hardware);
    said.insert(said.end(), failed_.begin(), failed_.end());
    const std::string used = show_seconds(limit_.used_s());
    if (!left_out_.empty()) {
      said.push_back(of_job(
          load_check, Verdict::info,
          fmt::format("ended after {} of {}, without {}", used, show_seconds(limit_.limit_s()), join(left_out_, ", ")),
          "start doctor on fewer nodes to see these too"));
    } else if (failed_.empty()) {
      said.push_back(of_job(load_check, Verdict::pass, fmt::format("took {}: {}", used, join(done_, ", "))));
    }
    return said;
  }

 private:
  bool should_continue(const std::string& what, bool allowed) {
    if (bench_.job.stop_requests() == 0 && allowed) return true;
    add_once(left_out_, what);  // two rounds may have the same distance
    return false;
  }

  bool record_outcome(const job::BlockOutcome& outcome, const std::string& what) {
    if (outcome.ok) {
      add_once(done_, what);
    } else {
      failed_.push_back(failed_block(bench_, load_check, what, outcome));
    }
    return outcome.ok;
  }

  // Runs three blocks in one process per rank: a short one to measure the time of a product, one that loads every
  // device, and one that records each rank's own products. Returns true if the processes wait for one more block, which
  // must follow.
  bool multiply() {
    const std::string what = "products";
    if (!should_continue(what, limit_.allows_block())) return false;
    const program::Layout layout{{program::Axis::data, bench_.job.size()}};
    job::BlockRequest request = stage_block(bench_, what, products_of(sizes_), layout, job::TimeSteps{1}, limit_);
    const auto run = [&](int repetitions, const job::Task& task, double share, bool last) {
      request.settings.repetitions = repetitions;
      request.task = task;
      request.deadlines = limit_.deadlines(share);
      return bench_.job.run({{products_set, {}}, request, last});
    };
    constexpr int few = 5, many = 1000;
    constexpr double step_s = 0.5;
    const job::BlockOutcome first = run(few, job::TimeSteps{1}, 0.5, false);
    if (!first.ok) return record_outcome(first, what);
    const double product_s = first.of<job::TimedSamples>(0).step_s.back() / few;
    const int repetitions = static_cast<int>(std::clamp(step_s / product_s, double{few}, double{many}));
    const int steps = static_cast<int>(std::clamp(sizes_.products_s / (repetitions * product_s), 1.0, 20.0));
    // A slow start may have used up the time for this.
    if (should_continue("all GPUs or CPUs under load", limit_.allows_two_more())) {
      const job::BlockOutcome loaded = run(repetitions, job::TimeSteps{steps}, 0.5, false);
      if (!loaded.ok) return record_outcome(loaded, what);
      for (std::size_t rank = 0; rank < load_.ranks.size(); ++rank)
        load_.ranks[rank].gpu = loaded.of<job::TimedSamples>(rank).gpu;
    }
    const bool stay = with_gpus_ && bench_.job.stop_requests() == 0 && limit_.allows_two_more();
    const job::BlockOutcome profiled = run(repetitions, job::RecordTimeline{}, stay ? 0.5 : 1, !stay);
    if (!record_outcome(profiled, what)) return false;
    for (std::size_t rank = 0; rank < load_.ranks.size(); ++rank) {
      for (const job::KindTotal& total : profiled.of<job::TimelineSamples>(rank).totals) {
        if (total.kind != program::Matmul::name) continue;
        load_.ranks[rank].product_flops = sizes_.product.flop() * static_cast<double>(total.operations) / total.seconds;
      }
    }
    return stay;
  }

  // Uses the waiting processes of the products, if any: their GPUs are initialised.
  void copy_with_hosts(bool workers_wait) {
    const std::string what = "copies between host and GPU";
    if (!with_gpus_ || (!workers_wait && !should_continue(what, limit_.allows_block()))) return;
    const program::Layout layout{{program::Axis::data, bench_.job.size()}};
    const job::BlockRequest request =
        stage_block(bench_, "host_copies", products_of(sizes_), layout, job::CopyWithHost{copies_s}, limit_);
    const job::WorkerSet workers{workers_wait ? products_set : job::WorkerSet::alone, {}};
    const job::BlockOutcome outcome = bench_.job.run({workers, request, true});
    if (!record_outcome(outcome, what)) return;
    for (std::size_t rank = 0; rank < load_.ranks.size(); ++rank) {
      const auto& copied = outcome.of<job::HostCopySamples>(rank);
      load_.ranks[rank].device = copied.device;
      load_.ranks[rank].host_copies = copied.rates;
    }
  }

  job::BlockOutcome all_reduce(const std::string& name, const Together& together, std::int64_t bytes) {
    config::Settings settings;
    settings.workload = "collective";
    settings.collective_over = together.over;
    settings.message_bytes = bytes;
    settings.in_place = false;
    settings.repetitions = 10;
    const job::BlockRequest request =
        stage_block(bench_, name, settings, together.layout, job::RecordTimeline{}, limit_);
    return bench_.job.run({{job::WorkerSet::alone, together.ranks}, request, true});
  }

  // Bus bandwidth of a group. The last rank to enter a collective does not wait, so the shortest time of its members is
  // that of the collective. Takes the median over the step, without its last collective, which is one of all ranks.
  double rate(const job::BlockOutcome& outcome, const std::vector<std::size_t>& members, std::int64_t bytes) const {
    std::vector<double> seconds;
    for (const std::size_t number : members) {
      const std::vector<float>& own = outcome.of<job::TimelineSamples>(number).communication_s;
      if (own.empty()) return std::numeric_limits<double>::quiet_NaN();
      seconds.resize(own.size() - 1, std::numeric_limits<double>::infinity());
      for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] = std::min(seconds[i], static_cast<double>(own[i]));
    }
    config::Settings settings;
    settings.workload = "collective";
    settings.message_bytes = bytes;
    const program::Layout group{{program::Axis::data, static_cast<int>(members.size())}};
    const double factor = workloads::workload_of(settings).rate(settings, group).bus_factor;
    return factor * static_cast<double>(bytes) / median(seconds);
  }

  void reduce_in_nodes() {
    const std::string what = "all-reduce in each node";
    if (grid_.of_node() < 2 || !should_continue(what, limit_.allows_block())) return;
    const job::BlockOutcome outcome = all_reduce("node_all_reduce", grid_.in_nodes(), sizes_.node_message_bytes);
    if (!record_outcome(outcome, what)) return;
    for (int node = 0; node < grid_.nodes(); ++node) {
      std::vector<std::size_t> members;
      for (int local = 0; local < grid_.of_node(); ++local) members.push_back(grid_.number(node, local, 0));
      load_.node_reduce_bytes_per_s.push_back(rate(outcome, members, sizes_.node_message_bytes));
    }
  }

  void run_pair_round(const PairRound& round) {
    const std::string what = fmt::format("pairs of nodes {} apart", round.distance);
    if (!should_continue(what, limit_.allows_block())) return;
    const job::BlockOutcome outcome = all_reduce("pairs", grid_.in_pairs(round), sizes_.pair_message_bytes);
    if (!record_outcome(outcome, what)) return;
    for (int node = round.first; node < round.first + round.nodes; ++node) {
      if ((node - round.first) / round.distance % 2 == 1) continue;  // the second node of its pair
      Load::Pair& pair = load_.pairs.emplace_back(Load::Pair{node, node + round.distance, {}});
      for (int local = 0; local < grid_.of_node(); ++local) {
        const auto number = [&](int of) { return grid_.number(of, local, round.first); };
        pair.bytes_per_s.push_back(rate(outcome, {number(pair.first), number(pair.second)}, sizes_.pair_message_bytes));
      }
    }
  }

  const Bench& bench_;
  const bool with_gpus_ = config::traits_of(bench_.backend).ranks_are_gpus;
  RankGrid grid_;
  Limit limit_;
  Sizes sizes_;
  Load load_;
  std::vector<StageFinding> failed_;
  std::vector<std::string> left_out_, done_;
};

}  // namespace

std::vector<PairRound> pair_rounds(int nodes) {
  constexpr std::ptrdiff_t most = 6;
  std::vector<int> distances;
  for (int d = 1; 2 * d <= nodes; d *= 2) distances.push_back(d);
  std::vector<PairRound> rounds;
  // The nearest first, then the farthest, the second nearest, …
  for (std::size_t near = 0, far = distances.size(), turn = 0; near < far; ++turn) {
    const int d = turn % 2 == 0 ? distances[near++] : distances[--far];
    const int count = nodes - nodes % (2 * d);
    rounds.push_back({d, 0, count});
    if (count < nodes) rounds.push_back({d, nodes - count, count});
  }
  if (std::ssize(rounds) > most) rounds.resize(most);
  return rounds;
}

std::optional<RankGrid> RankGrid::of(const std::vector<Node>& nodes) {
  RankGrid grid;
  std::size_t fewest = nodes.empty() ? 0 : nodes.front().ranks.size();
  for (const Node& node : nodes) fewest = std::min(fewest, node.ranks.size());
  if (fewest == 0) return std::nullopt;
  for (const Node& node : nodes) {
    std::vector<int>& ranks = grid.ranks_.emplace_back();
    for (std::size_t i = 0; i < fewest; ++i) ranks.push_back(node.ranks[i].rank);
  }
  for (std::size_t node = 1; node < grid.ranks_.size(); ++node) {
    if (grid.ranks_[node].front() < grid.ranks_[node - 1].back()) return std::nullopt;
  }
  return grid;
}

std::vector<int> RankGrid::chosen(int first, int count) const {
  std::vector<int> all;
  for (int node = first; node < first + count; ++node) all.insert(all.end(), ranks_[node].begin(), ranks_[node].end());
  return all;
}

Together RankGrid::in_nodes() const {
  return {chosen(0, nodes()),
          {{program::Axis::tensor, of_node()}, {program::Axis::data, nodes()}},
          config::CollectiveOver::tensor};
}

// The data axis separates ranks that are `distance` nodes apart; the tensor axis covers those in between.
Together RankGrid::in_pairs(const PairRound& round) const {
  const int between = round.distance * of_node();
  program::Layout layout{{program::Axis::tensor, between}, {program::Axis::data, 2}};
  layout[program::Axis::pipeline] = round.nodes / (2 * round.distance);
  return {chosen(round.first, round.nodes), layout, config::CollectiveOver::data};
}

std::vector<StageFinding> run_load_stage(const Bench& bench, const config::Hardware* hardware) {
  if (const auto why = obstacle(bench, load_check)) return {*why};
  const auto grid = RankGrid::of(bench.nodes);
  if (!grid)
    return {of_job(load_check, Verdict::info, "left out: the launcher does not number ranks node by node",
                   "mpirun --map-by ppr:N:node, or srun --distribution=block")};
  return LoadStage(bench, *grid).run(hardware);
}

}  // namespace harness::doctor
