// The store, at 128 and at 16384 ranks: what one finished block costs, and what reading a sweep costs.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "store/result_file.h"

namespace {

using namespace harness;

// 13 cases in `rounds` rounds, 2 + 6 steps a block.
store::Result plan_for(int ranks, int rounds) {
  store::Result plan;
  plan.ranks = ranks;
  plan.rounds = rounds;
  plan.warmup_steps = 2;
  plan.steps = 6;
  plan.variables = {"precision", "micro_batch_size"};
  for (int rank = 0; rank < ranks; ++rank) {
    plan.rank_table.push_back({rank, rank % 8, rank / 8, "node" + std::to_string(rank / 8), "device", 64, 8, 1e12});
  }
  for (int c = 0; c < 13; ++c) {
    store::ResultCase one;
    one.name = "case" + std::to_string(c);
    one.settings = {"bf16", "1"};
    plan.cases.push_back(one);
  }
  for (int round = 0; round < rounds; ++round) {
    for (int c = 0; c < 13; ++c) {
      store::ResultBlock block;
      block.round = round;
      block.position = block.case_index = c;
      plan.blocks.push_back(block);
    }
  }
  return plan;
}

class File {
 public:
  explicit File(const store::Result& plan)
      : path_(
            (std::filesystem::temp_directory_path() / ("harness-bench-" + std::to_string(getpid()) + ".h5")).string()),
        file_(store::ResultFile::create(path_, plan, {}, true)) {}
  ~File() {
    file_.reset();
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::string& path() const { return path_; }
  void write(const store::Result& plan, int block) {
    const auto steps = static_cast<std::size_t>(plan.warmup_steps + plan.steps);
    store::ResultBlock row = plan.blocks[static_cast<std::size_t>(block)];
    row.status = store::BlockStatus::ok;
    const std::vector<float> values(steps, 1.5f), of_ranks(steps * static_cast<std::size_t>(plan.ranks), 1.5f);
    file_->write_block(block, row, values, values, of_ranks);
  }

 private:
  std::string path_;
  std::unique_ptr<store::ResultFile> file_;
};

void write_block(benchmark::State& state) {
  const store::Result plan = plan_for(static_cast<int>(state.range(0)), 12);
  File file(plan);
  int block = 0;
  for (auto _ : state) {
    file.write(plan, block);
    block = (block + 1) % static_cast<int>(plan.blocks.size());
  }
}
BENCHMARK(write_block)->Arg(128)->Arg(16384)->Unit(benchmark::kMillisecond)->UseRealTime();

void create_file(benchmark::State& state) {
  const store::Result plan = plan_for(static_cast<int>(state.range(0)), 12);
  for (auto _ : state) File file(plan);
}
BENCHMARK(create_file)->Arg(128)->Arg(16384)->Unit(benchmark::kMillisecond)->UseRealTime();

void read_file(benchmark::State& state) {
  const store::Result plan = plan_for(static_cast<int>(state.range(0)), 12);
  File file(plan);
  for (int block = 0; block < static_cast<int>(plan.blocks.size()); ++block) file.write(plan, block);
  const store::ReadOptions options{.rank_seconds = state.range(1) != 0, .timeline = true};
  for (auto _ : state) benchmark::DoNotOptimize(store::read_result(file.path(), options));
}
BENCHMARK(read_file)
    ->ArgNames({"ranks", "rank_seconds"})
    ->Args({128, 0})
    ->Args({128, 1})
    ->Args({16384, 0})
    ->Args({16384, 1})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
