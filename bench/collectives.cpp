// Gloo collectives by size and algorithm over in-process ranks: a thread and a set of contexts each, TCP on this host.
// B/s is the buffer size over the time (nccl-tests call it algorithm bandwidth).
#include <benchmark/benchmark.h>

#include <functional>
#include <thread>

#include "backend/backend.h"
#include "backends/backends.h"
#include "program/builder.h"

namespace harness {
namespace {

class NoInputs : public program::InputSource {
 public:
  void fill(const std::string&, std::int64_t, std::span<std::byte>) const override {}
};

using Executables = std::vector<std::unique_ptr<backend::Executable>>;

void on_all(Executables& ranks, const std::function<void(backend::Executable&)>& f) {
  std::vector<std::thread> threads;
  for (auto& r : ranks) threads.emplace_back([&] { f(*r); });
  for (auto& t : threads) t.join();
}

Executables connected(const program::Program& program, int n, config::AllReduceAlgorithm algorithm) {
  Executables ranks;
  std::vector<std::vector<RendezvousMessage>> inbox(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) {
    backend::ExecutableRequest request;
    request.program = &program;
    request.groups = {{"data", program::AxisSet::of({program::Axis::data}), {}}};
    request.layout[program::Axis::data] = n;
    request.rank = r;
    request.settings.allreduce_algorithm = algorithm;
    ranks.push_back(backends::get(config::BackendKind::cpu).create(request));
    for (auto& m : ranks.back()->publish()) inbox[static_cast<std::size_t>(m.peer)].push_back({r, m.key, m.bytes});
  }
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) threads.emplace_back([&, r] { ranks[r]->connect(inbox[r], 10); });
  for (auto& t : threads) t.join();
  on_all(ranks, [](backend::Executable& e) { e.initialize(); });
  return ranks;
}

template <class Make>
void run(benchmark::State& state, config::AllReduceAlgorithm algorithm, Make&& make) {
  const int n = static_cast<int>(state.range(0));
  program::ProgramBuilder b({"compute", "data"});
  b.begin_step();
  b.emit(1, make(b, n, state.range(1) / 4), {});
  const program::Program program = b.take();
  Executables ranks = connected(program, n, algorithm);
  constexpr int steps = 10;
  for (auto _ : state) on_all(ranks, [](backend::Executable& e) { e.run(0, steps, NoInputs{}); });
  state.SetBytesProcessed(state.iterations() * steps * state.range(1));
}

void all_reduce(benchmark::State& state, config::AllReduceAlgorithm algorithm) {
  run(state, algorithm, [](program::ProgramBuilder& b, int, std::int64_t count) {
    return program::AllReduce{0, b.buffer("data", program::DType::f32, count, program::BufferKind::persistent)};
  });
}
void reduce_scatter(benchmark::State& state) {
  run(state, config::AllReduceAlgorithm::ring, [](program::ProgramBuilder& b, int n, std::int64_t count) {
    return program::ReduceScatter{0,
                                  b.buffer("in", program::DType::f32, count / n * n, program::BufferKind::persistent),
                                  b.buffer("out", program::DType::f32, count / n, program::BufferKind::persistent)};
  });
}
void all_gather(benchmark::State& state) {
  run(state, config::AllReduceAlgorithm::ring, [](program::ProgramBuilder& b, int n, std::int64_t count) {
    return program::AllGather{0, b.buffer("in", program::DType::f32, count / n, program::BufferKind::persistent),
                              b.buffer("out", program::DType::f32, count / n * n, program::BufferKind::persistent)};
  });
}
void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"ranks", "bytes"})->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const int ranks : {2, 4}) {
    for (const int bytes : {4, 64 << 10, 1 << 20, 16 << 20}) b->Args({ranks, bytes});
  }
}
BENCHMARK_CAPTURE(all_reduce, ring, config::AllReduceAlgorithm::ring)->Apply(sizes);
BENCHMARK_CAPTURE(all_reduce, halving_doubling, config::AllReduceAlgorithm::halving_doubling)->Apply(sizes);
BENCHMARK(reduce_scatter)->Apply(sizes);
BENCHMARK(all_gather)->Apply(sizes);

}  // namespace
}  // namespace harness
