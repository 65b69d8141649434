#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>

#include "backends/backends.h"
#include "base/clock.h"
#include "base/identity.h"
#include "base/text.h"
#include "config/registry.h"
#include "data/loader.h"
#include "job/job.h"
#include "nccl/log.h"
#include "worker/channel.h"
#include "worker/worker.h"
#include "workloads/operations.h"
#include "workloads/workload.h"

namespace harness::worker {
namespace {

// Measures the host's time to fill the inputs.
class TimedInputs final : public program::InputSource {
 public:
  explicit TimedInputs(const program::InputSource& inner) : inner_(inner) {}
  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const override {
    const auto began = std::chrono::steady_clock::now();
    inner_.fill(buffer, step, to);
    seconds_ += seconds_since(began);
  }
  double seconds() const { return seconds_; }

 private:
  const program::InputSource& inner_;
  mutable double seconds_ = 0;  // only one thread calls fill()
};

job::GradientSquares squares_of(const std::vector<workloads::GradientPart>& gradients,
                                backend::Executable& executable) {
  if (gradients.empty()) return {};
  CountedAccess memory(executable);
  constexpr std::int64_t at_once = 1 << 22;  // elements: a copy of all gradients may not fit on the host
  std::vector<float> values;
  job::GradientSquares squares{0, 0};
  for (const workloads::GradientPart& part : gradients) {
    double sum = 0;
    for (std::int64_t from = 0; from < part.view.count; from += at_once) {
      values.resize(std::min(at_once, part.view.count - from));
      memory.read(part.view.part(from, std::ssize(values)), std::as_writable_bytes(std::span(values)));
      for (const float value : values) sum += static_cast<double>(value) * value;
    }
    (part.sharded ? squares.sharded : squares.replicated) += sum / (part.holders * part.scale * part.scale);
  }
  return squares;
}

constexpr double probe_seconds = 0.3;

// The request of a block's worker to its backend.
backend::ExecutableRequest wanted_of(const job::WorkerOrder& order) {
  const job::BlockRequest& request = order.request;
  backend::ExecutableRequest wanted;
  wanted.layout = request.layout;
  wanted.rank = order.rank;
  wanted.settings = request.settings;
  wanted.seed = request.seed;
  wanted.threads = order.threads;
  wanted.timeout_s = 2 * request.deadlines.step_s + 5;
  wanted.local_rank = order.local_rank;
  wanted.local_ranks = order.local_ranks;
  wanted.share_devices = request.share_gpus;
  wanted.tuning = std::make_shared<const backend::Tuning>(request.tuning.begin(), request.tuning.end());
  return wanted;
}

job::ProbeSamples probe(const job::BlockRequest& request, std::uint64_t program_hash, const backend::Backend& with,
                        const backend::ExecutableRequest& where) {
  job::ProbeSamples samples{with.identity(where), with.device(where), 0};
  NameValues& identity = samples.identity;
  identity.emplace_back("program", fmt::format("{:016x}", program_hash));
  for (const config::Variable& variable : config::registry()) {
    identity.emplace_back("setting " + variable.name, variable.print(request.settings));
  }
  for (const auto& [name, value] : job::recorded_environment(job::own_environment())) {
    if (name != "CUDA_VISIBLE_DEVICES") identity.emplace_back("environment " + name, value);
  }
  // A GPU's peak comes from its hardware file.
  if (!config::traits_of(request.backend).ranks_are_gpus)
    samples.peak_flops = with.measure_matmul_flops(where.settings.precision, where, probe_seconds);
  return samples;
}

}  // namespace

std::vector<double> Steps::run(int count) {
  if (!before_step_) return run_together(count);
  std::vector<double> durations;
  for (int i = 0; i < count; ++i) {
    const auto began = std::chrono::steady_clock::now();
    before_step_(done_);
    const double before_s = seconds_since(began);
    durations.push_back(before_s + run_together(1).front());
  }
  return durations;
}

std::vector<double> Steps::run_together(int count) {
  std::vector<double> durations;
  if (count <= 0) return durations;
  const std::vector<double> completions = executable_.run(done_, count, inputs_);
  if (std::ssize(completions) != count + 1)
    fail("the backend timed {} steps of {}", std::ssize(completions) - 1, count);
  for (std::size_t i = 1; i < completions.size(); ++i) durations.push_back(completions[i] - completions[i - 1]);
  if (done_ == 0) first_step_s_ = durations.front();
  done_ += count;
  run_ += count;
  return durations;
}

Steps::Profiled Steps::run_profiled() {
  const TimedInputs timed(inputs_);
  Profiled profiled{executable_.run_profiled(done_, timed), 0};
  profiled.loading_s = timed.seconds();
  // On a device, time starts with the first operation, after the wait for data.
  const auto starts = [&](const program::Interval& interval) { return interval.start_s < profiled.loading_s; };
  if (inputs_.is_part_of_step() && std::ranges::any_of(profiled.intervals, starts)) {
    for (program::Interval& interval : profiled.intervals) {
      interval.start_s += profiled.loading_s;
      interval.end_s += profiled.loading_s;
    }
  }
  ++done_;
  return profiled;
}

// Reads the whole ring of losses at once.
std::vector<float> Steps::losses() const {
  std::vector<float> losses(run_);
  if (losses.empty()) return losses;
  const program::View ring = workloads::find_buffer(program_, workloads::losses_buffer);
  if (run_ > ring.count) fail("a block of {} steps does not fit in the buffer of {} losses", run_, ring.count);
  executable_.read(ring.part(0, run_), std::as_writable_bytes(std::span(losses)));
  return losses;
}

std::int64_t Steps::updates() const {
  const program::View counter = workloads::find_buffer(program_, workloads::updates_buffer);
  if (!counter.present()) return done_;
  std::int32_t updates = 0;
  executable_.read(counter, std::as_writable_bytes(std::span(&updates, 1)));
  return updates;
}

job::TimedSamples time_steps(Steps& steps, int warmup_steps, int timed_steps) {
  job::TimedSamples samples;
  // Warm-up and timed steps in two calls: the wall time of the second checks the sum of its steps.
  samples.step_s = steps.run(warmup_steps);
  const std::int64_t updates = steps.updates();
  steps.executable().begin_watch();
  const auto began = std::chrono::steady_clock::now();
  const std::vector<double> timed = steps.run(timed_steps);
  samples.timed_total_s = seconds_since(began);
  samples.gpu = steps.executable().end_watch();
  samples.step_s.insert(samples.step_s.end(), timed.begin(), timed.end());
  samples.losses = steps.losses();
  samples.skipped_steps = static_cast<int>(timed_steps - (steps.updates() - updates));
  return samples;
}

job::TimelineSamples record_timeline(Steps& steps, int warmup_steps, int profiled_steps, bool keeps_intervals,
                                     int ranks, const std::vector<workloads::GradientPart>& gradients) {
  job::TimelineSamples samples;
  if (warmup_steps > 0) {
    steps.run(1);
    samples.gradient = squares_of(gradients, steps.executable());
    steps.run(warmup_steps - 1);
  }
  for (int i = 0; i < profiled_steps; ++i) {
    Steps::Profiled profiled = steps.run_profiled();
    if (warmup_steps == 0 && i == 0) samples.gradient = squares_of(gradients, steps.executable());
    job::ProfiledStep& step = samples.offered.emplace_back(job::sum_up(steps.program(), profiled.intervals, ranks));
    step.loading_s = profiled.loading_s;
    if (keeps_intervals) step.timeline = std::move(profiled.intervals);
  }
  return samples;
}

void check_outputs(const Steps& steps, const workloads::OutputCheck& check) {
  CountedAccess memory(steps.executable());
  check.prepare(memory);
  steps.executable().run(steps.done(), 1, steps.inputs());
  check.check(memory);
}

Work make_work(const job::WorkerOrder& order, std::shared_ptr<backend::Connections> connections,
               const AroundOf& around) {
  const job::BlockRequest& request = order.request;
  const backend::Backend& with = backends::get(request.backend);
  const program::Coordinates at = request.layout.coordinates(order.rank);
  const workloads::Workload& workload = workloads::workload_of(request.settings);
  const program::ProgramSet set = workload.programs(request.model, request.settings, request.layout);
  const int role = set.role_of(at);

  Work work;
  work.program_hash = program::hash(set);
  backend::ExecutableRequest wanted = wanted_of(order);
  wanted.groups = set.groups;
  if (std::holds_alternative<job::Probe>(request.task)) {
    work.task = [=, &with, hash = work.program_hash](Steps*) { return probe(request, hash, with, wanted); };
    return work;
  }
  if (const auto* copying = std::get_if<job::CopyWithHost>(&request.task)) {
    // Ranks take unequally long to open their GPUs, so they do it before the start signal: then all copy at once.
    work.task = [&with, wanted, device = with.device(wanted), seconds = copying->seconds](Steps*) {
      return job::HostCopySamples{device, with.measure_host_copies(wanted, seconds)};
    };
    return work;
  }
  auto program = std::make_unique<program::Program>(
      program::lower(set.roles[role], config::fused_for(request.backend, request.settings)));
  wanted.program = program.get();
  if (const auto* tuning = std::get_if<job::Tune>(&request.task)) {
    wanted.tuning_s = tuning->seconds;
    if (const char* text = test_hook("HARNESS_TEST_TUNING_S")) wanted.tuning_s = std::atof(text);
    work.task = [&with, wanted, kept = std::shared_ptr(std::move(program))](Steps*) {
      const backend::Tuning found = with.tune(wanted);
      return job::TuneSamples{{found.begin(), found.end()}};
    };
    return work;
  }
  if (const auto* observing = std::get_if<job::Observe>(&request.task)) {
    const auto log = std::make_shared<nccl::LogFile>();
    const bool keeps = order.rank < observing->logs;
    work.task = [log, keeps](Steps* steps) {
      steps->run(1);
      std::string text = log->take(job::ObserveSamples::most_bytes);
      return job::ObserveSamples{keeps ? std::move(text) : ""};
    };
  } else if (const auto* timeline = std::get_if<job::RecordTimeline>(&request.task)) {
    const bool keeps = timeline->ranks == config::Timelines::all || set.first_rank(role) == order.rank;
    work.task = [=, warmup = request.warmup_steps, profiled = timeline->steps, ranks = request.layout.ranks(),
                 gradients = workload.gradients(request.model, request.settings, request.layout, at, *program)](
                    Steps* steps) { return record_timeline(*steps, warmup, profiled, keeps, ranks, gradients); };
  } else {
    const int timed = std::get<job::TimeSteps>(request.task).steps;
    work.task = [=, warmup = request.warmup_steps](Steps* steps) { return time_steps(*steps, warmup, timed); };
  }
  wanted.around = around;
  wanted.connections = std::move(connections);
  work.executable = with.create(wanted);
  work.program = std::move(program);
  work.inputs = data::with_loader(workload.inputs(request.model, request.settings, request.layout, at, request.seed),
                                  *work.program, request.settings, request.model.vocab);
  work.check = workload.output_check(request.settings, request.layout, at, *work.program);
  return work;
}

int worker_main() {
  return run_worker([](const job::WorkerOrder& order, std::shared_ptr<backend::Connections> connections) {
    return make_work(order, std::move(connections));
  });
}

}  // namespace harness::worker
