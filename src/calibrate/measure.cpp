#include "calibrate/calibrate.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <variant>

#include "base/median.h"
#include "base/text.h"
#include "base/units.h"
#include "config/backend.h"
#include "program/count.h"
#include "workloads/workload.h"

namespace harness::calibrate {
namespace {

using config::Precision;
using Samples = std::vector<double>;

constexpr int repetitions = 10;

config::Settings settings_for(const Wanted& wanted, const char* workload, Precision precision) {
  config::Settings s;
  s.workload = workload;
  s.precision = precision;
  s.repetitions = repetitions;
  s.threads = wanted.settings.threads;
  s.attention = wanted.settings.attention;
  s.allreduce_algorithm = wanted.settings.allreduce_algorithm;
  s.bucket_size_bytes = wanted.settings.bucket_size_bytes;
  s.nccl = wanted.settings.nccl;
  s.in_place = false;
  return s;
}

// Groups of `ranks` consecutive ranks that all communicate at once.
struct Groups {
  program::Layout layout;
  config::CollectiveOver over{};
  int ranks = 1;
};

template <class Look>
void each_operation(const ProfiledStep& step, Look&& look) {
  for (program::OperationId id = 0; std::cmp_less(id, step.program.step.size()); ++id) look(id, step.program.step[id]);
}

// The last rank to enter a collective does not wait, so the shortest time of its members is the collective's own.
void take_shortest(const ProfiledStep& step, std::map<program::OperationId, double>& shortest) {
  each_operation(step, [&](program::OperationId id, const program::Operation&) {
    const auto known = shortest.try_emplace(id, step.seconds(id)).first;
    known->second = std::min(known->second, step.seconds(id));
  });
}

class Bench {
 public:
  Bench(job::Job& job, const Wanted& wanted) : job_(job), wanted_(wanted), all_{{program::Axis::data, job.size()}} {}

  // Runs a block as a sweep does, with the backend's tuned choices.
  job::BlockOutcome run(const config::Settings& settings, const program::Layout& layout, const job::Task& task,
                        int warmup_steps = 1, bool last = false) {
    job::BlockRequest request;
    request.case_name = settings.workload;
    request.backend = wanted_.backend;
    if (settings.workload == config::training_workload) request.model = wanted_.layer;
    request.settings = settings;
    request.layout = layout;
    request.task = task;
    request.tuning = {tuning_.begin(), tuning_.end()};
    request.warmup_steps = warmup_steps;
    request.deadlines = {300, 120};
    job::BlockOutcome outcome = job_.run({{0, {}}, request, last});
    if (!outcome.ok) fail("the measurement of {} failed: {}", settings.workload, outcome.reason);
    return outcome;
  }

  // Asks a worker on each rank for its device, and ends the workers.
  NameValues identity() {
    const config::Settings s = settings_for(wanted_, "gemm", wanted_.precisions.front());
    return run(s, all_, job::Probe{}, 1, true).of<job::ProbeSamples>(0).identity;
  }

  // Lets the backend tune the products of a layer, as in a sweep.
  void tune() {
    constexpr double seconds = 10;  // per layer
    if (!config::traits_of(wanted_.backend).tunes) return;
    for (const Precision precision : wanted_.precisions) {
      for (const std::int64_t micro_batch : wanted_.micro_batches) {
        const auto layer = layer_step(micro_batch, precision, program::Axis::data);
        if (!layer) continue;
        const job::BlockOutcome outcome = run(layer->settings, layer->layout, job::Tune{seconds});
        for (int rank = 0; rank < layer->layout.ranks(); ++rank) {  // ranks agree; the lowest rank's choices are kept
          const NameValues& found = outcome.of<job::TuneSamples>(rank).tuning;
          tuning_.insert(found.begin(), found.end());
        }
      }
    }
  }

  void round() {
    for (const Precision precision : wanted_.precisions) {
      for (std::size_t i = 0; i < wanted_.products.size(); ++i) product(i, precision);
      for (const std::int64_t micro_batch : wanted_.micro_batches) {
        profile_layer(micro_batch, precision, program::Axis::data);
        if (job_.size() > 1) profile_layer(micro_batch, precision, program::Axis::tensor);
      }
    }
    if (job_.size() > 1) collectives({all_, config::CollectiveOver::world, job_.size()}, communications_);
    if (const std::vector<job::RankPlace>& places = job_.places(); measures_within_nodes(places)) {
      const int of_node = places.front().local_ranks;
      const program::Layout nodes{{program::Axis::tensor, of_node}, {program::Axis::data, job_.size() / of_node}};
      collectives({nodes, config::CollectiveOver::tensor, of_node}, within_node_);
    }
    empty_step();
  }

  void end() { run(nearly_nothing(), all_, job::TimeSteps{repetitions}, 1, true); }

  Measured result() const {
    Measured m;
    m.backend = wanted_.backend;
    const std::vector<job::RankPlace>& places = job_.places();
    m.ranks = job_.size();
    m.nodes = std::ranges::max(places, {}, &job::RankPlace::node).node + 1;
    m.ranks_of_node = places.front().local_ranks;
    m.host = places.front().host;
    for (const auto& [key, samples] : products_) {
      if (const double s = median(samples); s > 0)
        m.peak_flops[key.first] = std::max(m.peak_flops[key.first], wanted_.products[key.second].flop() / s);
    }
    m.communications = curves_of(communications_);
    m.within_node = curves_of(within_node_);
    for (const auto& [key, samples] : communications_)
      m.largest_message_bytes = std::max(m.largest_message_bytes, static_cast<std::int64_t>(key.second));
    m.step_s = median(steps_);
    of_steps_.add_to(m);
    return m;
  }

 private:
  // GPU clocks are higher in the first tenths of a second than in a training run, where power and heat limit them. So
  // warm-up steps keep the GPU busy for half a second before a profiled step.
  int sustained_steps(const config::Settings& settings, const program::Layout& layout) {
    constexpr double busy_s = 0.5;
    constexpr int most = 4000;
    if (!config::traits_of(wanted_.backend).ranks_are_gpus) return 1;
    const auto known = std::ranges::find(sustained_, settings, &std::pair<config::Settings, int>::first);
    if (known != sustained_.end()) return known->second;
    const job::BlockOutcome outcome = run(settings, layout, job::TimeSteps{2});
    double step_s = 0;
    for (int rank = 0; rank < layout.ranks(); ++rank)
      step_s = std::max(step_s, outcome.of<job::TimedSamples>(rank).step_s.back());
    const int steps = static_cast<int>(std::clamp(busy_s / step_s, 1.0, double{most}));
    sustained_.emplace_back(settings, steps);
    return steps;
  }

  template <class Look>
  void profile(const config::Settings& settings, const program::Layout& layout, Look&& look) {
    const job::BlockOutcome outcome =
        run(settings, layout, job::RecordTimeline{config::Timelines::all}, sustained_steps(settings, layout));
    const program::ProgramSet set = program::lower(workloads::build_programs(wanted_.layer, settings, layout),
                                                   config::fused_for(wanted_.backend, settings));
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const program::Program& program = set.roles[set.role_of(layout.coordinates(rank))];
      ProfiledStep step{program, std::vector<program::Interval>(program.step.size())};
      for (const program::Interval& i : outcome.of<job::TimelineSamples>(rank).timeline)
        step.intervals[i.operation] = i;
      look(rank, step);
    }
  }

  void product(std::size_t number, Precision precision) {
    config::Settings s = settings_for(wanted_, "gemm", precision);
    s.gemm = wanted_.products[number];
    profile(s, all_, [&](int, const ProfiledStep& step) {
      each_operation(step, [&](program::OperationId id, const program::Operation& op) {
        if (std::holds_alternative<program::Matmul>(op.action))
          products_[{precision, number}].push_back(step.seconds(id));
      });
    });
  }

  using OfSizes = std::map<std::pair<std::string, double>, Samples>;

  void collectives(const Groups& groups, OfSizes& samples) {
    using Kind = config::CollectiveKind;
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::send_recv}) {
      for (const std::int64_t bytes : wanted_.message_bytes) collective(kind, bytes, groups, samples);
    }
  }

  void collective(config::CollectiveKind kind, std::int64_t bytes, const Groups& groups, OfSizes& samples) {
    config::Settings s = settings_for(wanted_, "collective", Precision::fp32);
    const std::int64_t unit = 4LL * groups.ranks;
    s.collective = kind;
    s.collective_over = groups.over;
    s.message_bytes = (bytes + unit - 1) / unit * unit;
    std::vector<std::map<program::OperationId, double>> shortest(groups.layout.ranks() / groups.ranks);
    std::map<program::OperationId, std::string> names;
    profile(s, groups.layout, [&](int rank, const ProfiledStep& step) {
      take_shortest(step, shortest[rank / groups.ranks]);
      each_operation(step, [&](program::OperationId id, const program::Operation& op) {
        const bool counts = program::is_communication(op.action) && op.label.phase == program::Phase::forward;
        if (counts && !std::holds_alternative<program::Receive>(op.action)) names[id] = program::name_of(op.action);
      });
    });
    for (const auto& [id, name] : names) {
      for (const auto& of_group : shortest)
        samples[{name, static_cast<double>(s.message_bytes)}].push_back(of_group.at(id));
    }
  }

  // A step of two micro-batches of a layer, to both write and accumulate gradients. Nothing if it cannot run.
  struct LayerStep {
    config::Settings settings;
    program::Layout layout;
  };
  std::optional<LayerStep> layer_step(std::int64_t micro_batch, Precision precision, program::Axis axis) const {
    constexpr std::int64_t micro_batches = 2;
    config::Settings s = settings_for(wanted_, config::training_workload.data(), precision);
    const bool shards = axis == program::Axis::tensor;
    if (shards) s.layout[axis] = job_.size();
    s.micro_batch_size = micro_batch;
    s.global_batch_size = micro_batch * micro_batches * (shards ? 1 : job_.size());
    const program::Layout layout{{axis, job_.size()}};
    const workloads::Workload& workload = workloads::workload_of(s);
    if (!workload.why_impossible(wanted_.layer, s).empty() ||
        !workload.why_impossible_on(wanted_.layer, s, layout).empty())
      return std::nullopt;
    return LayerStep{s, layout};
  }

  void profile_layer(std::int64_t micro_batch, Precision precision, program::Axis axis) {
    const auto layer = layer_step(micro_batch, precision, axis);
    if (!layer) return;
    profile(layer->settings, layer->layout, [&](int, const ProfiledStep& step) {
      of_steps_.take_computations(step, precision);
      of_steps_.take_hops(step);
    });
  }

  config::Settings nearly_nothing() const {
    config::Settings s = settings_for(wanted_, "gemm", wanted_.precisions.front());
    s.gemm = {8, 8, 8};
    s.repetitions = 1;
    return s;
  }

  void empty_step() {
    std::map<program::OperationId, double> shortest;
    profile(nearly_nothing(), all_, [&](int, const ProfiledStep& step) {
      take_shortest(step, shortest);
      of_steps_.take_hops(step);
    });
    const job::BlockOutcome outcome = run(nearly_nothing(), all_, job::TimeSteps{repetitions});
    double busy_s = 0;  // the operations run one after the other
    for (const auto& [id, seconds] : shortest) busy_s += seconds;
    Samples timed;
    for (int rank = 0; rank < job_.size(); ++rank) {
      const Samples& own = outcome.of<job::TimedSamples>(rank).step_s;
      timed.insert(timed.end(), own.begin() + 1, own.end());
    }
    steps_.push_back(std::max(0.0, median(timed) - busy_s));
  }

  job::Job& job_;
  const Wanted& wanted_;
  program::Layout all_;
  std::map<std::pair<Precision, std::size_t>, Samples> products_;
  OfSizes communications_, within_node_;
  StepSamples of_steps_;
  Samples steps_;
  std::map<std::string, std::string> tuning_;
  std::vector<std::pair<config::Settings, int>> sustained_;  // cached results of sustained_steps()
};

// Parses "132" as 132 and "9.0" as 90; 0 if it is neither.
int digits_of(std::string text) {
  std::erase(text, '.');
  return number_in<int>(text).value_or(0);
}

}  // namespace

Device device_of(job::Job& job, const Wanted& wanted) {
  const job::RankPlace& first = job.places().front();
  if (!config::traits_of(wanted.backend).ranks_are_gpus)
    return {.name = first.device, .memory_bytes = first.memory_bytes / first.local_ranks};
  const NameValues identity = Bench(job, wanted).identity();
  return {.name = value_of(identity, "device"),
          .sms = digits_of(value_of(identity, "multiprocessors")),
          .compute_capability = digits_of(value_of(identity, "compute_capability"))};
}

bool measures_within_nodes(const std::vector<job::RankPlace>& places) {
  const int of_node = places.front().local_ranks, ranks = static_cast<int>(places.size());
  if (of_node < 2 || of_node == ranks) return false;
  return std::ranges::all_of(places, [&](const job::RankPlace& place) {
    return place.local_ranks == of_node && place.node == place.rank / of_node;
  });
}

Measured measure(job::Job& job, const Wanted& wanted, const Device& device, double limit_s,
                 const std::function<void(const std::string&)>& say) {
  constexpr int most_rounds = 50;
  const Clock& clock = job.clock();
  const double began_s = clock.seconds();
  Bench bench(job, wanted);
  bench.tune();
  int rounds = 0;
  double used_s = clock.seconds() - began_s, round_s = 0;
  do {
    const double before_s = used_s;
    bench.round();
    used_s = clock.seconds() - began_s;
    round_s = used_s - before_s;
    ++rounds;
    say(fmt::format("round {}: {}", rounds, show_seconds(round_s)));
  } while (rounds < most_rounds && used_s + round_s < limit_s && job.stop_requests() == 0);
  bench.end();
  Measured measured = bench.result();
  measured.device = device;
  measured.rounds = rounds;
  measured.took_s = used_s;
  return measured;
}

}  // namespace harness::calibrate
