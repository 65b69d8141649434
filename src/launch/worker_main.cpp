#include "base/error.h"
#include "config/registry.h"
#include "launch/environment.h"
#include "launch/worker.h"
#include "workloads/workload.h"

namespace harness {
namespace {

constexpr double probe_seconds = 0.3;  // per precision

}  // namespace

Work make_work(const WorkerOrder& order) {
  const BlockRequest& request = order.request;
  const Backend& with = backend(request.backend);
  const Coordinates at = request.layout.coordinates(order.rank);
  const ProgramSet set = build_programs(request.model, request.settings, request.layout);
  const int role = set.role_of(at);

  Work work;
  work.program_hash = hash(set);
  if (request.mode == BlockMode::probe) {
    ExecutableRequest where;
    where.threads = order.threads;
    work.identity = with.identity(where);
    work.identity.emplace_back("program", fmt::format("{:016x}", work.program_hash));
    for (const Variable& variable : registry()) {
      work.identity.emplace_back("setting " + variable.name, variable.print(request.settings));
    }
    for (const auto& [name, value] : recorded_environment(own_environment())) {
      if (name != "CUDA_VISIBLE_DEVICES") work.identity.emplace_back("environment " + name, value);
    }
    work.probe = [&with, where](BlockSamples& samples) {
      samples.peak_flops_fp32 = with.measure_matmul_flops(Precision::fp32, where, probe_seconds);
      samples.peak_flops_bf16 = with.measure_matmul_flops(Precision::bf16, where, probe_seconds);
    };
    return work;
  }
  work.program = std::make_unique<Program>(lower(set.roles[static_cast<std::size_t>(role)], with.declared()));
  work.inputs = make_inputs(request.model, request.settings, request.layout, at, request.seed);
  work.speaks_for_role = set.first_rank(role) == order.rank;
  work.executable = with.create({.program = work.program.get(),
                                 .groups = set.groups,
                                 .layout = request.layout,
                                 .rank = order.rank,
                                 .settings = request.settings,
                                 .seed = request.seed,
                                 .threads = order.threads,
                                 .timeout_s = 2 * request.deadlines.step_s + 5,
                                 .local_rank = order.local_rank,
                                 .local_ranks = order.local_ranks,
                                 .share_devices = request.share_gpus});
  return work;
}

int worker_main() {
  return run_worker(make_work);
}

}  // namespace harness
