// What planning costs: building, verifying, counting and laying out the Programs of a case.
#include <benchmark/benchmark.h>

#include "plan/plan.h"
#include "plan/survey.h"
#include "program/memory.h"
#include "program/verify.h"

namespace {

using namespace harness;

const config::Model model_1b3{"gpt3-1.3b", 24, 2048, 16, 50304, 2048};

plan::PlannedCase job(int tp, int pp, int dp, std::int64_t micro_batches) {
  plan::PlannedCase c;
  c.name = "bench";
  c.settings.precision = config::Precision::bf16;
  c.settings.layout = {{program::Axis::tensor, tp}, {program::Axis::pipeline, pp}};
  c.settings.global_batch_size = dp * micro_batches;
  c.layout.size = {tp, 1, dp, pp};
  return c;
}

// Arguments: tensor, pipeline, data parallel, micro-batches.
void survey_case(benchmark::State& state) {
  const plan::PlannedCase c = job(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                                  static_cast<int>(state.range(2)), state.range(3));
  std::int64_t operations = 0;
  for (auto _ : state) {
    const plan::Survey s = plan::Surveyor(model_1b3, config::BackendKind::cuda).survey(c);
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
    ->Args({1, 1, 1, 64})  // a long accumulation on one rank: `per_operation` stays what it is with eight times as many
    ->Args({1, 1, 1, 512})
    ->Args({8, 1, 16, 32})
    ->Args({8, 2, 8, 64})
    ->Args({8, 8, 256, 8})
    ->Unit(benchmark::kMillisecond);

// What the steps of a survey take, side by side, of the same Programs.
class ProgramSteps : public benchmark::Fixture {
 protected:
  const plan::PlannedCase c = job(1, 1, 1, 128);
  const program::ProgramSet set = workloads::build_programs(model_1b3, c.settings, c.layout);
};
BENCHMARK_F(ProgramSteps, build)(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(workloads::build_programs(model_1b3, c.settings, c.layout));
}
BENCHMARK_F(ProgramSteps, verify)(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(program::verify(set));
}
BENCHMARK_F(ProgramSteps, hash)(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(program::hash(set));
}
BENCHMARK_F(ProgramSteps, arena)(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(program::plan_arena(set.roles[0]));
}

void verify_roles(benchmark::State& state) {
  const plan::PlannedCase c = job(4, 4, static_cast<int>(state.range(0)), 8);
  const program::ProgramSet set = workloads::build_programs(model_1b3, c.settings, c.layout);
  for (auto _ : state) benchmark::DoNotOptimize(program::verify(set));
}
BENCHMARK(verify_roles)->Arg(1)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
