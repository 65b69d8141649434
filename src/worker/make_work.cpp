#include <cstdlib>

#include "backends/backends.h"
#include "base/error.h"
#include "base/identity.h"
#include "config/registry.h"
#include "data/loader.h"
#include "job/job.h"
#include "machine/cpus.h"
#include "nccl/log.h"
#include "worker/steps.h"
#include "worker/worker.h"
#include "workloads/workload.h"

namespace harness::worker {
namespace {

constexpr double probe_seconds = 0.3;
constexpr std::size_t max_log_bytes = std::size_t{1} << 20;

NameValues identity_of(std::uint64_t program_hash, const job::BlockRequest& request, const backend::Backend& with,
                       const backend::ExecutableRequest& where) {
  NameValues identity = with.identity(where);
  identity.emplace_back("program", fmt::format("{:016x}", program_hash));
  for (const config::Variable& variable : config::registry()) {
    identity.emplace_back("setting " + variable.name, variable.print(request.settings));
  }
  for (const auto& [name, value] : job::recorded_environment(job::own_environment())) {
    if (name != "CUDA_VISIBLE_DEVICES") identity.emplace_back("environment " + name, value);
  }
  return identity;
}

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

// After the backend was asked for its device, near which it may have bound the worker.
std::string bound() {
  machine::MemoryPolicy policy;
  const std::string refused = machine::get_memory_policy(policy);
  return fmt::format("CPUs {}, memory {}", machine::list_of(machine::bound_cpus()),
                     refused.empty() ? describe(policy) : "as usual");
}

job::ProbeSamples probe(const job::BlockRequest& request, std::uint64_t program_hash, const backend::Backend& with,
                        const backend::ExecutableRequest& where) {
  job::ProbeSamples samples{identity_of(program_hash, request, with, where), with.device(where), 0, bound()};
  // A GPU's peak is its hardware file's.
  if (!config::traits_of(request.backend).ranks_are_gpus)
    samples.peak_flops = with.measure_matmul_flops(where.settings.precision, where, probe_seconds);
  return samples;
}

job::ObserveSamples observe(Steps& steps, nccl::LogFile& log, bool keeps) {
  steps.run(1);
  std::string text = log.take(max_log_bytes);
  return {keeps ? std::move(text) : ""};
}

}  // namespace

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
    // Opening the GPU takes ranks unequally long: before they are told to begin, so that all copy at once.
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
    work.task = [log, keeps](Steps* steps) { return observe(*steps, *log, keeps); };
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
