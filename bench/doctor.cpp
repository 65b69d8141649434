// How long doctor takes: to read this machine, and to judge many nodes on rank 0.
#include <benchmark/benchmark.h>

#include "base/error.h"
#include "doctor/check.h"
#include "doctor/gather.h"

namespace harness {
namespace {

// Without NVML: what it takes depends on the driver. Limit: 2 s.
void gather(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(doctor::gather_node("/", {}, 30));
}
BENCHMARK(gather)->Unit(benchmark::kMillisecond);

// Nodes like this machine, eight ranks each, one of them with another kernel.
void diagnose(benchmark::State& state) {
  std::vector<doctor::Node> nodes(static_cast<std::size_t>(state.range(0)),
                                  {"node", {}, doctor::gather_node("/", {}, 30)});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].host = fmt::format("node{}", i);
    for (int rank = 0; rank < 8; ++rank)
      nodes[i].ranks.push_back({static_cast<int>(8 * i) + rank, doctor::gather_rank("/")});
  }
  nodes.back().facts.set("os/kernel", "another");
  for (auto _ : state) benchmark::DoNotOptimize(doctor::diagnose(nodes));
}
BENCHMARK(diagnose)->Arg(16)->Arg(2048)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace harness
