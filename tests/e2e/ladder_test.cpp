// Delays planted in the worker come out where a ladder looks for them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "analysis/summary.h"
#include "command.h"
#include "store/result_file.h"
#include "support/soak.h"

namespace harness {
namespace {

using test::harness_job;
using test::TemporaryFolder;
using ::testing::HasSubstr;

// Each of these settings removes a delay of every step. The work of a step takes a few milliseconds, and on a machine
// that runs other tests beside this one some tens, or seconds where the machine itself is shared. So the delays are
// pretended ones, many times as long. HARNESS_SOAK=1 plants real delays, a hundredth of these, for a quiet machine.
// The step that has lost the three keeps a fourth: else its noise is a large share of it, and a change that does
// nothing may seem proven to help.
const bool real = test::soaking();
const double unit_s = real ? 0.01 : 1;

std::string planted() {
  const auto delay = [](double units) {
    return fmt::format("kind={},step=every,seconds={}", real ? "delay" : "pretend", units * unit_s);
  };
  return "HARNESS_TEST_FAULT='" + delay(24) + ",unless=bucket_size:2 MiB;" + delay(16) +
         ",unless=allreduce_algorithm:halving_doubling;" + delay(10) + ",unless=overlap_grad_reduce:false;" + delay(8) +
         "' ";
}

constexpr const char* head =
    "backend: cpu\n"
    "model: {layers: 1, hidden: 32, heads: 2, vocab: 64, sequence: 16}\n"
    "baseline: {global_batch_size: 8, micro_batch_size: 4, threads: 1, bucket_size: 1 MiB, allreduce_algorithm: "
    "ring}\n";

TEST(Ladder, RecoversThreePlantedDelaysAndTheirSum) {
  const TemporaryFolder folder;
  const std::string config = folder.write("ladder.yaml", std::string("name: ladder\n") + head +
                                                             "ladder:\n"
                                                             "  - buckets: {bucket_size: 2 MiB}\n"
                                                             "  - algorithm: {allreduce_algorithm: halving_doubling}\n"
                                                             "  - no overlap: {overlap_grad_reduce: false}\n"
                                                             "measure: {rounds: 6, warmup_steps: 0, steps: 3}\n");
  const std::string file = folder / "ladder.h5";
  const auto o = test::run(planted() + harness_job(2, "sweep " + config + " -o " + file), 240);
  EXPECT_TRUE(o.exit_code == 0 || o.exit_code == 4) << o.err;
  EXPECT_THAT(o.out, HasSubstr("All fixes together: step time -"));
  const store::Result result = store::read_result(file);
  const analysis::Summary summary = analysis::summarise(result);
  ASSERT_EQ(summary.ladder.size(), 3u);
  const double before = summary.cases[0].step_seconds;
  const auto seconds_at = [&](std::size_t rung) {
    return before * summary.case_at(summary.ladder[rung].together).effect->ratio;
  };
  EXPECT_NEAR(before - seconds_at(0), 24 * unit_s, 6 * unit_s);
  EXPECT_NEAR(seconds_at(0) - seconds_at(1), 16 * unit_s, 6 * unit_s);
  EXPECT_NEAR(seconds_at(1) - seconds_at(2), 10 * unit_s, 6 * unit_s);
  EXPECT_NEAR(before - seconds_at(2), 50 * unit_s, 10 * unit_s);
  for (const analysis::LadderRung& rung : summary.ladder) {
    ASSERT_TRUE(rung.on_top);
    EXPECT_EQ(rung.on_top->verdict, analysis::Verdict::faster) << rung.name;
    // The same seconds are a larger share of a step that is shorter already.
    if (rung.interaction) {
      EXPECT_LT(rung.interaction->ratio, 1) << rung.name;
    }
  }
}

}  // namespace
}  // namespace harness
