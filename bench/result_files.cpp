// Result files of 16,384 ranks, 24 cases, 40 rounds and 10 steps. Store: the cost of creating a file, of adding a
// finished block and of reading. Reading verbs: each must take less than 10 s and 2.5 GiB. compare reads the file
// twice, at the cost of two files.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "store/result_file.h"

namespace {

using namespace harness;

constexpr int large = 16384, cases = 24, rounds = 40, warmup_steps = 2, steps = 8;
constexpr double max_seconds = 10, max_bytes = 2.5 * 1073741824;

std::string name_of_case(int c) {
  if (c == 0) return "baseline";
  if (c == 1) return "baseline_again";
  return "micro_batch_size=" + std::to_string(c);
}

store::Result planned(int ranks) {
  store::Result r;
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
  for (int rank = 0; rank < ranks; ++rank)
    r.rank_table.push_back({rank, rank % 8, rank / 8, "node" + std::to_string(rank / 8), "NVIDIA H200", 64, 8, 1e12});
  for (int c = 0; c < cases; ++c) {
    store::ResultCase row;
    row.name = name_of_case(c);
    row.variable = c < 2 ? "" : "micro_batch_size";
    row.value = c < 2 ? "" : std::to_string(c);
    row.settings = {"bf16", std::to_string(c < 2 ? 1 : c)};
    row.status = store::CaseStatus::ok;
    row.ranks = ranks;
    row.layout = {{program::Axis::data, ranks}};
    row.tokens_per_step = 1e8;
    row.model_flop_per_step = 5e18;
    row.peak_flops_per_rank = 989e12;
    r.cases.push_back(row);
    for (int rank = 0; rank < ranks; ++rank) r.splits.push_back({c, rank, 1, 0.8, 0.3, 0.1, 0.2, 0.1});
  }
  for (int i = 0; i < rounds * cases; ++i) {
    store::ResultBlock block;
    block.round = i / cases;
    block.position = block.case_index = i % cases;
    r.blocks.push_back(block);
  }
  return r;
}

void write_file(const std::string& path) {
  const store::Result r = planned(large);
  const auto file = store::ResultFile::create(path, r, true);
  constexpr std::size_t all_steps = warmup_steps + steps;
  std::vector<float> seconds(all_steps), losses(all_steps, 7.0f), of_ranks(all_steps * large);
  for (std::size_t b = 0; b < r.blocks.size(); ++b) {
    store::ResultBlock block = r.blocks[b];
    block.status = store::BlockStatus::ok;
    block.session = 0;
    block.start_unix_s = 1.7e9 + 30 * static_cast<double>(b);
    for (std::size_t s = 0; s < all_steps; ++s) {
      const double factor = block.case_index < 2 ? 1 : 1 - 0.005 * block.case_index;
      seconds[s] = static_cast<float>(factor * (1 + 0.001 * std::sin(static_cast<double>(b + 7 * s))));
      block.timed_total_s += s < warmup_steps ? 0 : static_cast<double>(seconds[s]);
      for (std::size_t rank = 0; rank < large; ++rank) {
        of_ranks[s * large + rank] = seconds[s] * (1 - 0.0001f * static_cast<float>((rank * 7 + s) % 97));
      }
    }
    file->write_conditions(static_cast<int>(b), {0, b % 200 < 20 ? 6.5 : 0.5, "node17"});
    file->write_block(static_cast<int>(b), block, seconds, losses, of_ranks);
  }
  file->finish(store::RunState::complete);
}

std::string temporary_path() {
  return (std::filesystem::temp_directory_path() / ("harness-bench-" + std::to_string(getpid()) + ".h5")).string();
}

// Arguments: ranks.
void create_file(benchmark::State& state) {
  const store::Result r = planned(static_cast<int>(state.range(0)));
  for (auto _ : state) store::ResultFile::create(temporary_path(), r, true);
  std::filesystem::remove(temporary_path());
}
BENCHMARK(create_file)->Arg(128)->Arg(large)->Unit(benchmark::kMillisecond)->UseRealTime();

void write_block(benchmark::State& state) {
  const store::Result r = planned(static_cast<int>(state.range(0)));
  const auto file = store::ResultFile::create(temporary_path(), r, true);
  const std::vector<float> values(warmup_steps + steps, 1.5f), of_ranks(values.size() * r.ranks, 1.5f);
  int number = 0;
  for (auto _ : state) {
    store::ResultBlock block = r.blocks[number];
    block.status = store::BlockStatus::ok;
    file->write_block(number, block, values, values, of_ranks);
    number = (number + 1) % static_cast<int>(r.blocks.size());
  }
  std::filesystem::remove(temporary_path());
}
BENCHMARK(write_block)->Arg(128)->Arg(large)->Unit(benchmark::kMillisecond)->UseRealTime();

// The file for the reading verbs, written once.
class File {
 public:
  File() { write_file(path_); }
  ~File() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    std::filesystem::remove(path_ + ".html", ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = temporary_path() + ".large.h5";
};

double peak_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return 1024.0 * static_cast<double>(used.ru_maxrss);
}

void measure(benchmark::State& state, const std::function<void(const std::string&, std::ostream&)>& read) {
  static const File file;
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    std::ostringstream out;
    read(file.path(), out);
    benchmark::DoNotOptimize(out);
  }
  const double each = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
                      static_cast<double>(state.iterations());
  state.counters["file_GB"] = static_cast<double>(std::filesystem::file_size(file.path())) / 1e9;
  state.counters["peak_MiB"] = peak_bytes() / 1048576;
  if (each > max_seconds || peak_bytes() > max_bytes) {
    const std::string used = "took " + std::to_string(each) + " s and " + std::to_string(peak_bytes() / 1073741824) +
                             " GiB, more than 10 s or 2.5 GiB";
    state.SkipWithError(used.c_str());
  }
}

void report_file(const std::string& path, std::ostream& out) {
  cli::ReportOptions options;
  options.files = {path};
  options.output = path + ".html";
  options.force = true;
  cli::report(options, out);
}
void compare_files(const std::string& path, std::ostream& out) {
  cli::CompareOptions options;
  options.files = {path, path};
  cli::compare(options, out);
}
void show_table(const std::string& path, std::ostream& out) {
  cli::ShowOptions options;
  options.files = {path};
  cli::show(options, out, out);
}
BENCHMARK_CAPTURE(measure, report, report_file)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1);
BENCHMARK_CAPTURE(measure, compare, compare_files)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1);
BENCHMARK_CAPTURE(measure, show, show_table)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1);

}  // namespace
