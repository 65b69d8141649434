// Every operation of a step at real sizes, the cases of `selftest operations`, through the whole backend on one rank.
// environment: BENCH_BACKEND=cuda (default: cpu), BENCH_THREADS=N (default: 1)
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>

#include "backend/backend.h"
#include "backends/backends.h"
#include "program/count.h"
#include "program/memory.h"
#include "program/program.h"
#include "selftest/operation_cases.h"

namespace {

using namespace harness;

std::string variable(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : otherwise;
}

void run(benchmark::State& state, const selftest::OperationCase& operation, const backend::Backend& backend) {
  const program::Program program = program::lower(operation.program, backend.declared());
  backend::ExecutableRequest request;
  request.program = &program;
  request.layout = operation.layout;
  request.rank = operation.rank;
  request.settings = operation.settings;
  request.threads = std::stoi(variable("BENCH_THREADS", "1"));
  const auto executable = backend.create(request);
  static_cast<void>(executable->publish());
  executable->connect({}, 1);
  executable->initialize();
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const program::View whole{static_cast<program::BufferId>(b), 0, program.buffers[b].count};
    executable->write(whole, selftest::initial_bytes(operation, b, 1, request.threads));
  }
  executable->run(0, 2, program::NoInputs{});
  std::int64_t step = 2;
  for (auto _ : state) executable->run(step++, 1, program::NoInputs{});
  double flop = 0, bytes = 0;
  for (const program::Operation& op : program.step) {
    flop += program::flop_of(op.action).model;
    bytes += program::bytes_touched(program, op.action);
  }
  const auto rate = [&](double work) {
    return benchmark::Counter(work * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  };
  if (flop > 0) state.counters["FLOP/s"] = rate(flop);
  state.counters["B/s"] = rate(bytes);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const backend::Backend& backend = backends::get(config::parse_backend(variable("BENCH_BACKEND", "cpu")));
  const std::vector<selftest::OperationCase> cases = selftest::operation_cases(false, true, true);
  for (const selftest::OperationCase& c : cases) {
    if (!c.large) continue;
    benchmark::RegisterBenchmark((c.operation + ": " + c.name).c_str(),
                                 [&](benchmark::State& s) { run(s, c, backend); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  benchmark::RunSpecifiedBenchmarks();
}
