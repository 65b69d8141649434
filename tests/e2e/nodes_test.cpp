// A job of two nodes on one machine: Open MPI starts a daemon for each, through an agent that gives the daemon its own
// host name instead of logging in to another host.
#include "analysis/breakdown.h"
#include "user.h"

namespace harness {
namespace {

std::string on_two_nodes(const TemporaryFolder& folder, const std::string& arguments) {
  const std::string agent =
      folder.write("agent.sh", "#!/bin/sh\nhost=$1\nshift\nexec unshare --uts sh -c \"hostname $host; $*\"\n");
  std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
  return fmt::format(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --mca plm rsh --mca plm_rsh_agent {} "
      "--host first:2,second:2 --oversubscribe -np 4 {} {}",
      agent, test::program_path(), arguments);
}

bool can_have_two_nodes() {
  return test::run("sh -c \"unshare --uts true && mpirun --version | grep -q 'Open MPI'\"").exit_code == 0;
}
constexpr const char* needed = "needs Open MPI and the right to give a process a host name of its own";

TEST(Nodes, ShardsInsideANodeTrainAsTheBaselineDoes) {
  if (!can_have_two_nodes()) GTEST_SKIP() << needed;
  const TemporaryFolder folder;
  const std::string file = folder / "nodes.h5";
  const auto o = test::run(on_two_nodes(
      folder,
      "sweep configs/sharding.yaml --set 'sweep={sharding: [optimizer]}' --set 'combine=[{sharding: optimizer, "
      "sharding_group: node}, {sharding: parameters, sharding_group: node}]' --rounds 2 --set "
      "measure.until=rounds --set baseline.global_batch_size=8 -o " +
          file));
  ASSERT_TRUE(is_measured(o)) << o.out << o.err;
  EXPECT_THAT(o.err, HasSubstr("4 ranks on 2 nodes"));
  EXPECT_THAT(o.out, AllOf(Not(HasSubstr("trains differently")), Not(HasSubstr("has no effect"))));
  const store::Result r = store::read_result(file);
  EXPECT_EQ(r.nodes, 2);
  ASSERT_EQ(r.cases.size(), 5u);
  for (const store::ResultBlock& block : r.blocks) EXPECT_EQ(block.status, store::BlockStatus::ok) << block.reason;
  EXPECT_EQ(r.gradients.size(), 4u);  // none for the copy of the baseline
  // Half of the bytes that a node reduces cross between nodes, because each node has two shards.
  const auto bytes = [&](std::int32_t case_index, const std::string& group) {
    double sum = 0;
    for (const store::ResultOperations& x : r.operations) {
      if (x.case_index == case_index && x.group == group && x.kind != "all_gather") sum += x.bytes;
    }
    return sum;
  };
  EXPECT_EQ(bytes(2, "nodes"), 0);
  for (const std::int32_t hybrid : {3, 4}) {
    EXPECT_GT(bytes(hybrid, "nodes"), 0);
    EXPECT_EQ(bytes(hybrid, "nodes"), bytes(hybrid, "data") / 2);
  }
  for (const analysis::CaseBreakdown& c : analysis::break_down(r)) {
    EXPECT_TRUE(c.mean[Part::data]) << c.case_index;
    EXPECT_FALSE(c.mean[Part::communication]) << c.case_index;
  }
}

TEST(Nodes, CalibrateMeasuresTheNetworkAndTheLinksWithinANode) {
  if (!can_have_two_nodes()) GTEST_SKIP() << needed;
  const TemporaryFolder folder;
  const std::string config = folder.write("small.yaml", R"(backend: cpu
model: {layers: 2, hidden: 32, heads: 2, vocab: 64, sequence: 16}
baseline: {precision: fp32, global_batch_size: 4}
)");
  const auto o =
      test::run(on_two_nodes(folder, fmt::format("calibrate {} -o {} --time-budget 1s", config, folder / "x")));
  ASSERT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_THAT(o.err, AllOf(HasSubstr("4 ranks of 2 nodes"), Not(HasSubstr("nothing is measured"))));
  EXPECT_THAT(test::text_of(folder / "x-hardware.yaml"), AllOf(HasSubstr("network: "), HasSubstr("nvlink: ")));
  EXPECT_THAT(test::text_of(folder / "x-calibration.yaml"), AllOf(HasSubstr("network: "), HasSubstr("within_node: ")));
}

}  // namespace
}  // namespace harness
