// The sizes of one operation run one after another in one process per rank, for each setting and round.
#include <signal.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "user.h"

namespace harness {
namespace {

// Writes a sweep of all-reduces with these entries under `sweep` and `measure`.
std::string write(const TemporaryFolder& folder, const std::string& sweep, const std::string& measure) {
  return folder.write("sizes.yaml",
                      "workload: collective\nbackend: cpu\n"
                      "baseline: {collective: all_reduce, message_size: 4 KiB, repetitions: 2}\n"
                      "sweep: {" +
                          sweep + "}\nmeasure: {warmup_steps: 1, " + measure + "}\noutput: " + (folder / "sizes.h5") +
                          "\n");
}
std::string write(const TemporaryFolder& folder, const std::string& more = "") {
  return write(folder, "message_size: [8 B, 1 KiB, 64 KiB]" + more, "rounds: 5, steps: 2, smallest_effect: 90 %");
}

std::map<std::int32_t, std::set<std::int32_t>> rounds_by_process(const store::Result& r) {
  std::map<std::int32_t, std::set<std::int32_t>> rounds;
  for (const store::ResultBlock& block : r.blocks) rounds[block.process].insert(block.round);
  return rounds;
}

constexpr const char* with_settings = ", allreduce_algorithm: [halving_doubling], in_place: [false]";
constexpr int sizes = 4, settings = 4;  // settings: the baseline, its copy, and the two changes
constexpr std::size_t blocks_of_round = sizes * settings;

// Checks that each setting has one process in each round, which measures all sizes.
void expect_grid(const store::Result& r) {
  ASSERT_EQ(r.cases.size(), blocks_of_round);
  std::map<std::int32_t, std::set<std::string>> by_process;
  for (std::size_t i = 0; i < r.blocks.size(); ++i) {
    const store::ResultBlock& block = r.blocks[i];
    EXPECT_EQ(block.status, store::BlockStatus::ok) << block.reason;
    const std::string& name = r.at(block).name;
    const bool of_baseline = store::is_reference(r.at(block).role());
    by_process[block.process].insert(of_baseline ? "baseline" : name.substr(0, name.find(" at ")));
    // The blocks of a process are consecutive, in the order of the file.
    const bool first = block.process == static_cast<std::int32_t>(i);
    EXPECT_TRUE(first || r.blocks[i - 1].process == block.process) << i;
    const bool later = i > 0 && r.blocks[i - 1].session == block.session;
    EXPECT_TRUE(!later || block.start_unix_s > r.blocks[i - 1].start_unix_s) << i;
  }
  EXPECT_EQ(by_process.size(), settings * static_cast<std::size_t>(r.rounds));
  for (const auto& [process, setting] : by_process) EXPECT_EQ(setting.size(), 1u) << process;
  for (const store::ResultCase& row : r.cases) {
    const std::size_t at = row.name.find(" at ");
    const store::ResultCase& reference = r.case_at(row.reference);
    if (at != std::string::npos) {
      EXPECT_EQ(reference.name, row.name.substr(at + 4));
    } else {
      EXPECT_EQ(reference.name, store::is_reference(row.role()) ? row.name : "baseline");
    }
    EXPECT_EQ(r.setting(row, "message_size"), r.setting(reference, "message_size")) << row.name;
  }
}

// A sweep stopped within a round measures all blocks of that round again.
TEST(SharedProcess, ARoundOfSeveralSetsIsResumedAsAWhole) {
  const TemporaryFolder folder;
  {
    Command command(harness_job(2, "sweep -v " + write(folder, with_settings)));
    ASSERT_TRUE(command.wait_for("[22/80] round 2")) << command.err_so_far();
    for (const pid_t pid : command.tagged("sweep")) ::kill(pid, SIGINT);
    EXPECT_EQ(command.wait().exit_code, 5);
  }
  const auto count = [](const store::Result& r, std::int32_t session) {
    return static_cast<std::size_t>(std::ranges::count_if(r.blocks, [&](const store::ResultBlock& block) {
      return block.status == store::BlockStatus::ok && block.session == session;
    }));
  };
  const store::Result stopped = store::read_result(folder / "sizes.h5");
  ASSERT_NE(count(stopped, 0) % blocks_of_round, 0u) << "it stopped between two rounds";
  const auto o = run_job(2, "sweep --resume " + (folder / "sizes.h5"));
  ASSERT_TRUE(is_measured(o)) << o.err;
  const store::Result r = store::read_result(folder / "sizes.h5");
  expect_grid(r);
  EXPECT_EQ(count(r, 0), count(stopped, 0) / blocks_of_round * blocks_of_round);
}

// At the baseline's size, the first look settles the change: its pretended steps are 100 times as long, and the others
// long enough to hide noise. Nothing else is compared there, so the baseline is not measured any more. At 8 B, only
// blocks with even numbers are longer, which no number of rounds settles. --wrap gives each block its own process, so
// that the fault can depend on the block's number.
TEST(SharedProcess, TheBaselineAtASizeIsMeasuredAsLongAsSomethingIsComparedWithIt) {
  const TemporaryFolder folder;
  const std::string config = write(folder, "message_size: [8 B], allreduce_algorithm: [halving_doubling]",
                                   "rounds: 7, steps: 2, smallest_effect: 90 %, until: settled");
  const std::string change = "allreduce_algorithm=halving_doubling";
  const std::string longer = "kind=pretend,step=every,seconds=1;case=" + change +
                             ",kind=pretend,step=every,seconds=100;case=" + change +
                             " at message_size=8 B,blocks=even,kind=pretend,step=every,seconds=100";
  const auto o = run_job(2, "sweep " + config + " --seed 1 --wrap 'env -u NOTHING'", planted(longer));
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const store::Result r = store::read_result(folder / "sizes.h5");
  EXPECT_EQ(rounds_by_process(r).size(), r.blocks.size());
  std::map<std::string, int> measured;
  for (const store::ResultBlock& block : r.blocks) {
    if (block.status == store::BlockStatus::ok) ++measured[r.at(block).name];
    if (block.round < 5 || r.at(block).name != "baseline") continue;
    EXPECT_EQ(block.reason, "every verdict that it is for was settled");
  }
  EXPECT_EQ(measured["baseline"], 5);
  EXPECT_EQ(measured["baseline_again"], 5);
  EXPECT_EQ(measured[change], 5);
  EXPECT_EQ(measured["message_size=8 B"], 7);
  EXPECT_EQ(measured[change + " at message_size=8 B"], 7);
}

// The fault strikes only if another block ran before in the same process: alone, the case runs.
TEST(SharedProcess, WhatFailsInCompanyAndRunsAloneCounts) {
  const TemporaryFolder folder;
  const auto o =
      run_job(2, "sweep " + write(folder), planted("rank=1,step=-1,case=message_size=1 KiB,kind=kill,company=yes"));
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_THAT(o.out + o.err, HasSubstr("failed in a process that it shared, and was repeated in one of its own"));
  const store::Result r = store::read_result(folder / "sizes.h5");
  for (const store::ResultBlock& block : r.blocks) EXPECT_EQ(block.status, store::BlockStatus::ok) << block.reason;
  for (const auto& [process, rounds] : rounds_by_process(r)) EXPECT_EQ(rounds.size(), 1u) << process;
  EXPECT_GT(rounds_by_process(r).size(), 5u);
}

// Large and small messages alternate in one process. Each block frees its memory: over forty blocks, the process grows
// by less than the bytes of one large message. (Pages of libraries and the allocator that the process touches for the
// first time vary by one or two MiB.)
TEST(SharedProcess, FiftyBlocksTakeNoMoreMemoryThanTen) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer keeps what is freed";
#endif
  const TemporaryFolder folder;
  constexpr int large = 4 << 20;  // bytes
  std::string sizes;
  for (int i = 1; i <= 26; ++i) sizes += fmt::format("{} B, {} B, ", 16 * i, large + 16 * i);
  const std::string config = write(folder, "message_size: [" + sizes + "8 B]", "rounds: 1, steps: 1");
  const auto o = run_job(2, "sweep " + config);
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const store::Result r = store::read_result(folder / "sizes.h5");
  ASSERT_GE(r.blocks.size(), 54u);
  ASSERT_EQ(rounds_by_process(r).size(), 1u);
  std::map<bool, double> most;  // bytes of small blocks; false: after ten blocks, true: after fifty
  for (const store::ResultBlock& block : r.blocks) {
    ASSERT_EQ(block.status, store::BlockStatus::ok) << block.reason;
    const bool small = r.find_point(block.case_index)->bytes < 1 << 20;
    const bool after_ten = block.position >= 10 && block.position < 20;
    if (!small || !(after_ten || block.position >= 50)) continue;
    most[block.position >= 50] = std::max(most[block.position >= 50], block.peak_memory_bytes);
  }
  ASSERT_EQ(most.size(), 2u);
  EXPECT_LE(most[true], most[false] + large);
}

// A fault in one block of a shared process loses its case; everything else is measured, and no process is left.

constexpr int ranks = 4;

struct WorkerFault {
  const char* kind;
  const char* reason;  // part of the recorded reason
};
constexpr std::array<WorkerFault, 5> faults{
    {{"kill", "signal 9"}, {"stop", "step"}, {"exit", "exit"}, {"memory", "memory"}, {"hang", "step"}}};

// The place in the process: the first block after the untimed one, the second, and the last.
enum class Place { first, second, last };
constexpr std::array<Place, 3> places{Place::first, Place::second, Place::last};

// With this seed, each place has a change, not the baseline.
std::string config(const TemporaryFolder& folder) {
  return write(folder, "message_size: [8 B, 1 KiB, 64 KiB]",
               "rounds: 1, steps: 2, seed: 11, smallest_effect: 90 %, memory_limit: 256 MiB, deadlines: {start: 60 s, "
               "step: 6 s}");
}

// Returns the case with its block at this place. The schedule depends on the seed only.
std::string case_at(Place place) {
  static const store::Result undisturbed = [] {
    const TemporaryFolder folder;
    const auto o = run_job(ranks, "sweep " + config(folder));
    EXPECT_EQ(o.exit_code, 0) << o.err;
    return store::read_result(folder / "sizes.h5");
  }();
  const std::size_t index = place == Place::last ? undisturbed.blocks.size() - 1 : static_cast<std::size_t>(place);
  return undisturbed.at(undisturbed.blocks.at(index)).name;
}

void expect_one_case_lost(const WorkerFault& fault, Place place, int rank) {
  const std::string lost = case_at(place);
  const std::string cell = fmt::format("{} of rank {} in {}", fault.kind, rank, lost);
  SCOPED_TRACE(cell);
  ASSERT_THAT(lost, HasSubstr("message_size="));
  const TemporaryFolder folder;
  Command command(planted(fmt::format("rank={},step=1,case={},kind={}", rank, lost, fault.kind)) +
                  harness_job(ranks, "sweep " + config(folder)));
  const auto o = command.wait(120);
  EXPECT_EQ(o.exit_code, 4) << o.out << o.err;
  EXPECT_TRUE(command.leaves_no_process());
  const store::Result r = store::read_result(folder / "sizes.h5");
  for (const store::ResultBlock& block : r.blocks) {
    const bool is_lost = r.at(block).name == lost;
    EXPECT_EQ(block.status, is_lost ? store::BlockStatus::failed : store::BlockStatus::ok)
        << r.at(block).name << ": " << block.reason;
    if (!is_lost) continue;
    EXPECT_THAT(block.reason, HasSubstr(fmt::format("rank {}", rank)));
    EXPECT_THAT(block.reason, HasSubstr(fault.reason));
  }
}

// Runs the whole grid when soaking; otherwise three cells, which cover every place, or with sanitizers two, as only
// addresses matter there, which do not depend on the place. tests/job/mpi tests every kind.
TEST(SharedProcessFaults, LoseTheirCaseAndNothingElse) {
  constexpr int all = faults.size() * places.size() * ranks;
  const auto cells = static_cast<std::size_t>(test::times(3, 2, all));
  for (std::size_t i = 0; i < cells; ++i) {
    // The numbers of kinds, places and ranks are coprime, so the whole grid has all combinations.
    const WorkerFault& fault = faults[i % faults.size()];
    const Place place = places[i % places.size()];
    const int rank = static_cast<int>(i % ranks);
    expect_one_case_lost(fault, place, rank);
  }
}

}  // namespace
}  // namespace harness
