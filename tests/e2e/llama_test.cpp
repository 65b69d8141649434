// A sweep of a Llama, from the configuration of a cluster as its head says to run it on two cores.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/summary.h"
#include "command.h"
#include "store/result_file.h"

namespace harness {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Llama, IsSweptWithItsLevers) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "llama.h5";
  const std::string model =
      "'model={preset: llama3-8b, layers: 2, hidden: 128, heads: 8, kv_heads: 2, ffn: 384, vocab: 2048, sequence: 64}'";
  const std::string sweep =
      "'sweep={layout: [{tensor_parallel: 2}], sharding: [optimizer, parameters], recompute: [full]}'";
  // Pretended times, many times those of any machine, decide the verdicts and not its noise.
  const std::string planted =
      "HARNESS_TEST_FAULT='step=every,kind=pretend,seconds=100;"
      "case=recompute=full,step=every,kind=pretend,seconds=100' ";
  const std::string arguments = fmt::format(
      "sweep configs/llama3-8b.yaml --set backend=cpu --set hardware=none --set {} --set 'baseline.layout="
      "{{tensor_parallel: 1}}' --set baseline.sequence_parallel=false --set baseline.precision=fp32 --set "
      "baseline.global_batch_size=8 --set {} --set measure.smallest_effect=5% --rounds 5 -o {}",
      model, sweep, file);
  const auto o = test::run(planted + test::harness_job(2, arguments));
  ASSERT_TRUE(o.exit_code == 0 || o.exit_code == 4) << o.out << o.err;
  EXPECT_THAT(o.out, Not(HasSubstr("trains differently")));
  const store::Result r = store::read_result(file);
  EXPECT_EQ(r.state, store::RunState::complete);
  ASSERT_EQ(r.cases.size(), 6u);
  EXPECT_THAT(r.flop_formula, HasSubstr("3 f"));  // of an MLP with a gate
  for (const store::ResultBlock& block : r.blocks) EXPECT_NE(block.status, store::BlockStatus::failed) << block.reason;
  const analysis::Summary summary = analysis::summarise(r);
  for (const store::ResultCase& row : r.cases) {
    if (row.name.starts_with("baseline")) continue;
    const analysis::CaseSummary& found = summary.case_at(static_cast<std::int32_t>(&row - r.cases.data()));
    ASSERT_GT(found.blocks, 0) << row.name;
    if (row.name == "recompute=full") {
      EXPECT_EQ(found.judgement.verdict, analysis::Verdict::slower);
    }
  }
}

}  // namespace
}  // namespace harness
