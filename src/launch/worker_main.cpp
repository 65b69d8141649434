#include <cstdlib>

#include "backends/backends.h"
#include "base/error.h"
#include "config/registry.h"
#include "launch/environment.h"
#include "launch/test_fault.h"
#include "launch/worker.h"
#include "nccl/log_file.h"
#include "workloads/workload.h"

namespace harness::launch {
namespace {

constexpr double probe_seconds = 0.3;
// Whose logs are kept: enough to hold a first rank of every kind of communicator, and little enough for rank 0.
constexpr int logging_ranks = 64;
constexpr std::size_t max_log_bytes = std::size_t{1} << 20;

// What runs instead of steps in the modes that measure none.
std::function<void(measure::BlockSamples&)> probing(const backend::Backend& with,
                                                    const backend::ExecutableRequest& where) {
  return [&with, where](measure::BlockSamples& samples) {
    samples.device = with.device(where);
    if (config::traits_of(with.kind()).ranks_are_gpus) return;  // a GPU's peak is its hardware file's
    samples.peak_flops = with.measure_matmul_flops(where.settings.precision, where, probe_seconds);
  };
}

NameValues identity_of(const Work& work, const BlockRequest& request, const backend::Backend& with,
                       const backend::ExecutableRequest& where) {
  NameValues identity = with.identity(where);
  identity.emplace_back("program", fmt::format("{:016x}", work.program_hash));
  for (const config::Variable& variable : config::registry()) {
    identity.emplace_back("setting " + variable.name, variable.print(request.settings));
  }
  for (const auto& [name, value] : recorded_environment(own_environment())) {
    if (name != "CUDA_VISIBLE_DEVICES") identity.emplace_back("environment " + name, value);
  }
  return identity;
}

}  // namespace

Work make_work(const WorkerOrder& order) {
  const BlockRequest& request = order.request;
  const backend::Backend& with = backends::get(request.backend);
  const program::Coordinates at = request.layout.coordinates(order.rank);
  const workloads::Workload& workload = workloads::workload_of(request.settings);
  const program::ProgramSet set = workload.programs(request.model, request.settings, request.layout);
  const int role = set.role_of(at);

  Work work;
  work.program_hash = program::hash(set);
  backend::ExecutableRequest wanted;
  wanted.groups = set.groups;
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
  if (request.mode == measure::BlockMode::probe) {
    work.identity = identity_of(work, request, with, wanted);
    work.probe = probing(with, wanted);
    return work;
  }
  work.program = std::make_unique<program::Program>(program::lower(set.roles[role], with.declared()));
  wanted.program = work.program.get();
  if (request.mode == measure::BlockMode::tuning) {
    if (const char* text = std::getenv("HARNESS_TEST_TUNING_S")) wanted.tuning_s = std::atof(text);
    work.probe = [&with, wanted](measure::BlockSamples& samples) {
      const backend::Tuning found = with.tune(wanted);
      samples.tuning.assign(found.begin(), found.end());
    };
    return work;
  }
  work.inputs = workload.inputs(request.model, request.settings, request.layout, at, request.seed);
  work.check = workload.output_check(request.settings, request.layout, at, *work.program);
  work.keeps_timeline = request.timeline == config::Timelines::all || set.first_rank(role) == order.rank;
  if (request.mode == measure::BlockMode::observe) {
    const auto log = std::make_shared<nccl::LogFile>();
    work.conclude = [log, rank = order.rank](measure::BlockSamples& samples) {
      std::string text = log->take(max_log_bytes);
      if (rank < logging_ranks) samples.nccl_log = std::move(text);
    };
  }
  const TestFault fault = TestFault::from_environment(order.rank, request.case_name, request.settings);
  wanted.delayed_stream = fault.delayed_stream();
  wanted.delay_s = fault.seconds();
  work.executable = with.create(wanted);
  return work;
}

int worker_main() {
  return run_worker(make_work);
}

}  // namespace harness::launch
