// The cost of planning (building, verifying, counting and laying out the Programs of a case) and of predicting. The
// simulation must predict Llama 3 405B on 16,384 GPUs within 1 s and 256 MiB. Runs in the checkout.
#include <benchmark/benchmark.h>

#include "config/experiment.h"
#include "machine/conditions.h"
#include "plan/plan.h"
#include "sim/simulation.h"
#include "workloads/workload.h"

namespace {

using namespace harness;
using program::Axis;

// Arguments: tensor, pipeline, data parallel, micro-batches.
void survey_case(benchmark::State& state) {
  const auto at = [&](int i) { return static_cast<int>(state.range(i)); };
  plan::PlannedCase c;
  c.name = "bench";
  c.settings.precision = config::Precision::bf16;
  c.settings.layout = {{Axis::tensor, at(0)}, {Axis::pipeline, at(1)}};
  c.settings.global_batch_size = std::int64_t{1} * at(2) * at(3);
  c.layout = {{Axis::tensor, at(0)}, {Axis::data, at(2)}, {Axis::pipeline, at(1)}};
  std::int64_t operations = 0;
  for (auto _ : state) {
    const plan::Survey s =
        plan::Surveyor({"gpt3-1.3b", 24, 2048, 16, 50304, 2048}, config::BackendKind::cuda).survey(c);
    operations = 0;
    for (const program::Count& count : s.counts) operations += count.operations;
    benchmark::DoNotOptimize(operations);
  }
  state.counters["operations"] = static_cast<double>(operations);
  state.counters["ranks"] = c.layout.ranks();
  state.counters["per_operation"] = benchmark::Counter(
      static_cast<double>(operations), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(survey_case)
    ->Args({1, 1, 128, 4})
    ->Args({1, 1, 1, 64})  // a long accumulation on one rank: `per_operation` stays constant with eight times as many
    ->Args({1, 1, 1, 512})
    ->Args({8, 1, 16, 32})
    ->Args({8, 2, 8, 64})
    ->Args({8, 8, 256, 8})
    ->Unit(benchmark::kMillisecond);

// Published with 126 layers on 16 stages, of which the first and the last have one less (Grattafiori et al. 2024, "The
// Llama 3 Herd of Models", table 3 and section 3.3.2). Here each stage has eight.
constexpr const char* job = R"(
backend: sim
hardware: h100-sxm
calibration: megatron-2025
fabric: {node: 400 GB/s}
model: llama3-405b
baseline: {precision: bf16, layout: {tensor_parallel: 8, pipeline_parallel: 16}, sequence_parallel: true}
)";

// Arguments: data parallel, micro-batches, and whether a GPU is slow.
void predict_step(benchmark::State& state) {
  const auto at = [&](int i) { return static_cast<int>(state.range(i)); };
  config::Experiment e = config::load_experiment("configs/bench.yaml", {}, job);
  e.model.layers = 128;
  e.baseline.pipeline_schedule = config::PipelineSchedule::interleaved;
  e.baseline.global_batch_size = std::int64_t{1} * at(0) * at(1);
  const program::Layout layout{{Axis::tensor, 8}, {Axis::data, at(0)}, {Axis::pipeline, 16}};
  if (at(2) != 0) e.faults.slow_gpus = {{layout.ranks() / 3, 0.8}};
  const program::ProgramSet set = workloads::build_programs(e.model, e.baseline, layout);
  const sim::Network network = sim::network_of(e, machine::Topology::node_by_node(layout.ranks(), 8).node_of);
  double step_s = 0;
  for (auto _ : state) {
    const sim::Simulation simulation(set, e.baseline, e, network);
    step_s = simulation.prediction().step_s;
  }
  state.counters["ranks"] = layout.ranks();
  state.counters["step_s"] = step_s;
}
BENCHMARK(predict_step)->Args({128, 16, 0})->Args({128, 16, 1})->Args({128, 64, 0})->Unit(benchmark::kMillisecond);

}  // namespace
