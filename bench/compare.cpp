// compare on two files of 16,384 ranks, 12 cases, 12 rounds and 30 steps: reading, analysis and table. It is to take
// less than 10 s and 2 GiB; more is an error. The second file is the first under another name: what it costs is the
// same.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "report/show_comparison.h"
#include "store/result_file.h"

namespace {

using namespace harness;

constexpr int ranks = 16384, cases = 12, rounds = 12, warmup_steps = 5, steps = 25;
constexpr double most_seconds = 10, most_bytes = 2147483648.0;

Result plan() {
  Result r;
  r.tool_version = "bench";
  r.created = "2026-01-02T03:04:05Z";
  r.name = "large";
  r.backend = "cuda";
  r.ranks = ranks;
  r.nodes = ranks / 8;
  r.rounds = rounds;
  r.warmup_steps = warmup_steps;
  r.steps = steps;
  r.variables = {"precision", "micro_batch_size"};
  for (int rank = 0; rank < ranks; ++rank) {
    r.rank_table.push_back({rank, rank % 8, rank / 8, "node" + std::to_string(rank / 8), "NVIDIA H200", 64, 8, 1e12});
  }
  for (int c = 0; c < cases; ++c) {
    ResultCase one;
    one.name = c == 0 ? "baseline" : c == 1 ? "baseline_again" : "micro_batch_size=" + std::to_string(c);
    one.variable = c < 2 ? "" : "micro_batch_size";
    one.value = c < 2 ? "" : std::to_string(c);
    one.settings = {"bf16", std::to_string(c < 2 ? 1 : c)};
    one.status = CaseStatus::ok;
    one.ranks = ranks;
    one.tokens_per_step = 1e8;
    one.model_flop_per_step = 1e20;
    one.peak_flops_per_rank = 989e12;
    r.cases.push_back(one);
    for (int rank = 0; rank < ranks; ++rank) r.splits.push_back({c, rank, 1, 0.8, 0.3, 0.1, 0.2, 0.1});
  }
  for (int round = 0; round < rounds; ++round) {
    for (int c = 0; c < cases; ++c) {
      ResultBlock block;
      block.round = round;
      block.position = block.case_index = c;
      r.blocks.push_back(block);
    }
  }
  return r;
}

// Written once for all iterations; $HARNESS_BENCH_FILE keeps it between runs.
class File {
 public:
  File() {
    const char* kept = std::getenv("HARNESS_BENCH_FILE");
    keep_ = kept != nullptr;
    path_ = keep_ ? kept
                  : (std::filesystem::temp_directory_path() / ("harness-compare-" + std::to_string(getpid()) + ".h5"))
                        .string();
    if (keep_ && std::filesystem::exists(path_)) return;
    const Result r = plan();
    const auto file = ResultFile::create(path_, r, {}, true);
    const std::size_t all_steps = warmup_steps + steps;
    std::vector<float> seconds(all_steps), losses(all_steps, 7.0f), of_ranks(all_steps * ranks);
    for (std::size_t b = 0; b < r.blocks.size(); ++b) {
      ResultBlock block = r.blocks[b];
      block.status = BlockStatus::ok;
      block.session = 0;
      for (std::size_t s = 0; s < all_steps; ++s) {
        seconds[s] = static_cast<float>(1 + 0.01 * block.case_index + 0.001 * std::sin(double(b + 7 * s)));
        block.timed_total_s += s < warmup_steps ? 0 : seconds[s];
        std::fill_n(of_ranks.begin() + static_cast<std::ptrdiff_t>(s) * ranks, ranks, seconds[s]);
      }
      file->write_block(static_cast<int>(b), block, seconds, losses, of_ranks);
    }
    file->finish(RunState::complete);
  }
  ~File() {
    std::error_code ignored;
    if (!keep_) std::filesystem::remove(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool keep_ = false;
};

void compare_files(benchmark::State& state) {
  static const File file;
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    std::vector<Result> results;
    std::vector<Summary> summaries;
    for (int i = 0; i < 2; ++i) {
      results.push_back(read_result(file.path(), {.rank_seconds = false, .timeline = false}));
      summaries.push_back(summarise(results.back()));
    }
    results[1].run_uuid = "another";
    ComparisonReport report;
    for (std::size_t i = 0; i < 2; ++i) report.files.push_back({std::to_string(i), &results[i], &summaries[i]});
    const std::span<const ComparedFile> all(report.files);
    report.differences = find_differences(all);
    report.comparisons.push_back(compare_sides(all.first(1), all.subspan(1)));
    benchmark::DoNotOptimize(show(report, Format::text));
  }
  const double each = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
                      static_cast<double>(state.iterations());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double bytes = 1024.0 * static_cast<double>(usage.ru_maxrss);
  state.counters["file_GB"] = static_cast<double>(std::filesystem::file_size(file.path())) / 1e9;
  state.counters["peak_MiB"] = bytes / 1048576;
  if (each > most_seconds) state.SkipWithError("took more than 10 s");
  if (bytes > most_bytes) state.SkipWithError("took more than 2 GiB");
}
BENCHMARK(compare_files)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
