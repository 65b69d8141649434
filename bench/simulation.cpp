// The time that simulating a step takes, without building its Programs: Llama 3 405B on 16,384 GPUs, the case that the
// simulation is held to (at most 1 s and 256 MiB).
#include <benchmark/benchmark.h>

#include "config/experiment.h"
#include "sim/costs.h"
#include "sim/critical_path.h"
#include "sim/rank_classes.h"
#include "workloads/workload.h"

namespace {

using namespace harness;
using program::Axis;

// Published with 126 layers on 16 stages (Grattafiori et al. 2024, "The Llama 3 Herd of Models", table 3 and section
// 3.3.2), of which the first and the last have one less; here each has eight.
config::Model llama3_405b() {
  config::Model model = *config::model_preset("llama3-405b");
  model.layers = 128;
  return model;
}

struct Job {
  config::Settings settings;
  program::Layout layout;

  Job(int tensor, int pipeline, int data, int micro_batches) {
    settings.precision = config::Precision::bf16;
    settings.layout = {{Axis::tensor, tensor}, {Axis::pipeline, pipeline}};
    settings.global_batch_size = static_cast<std::int64_t>(data) * micro_batches;
    settings.pipeline_schedule =
        pipeline > 1 ? config::PipelineSchedule::interleaved : config::PipelineSchedule::one_forward_one_backward;
    settings.sequence_parallel = true;
    layout = {{Axis::tensor, tensor}, {Axis::data, data}, {Axis::pipeline, pipeline}};
  }
};

config::Calibration calibration() {
  config::Calibration c;
  c.product_share = 0.8;
  c.memory_share = 0.85;
  c.network_share = 0.9;
  c.attention_forward = 0.6;
  c.attention_backward = 0.5;
  c.network_start_s = 60e-6;
  c.network_hop_s = 20e-6;
  c.message_start_s = 30e-6;
  c.taken_by_communication = 0.13;
  c.kept_by_communication = 0.9;
  return c;
}

sim::Network nodes_of_eight(int ranks) {
  sim::Network network{.rank_bytes_per_s = 450e9, .node_bytes_per_s = 400e9, .switches_reduce = true, .node_of = {}};
  for (int rank = 0; rank < ranks; ++rank) network.node_of.push_back(rank / 8);
  return network;
}

const sim::Device h100{.flops = 989e12, .memory_bytes_per_s = 3.35e12, .multiprocessors = 132};

// Arguments: tensor, pipeline, data parallel, micro-batches, and whether a GPU is slow.
void simulate_step(benchmark::State& state) {
  const auto at = [&](int i) { return static_cast<int>(state.range(i)); };
  const Job job(at(0), at(1), at(2), at(3));
  const program::ProgramSet set = workloads::build_programs(llama3_405b(), job.settings, job.layout);
  const config::Calibration c = calibration();
  const sim::Network network = nodes_of_eight(job.layout.ranks());
  sim::Condition condition;
  if (at(4) != 0) {
    condition.clock.assign(job.layout.ranks(), 1);
    condition.clock[job.layout.ranks() / 3] = 0.8;
  }
  std::size_t operations = 0, classes_now = 0;
  double length_s = 0;
  for (auto _ : state) {
    const sim::RankClasses classes(set, sim::marks_of(set, network, condition));
    sim::Costs costs(classes, h100, network, c, job.settings, condition);
    const sim::CostOf cost = [&](int k, program::OperationId id) { return costs(k, id); };
    const sim::SimulatedStep step = sim::simulate(classes, cost);
    benchmark::DoNotOptimize(sim::critical_path(step, classes, cost));
    operations = 0;
    for (const auto& times : step.times) operations += times.size();
    classes_now = classes.list().size();
    length_s = sim::seconds_of(step.length);
  }
  state.counters["ranks"] = job.layout.ranks();
  state.counters["classes"] = static_cast<double>(classes_now);
  state.counters["operations"] = static_cast<double>(operations);
  state.counters["step_s"] = length_s;
  state.counters["per_operation"] = benchmark::Counter(
      static_cast<double>(operations), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(simulate_step)
    ->Args({8, 16, 128, 16, 0})
    ->Args({8, 16, 128, 16, 1})
    ->Args({8, 16, 128, 64, 0})  // `per_operation` stays what it is
    ->Args({8, 1, 16, 16, 0})
    ->Unit(benchmark::kMillisecond);

// The part of it for the division into classes.
void divide_ranks(benchmark::State& state) {
  const Job job(8, 16, static_cast<int>(state.range(0)), 16);
  const program::ProgramSet set = workloads::build_programs(llama3_405b(), job.settings, job.layout);
  std::vector<int> marks(job.layout.ranks(), 0);
  marks[job.layout.ranks() / 3] = 1;
  for (auto _ : state) benchmark::DoNotOptimize(sim::RankClasses(set, marks));
}
BENCHMARK(divide_ranks)->Arg(8)->Arg(128)->Unit(benchmark::kMillisecond);

}  // namespace
