// A whole training step on one rank, as timed and with every operation recorded. The first runs as blocks do. The ratio
// of the two is an upper bound of the cost of recording: timed steps record only their end.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "backend/backend.h"
#include "backends/backends.h"
#include "workloads/workload.h"

namespace {

using namespace harness;

struct Rank {
  config::Model model{"bench", 6, 512, 8, 8192, 512};
  config::Settings settings;
  program::Program program;
  std::unique_ptr<program::InputSource> inputs;
  std::unique_ptr<backend::Executable> executable;

  explicit Rank(config::Precision precision) {
    settings.precision = precision;
    settings.global_batch_size = settings.micro_batch_size = 4;
    const backend::Backend& cpu = backends::get(config::BackendKind::cpu);
    program = program::lower(workloads::build_programs(model, settings, {}).roles.front(), cpu.declared());
    inputs = workloads::workload_of(settings).inputs(model, settings, {}, {}, 1);
    backend::ExecutableRequest request;
    request.program = &program;
    request.groups = workloads::build_programs(model, settings, {}).groups;
    request.settings = settings;
    executable = cpu.create(request);
    static_cast<void>(executable->publish());
    executable->connect({}, 10);
    executable->initialize();
    executable->run(0, 2, *inputs);
  }
};

void step(benchmark::State& state, config::Precision precision, bool profiled) {
  Rank rank(precision);
  std::int64_t number = 2;
  for (auto _ : state) {
    if (profiled) {
      benchmark::DoNotOptimize(rank.executable->run_profiled(number++, *rank.inputs));
    } else {
      benchmark::DoNotOptimize(rank.executable->run(number++, 1, *rank.inputs));
    }
  }
  state.counters["operations"] = static_cast<double>(rank.program.step.size());
}
BENCHMARK_CAPTURE(step, fp32_timed, config::Precision::fp32, false)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, fp32_recorded, config::Precision::fp32, true)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, bf16_timed, config::Precision::bf16, false)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(step, bf16_recorded, config::Precision::bf16, true)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
