// A fault in one block of a shared process: its case is lost, everything else is measured, nothing is left running.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "command.h"
#include "store/result_file.h"
#include "support/soak.h"

namespace harness {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;

constexpr int ranks = 4;

struct Fault {
  const char* kind;
  const char* reason;  // a part of what must be recorded
};
constexpr std::array<Fault, 5> faults{
    {{"kill", "signal 9"}, {"stop", "step"}, {"exit", "exit"}, {"memory", "memory"}, {"hang", "step"}}};

// In the process: the first block after the one that is not timed, the second, and the last.
enum class Place { first, second, last };
constexpr std::array<Place, 3> places{Place::first, Place::second, Place::last};

// With this seed a change, and not the baseline, stands at each of the places.
std::string config(const TemporaryFolder& folder) {
  return folder.write("sizes.yaml",
                      "workload: collective\nbackend: cpu\n"
                      "baseline: {collective: all_reduce, message_size: 4 KiB, repetitions: 2}\n"
                      "sweep: {message_size: [8 B, 1 KiB, 64 KiB]}\n"
                      "measure: {rounds: 1, warmup_steps: 1, steps: 2, seed: 11, smallest_effect: 90 %, "
                      "memory_limit: 256 MiB, deadlines: {start: 60 s, step: 6 s}}\n"
                      "output: " +
                          (folder / "sizes.h5") + "\n");
}

// The case whose block stands there; the schedule depends on the seed alone.
std::string case_at(Place place) {
  static const store::Result undisturbed = [] {
    const TemporaryFolder folder;
    const auto o = test::run(test::harness_job(ranks, "sweep " + config(folder)));
    EXPECT_EQ(o.exit_code, 0) << o.err;
    return store::read_result(folder / "sizes.h5");
  }();
  const std::size_t index = place == Place::last ? undisturbed.blocks.size() - 1 : static_cast<std::size_t>(place);
  return undisturbed.at(undisturbed.blocks.at(index)).name;
}

void expect_one_case_lost(const Fault& fault, Place place, int rank) {
  const std::string lost = case_at(place);
  const std::string cell = fmt::format("{} of rank {} in {}", fault.kind, rank, lost);
  SCOPED_TRACE(cell);
  ASSERT_THAT(lost, HasSubstr("message_size="));
  const TemporaryFolder folder;
  test::Command command(fmt::format("HARNESS_TEST_FAULT='rank={},step=1,case={},kind={}' ", rank, lost, fault.kind) +
                        test::harness_job(ranks, "sweep " + config(folder)));
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

// The whole grid when soaking; else a dozen cells of it, in which every rank meets every place. With the sanitizers
// four, of every rank and place: there it is about addresses, and these are the same.
TEST(SharedProcessFaults, LoseTheirCaseAndNothingElse) {
  constexpr int all = faults.size() * places.size() * ranks;
  const auto cells = static_cast<std::size_t>(test::times(12, 4, all));
  for (std::size_t i = 0; i < cells; ++i) {
    // Kinds, places and ranks go round at lengths without a common divisor, so that all combinations come by.
    const Fault& fault = faults[i % faults.size()];
    const Place place = places[i % places.size()];
    const int rank = static_cast<int>(i % ranks);
    expect_one_case_lost(fault, place, rank);
  }
}

}  // namespace
}  // namespace harness
