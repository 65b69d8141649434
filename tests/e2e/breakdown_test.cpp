// Planted delays show where they were planted, through the whole program.
#include "analysis/breakdown.h"
#include "analysis/findings.h"
#include "analysis/summary.h"
#include "user.h"

namespace harness {
namespace {

store::Result swept(const TemporaryFolder& folder, int ranks, const std::string& sweep, const std::string& fault) {
  const auto config = write_small_config(folder, 1, sweep);
  const auto o = run_job(ranks, "sweep " + config, planted(fault));
  EXPECT_TRUE(is_measured(o)) << o.err;
  return store::read_result(folder / "small.h5");
}

std::string shown(const TemporaryFolder& folder) {
  const auto o = run_alone("show --breakdown " + (folder / "small.h5"));
  EXPECT_TRUE(is_measured(o)) << o.err;
  return o.out;
}

TEST(Breakdown, PartsAreTheStepInARealSweep) {
  const TemporaryFolder folder;
  const store::Result r = swept(folder, 2, "  layout: [{pipeline_parallel: 2}, {tensor_parallel: 2}]\n", "");
  const auto all = analysis::break_down(r);
  ASSERT_EQ(all.size(), 3u);
  for (const analysis::CaseBreakdown& c : all) {
    for (const analysis::Breakdown& b : c.ranks) EXPECT_LT(analysis::unexplained(b), analysis::max_unexplained);
    const store::ResultCase& row = r.cases[static_cast<std::size_t>(c.case_index)];
    EXPECT_EQ(c.ranks.size(), static_cast<std::size_t>(row.layout[program::Axis::pipeline]));
    EXPECT_EQ(c.mean[Part::tensor].has_value(), row.layout[program::Axis::tensor] > 1);
    EXPECT_EQ(c.mean[Part::pipeline].has_value(), row.layout[program::Axis::pipeline] > 1);
    EXPECT_EQ(c.mean[Part::bubble].has_value(), row.layout[program::Axis::pipeline] > 1);
    EXPECT_EQ(c.mean[Part::embedding].has_value(), row.layout[program::Axis::pipeline] > 1);
    EXPECT_EQ(c.mean[Part::data].has_value(), row.layout[program::Axis::data] > 1);
    EXPECT_TRUE(c.mean[Part::loading]);
    EXPECT_FALSE(c.mean[Part::recomputation]);
    // The FLOP of a step's operations add up to those counted for the case.
    double flop = 0;
    for (const store::ResultOperations& o : r.operations) {
      if (o.case_index == c.case_index) flop += o.model_flop * row.ranks / static_cast<double>(c.ranks.size());
    }
    EXPECT_NEAR(flop / row.model_flop_per_step, 1, 1e-9);
  }
  const std::string text = shown(folder);
  for (const char* part : {"matrix products", "Bottleneck: ", "Stragglers"}) EXPECT_THAT(text, HasSubstr(part)) << part;
  const auto page = run_alone("report -o - " + (folder / "small.h5"));
  for (const std::string id : {"waterfall-baseline", "timeline-baseline"})
    EXPECT_THAT(page.out, HasSubstr("<figure id=\"" + id + "\">")) << page.err;
}

TEST(Breakdown, ADelayInOneRankNamesTheStraggler) {
  const TemporaryFolder folder;
  constexpr double delay_s = 0.15;  // above the noise of four ranks on two cores
  const store::Result r = swept(folder, 4, "", "rank=2,kind=delay,step=every,seconds=0.15");
  const analysis::Stragglers s = analysis::find_stragglers(r);
  ASSERT_TRUE(s.found()) << shown(folder);
  EXPECT_EQ(s.ranks[0].rank, 2);
  EXPECT_GT(s.ranks[0].late_s, 0.7 * delay_s);
  EXPECT_GT(s.ranks[0].idle_s, 0.7 * delay_s);
  const auto all = analysis::break_down(r);
  ASSERT_FALSE(all.empty());
  EXPECT_GT(all[0].mean[Part::waiting].value_or(0), 0.7 * delay_s);  // rank 0 waits for rank 2
  const analysis::Bottleneck b = analysis::find_bottleneck(r, all[0], nullptr, s);
  EXPECT_EQ(b.kind, analysis::BottleneckKind::stragglers) << b.evidence;
  EXPECT_THAT(b.evidence, HasSubstr("Rank 2 ("));
  EXPECT_THAT(shown(folder), HasSubstr("Rank 2 on "));
}

}  // namespace
}  // namespace harness
