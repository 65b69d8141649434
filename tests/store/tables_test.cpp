// The tables of a result file besides its cases and blocks: what is written is read back.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "result_file_fixture.h"

namespace harness::store {
namespace {

TEST_F(ResultFileTest, TimelinesAndTotalsGrowUpToTheirCapacityOverSessions) {
  {
    const auto file = ResultFile::create(path_, plan_, room, false);
    file->add_timeline({interval(0, "first"), interval(0, "second")});
    file->add_totals({{0, 1, "matmul", "compute", 0.5, 7}});
  }
  const auto file = ResultFile::reopen(path_);
  file->add_timeline({interval(2, "third")});
  file->add_totals({{2, 3, "all_reduce", "data", 1.5, 9}});
  const Result got = read_result(path_);
  ASSERT_EQ(got.timeline.size(), 3u);
  EXPECT_EQ(got.timeline[1].what, "second");
  const ResultInterval& third = got.timeline[2];
  EXPECT_EQ(third.case_index, 2);
  EXPECT_EQ(third.role, 1);
  EXPECT_EQ(third.rank, 2);
  EXPECT_EQ(third.operation, 3);
  EXPECT_EQ(third.kind + third.stream + third.phase + third.what, "matmulcomputeforwardthird");
  EXPECT_EQ(third.micro_batch, 4);
  EXPECT_EQ(third.layer, 5);
  EXPECT_EQ(third.start_s, 0.125);
  EXPECT_EQ(third.end_s, 0.25);
  EXPECT_EQ(third.waiting_s, 0.0625);
  EXPECT_EQ(third.bubble_s, 0.03125);
  ASSERT_EQ(got.totals.size(), 2u);
  EXPECT_EQ(got.totals[1].case_index, 2);
  EXPECT_EQ(got.totals[1].rank, 3);
  EXPECT_EQ(got.totals[1].kind + got.totals[1].stream, "all_reducedata");
  EXPECT_EQ(got.totals[1].seconds, 1.5);
  EXPECT_EQ(got.totals[1].operations, 9);
  EXPECT_THROW(file->add_timeline({interval(1, "x"), interval(1, "y")}), Error);  // one place is left
  EXPECT_EQ(read_result(path_).timeline.size(), 3u);
}

TEST_F(ResultFileTest, TablesOfTheProfiledStepsAreReadBackWhole) {
  Result plan = plan_;
  plan.link_source = "hardware file x: nvlink";
  plan.stands_for = "cpu";
  plan.memory_bytes_per_s = 3e12;
  plan.splits = {{1, 2, 10, 6, 3, 2, 1, 2, 0.5, 0.25, 0.125}};
  plan.operations = {{1, 2, 1, "all_reduce", "data", "backward", "bucket", "data", 7, 0, 1e6, 0.5}};
  plan.points = {{1, "all_reduce", 5, 4096, 1.5, 1e9, "given"}};
  plan.gradients = {{1, 0.5, 0.25}};
  plan.nccl_calls = {{1, "AllReduce", "Ring", "LL", 4096, 3, 0, 7}};
  plan.nccl_facts = {{1, "version", "2.28"}};
  plan.tuning = {{"a", "b"}};
  ResultFile::create(path_, plan, room, false);
  const Result got = read_result(path_);
  EXPECT_EQ(got.link_source, plan.link_source);
  EXPECT_EQ(got.stands_for, "cpu");
  EXPECT_EQ(got.memory_bytes_per_s, 3e12);
  ASSERT_EQ(got.splits.size(), 1u);
  const ResultSplit& split = got.splits[0];
  EXPECT_EQ((std::vector{split.step_s, split.compute_s, split.communication_s, split.exposed_s, split.overlapped_s,
                         split.idle_s, split.loading_s, split.waiting_s, split.bubble_s}),
            (std::vector<double>{10, 6, 3, 2, 1, 2, 0.5, 0.25, 0.125}));
  EXPECT_EQ(split.case_index * 10 + split.rank, 12);
  ASSERT_EQ(got.operations.size(), 1u);
  const ResultOperations& sort = got.operations[0];
  EXPECT_EQ(sort.case_index * 100 + sort.role * 10 + sort.recomputed, 121);
  EXPECT_EQ(sort.kind + sort.stream + sort.phase + sort.what + sort.group, "all_reducedatabackwardbucketdata");
  EXPECT_EQ(sort.operations, 7);
  EXPECT_EQ((std::vector{sort.model_flop, sort.bytes, sort.limit_s}), (std::vector<double>{0, 1e6, 0.5}));
  ASSERT_EQ(got.points.size(), 1u);
  EXPECT_EQ(got.points[0].operation + got.points[0].limit_source, "all_reducegiven");
  EXPECT_EQ((std::vector{got.points[0].bytes, got.points[0].bus_factor, got.points[0].limit_bytes_per_s}),
            (std::vector<double>{4096, 1.5, 1e9}));
  ASSERT_EQ(got.gradients.size(), 1u);
  EXPECT_EQ(got.gradients[0].case_index + got.gradients[0].sharded_squares + got.gradients[0].replicated_squares, 1.75);
  ASSERT_EQ(got.nccl_calls.size(), 1u);
  EXPECT_EQ(got.nccl_calls[0].algorithm + got.nccl_calls[0].protocol, "RingLL");
  ASSERT_EQ(got.nccl_facts.size(), 1u);
  EXPECT_EQ(got.nccl_facts[0].value, "2.28");
  EXPECT_EQ(got.tuning, plan.tuning);
}

TEST_F(ResultFileTest, LadderAndConditionsAreReadBackWhole) {
  plan_.ladder = {{"NCCL", 1, 1}, {"micro-batch", 2, 0}};
  const auto file = ResultFile::create(path_, plan_, room, false);
  file->write_conditions(1, {2.5, 0.125, 0.75, 3e9, "node1"});
  const Result got = read_result(path_);
  ASSERT_EQ(got.ladder.size(), 2u);
  EXPECT_EQ(got.ladder[1].name, "micro-batch");
  EXPECT_EQ((std::pair{got.ladder[1].alone, got.ladder[1].together}), (std::pair{2, 0}));
  ASSERT_EQ(got.conditions.size(), got.blocks.size());
  EXPECT_TRUE(std::isnan(got.conditions[0].load));
  const machine::Conditions& there = got.conditions[1];
  EXPECT_EQ((std::vector{there.load, there.steal_share, there.foreign_cores, there.cpu_clock_hz}),
            (std::vector{2.5, 0.125, 0.75, 3e9}));
  EXPECT_EQ(there.busiest_host, "node1");
}

TEST_F(ResultFileTest, DoctorsRecordIsReadBackWhole) {
  plan_.doctor.findings = {{-1, "fail", "pcie.width", "all 2", 2, "on 8 of 16 lanes", "reseat it", "https://a"},
                           {2, "info", "env.devices", "node0", 1, "", "", ""}};
  plan_.doctor.facts = "{\"text\": \"ünïcödé\"}\n" + std::string(70000, 'x');
  ResultFile::create(path_, plan_, room, false)->finish(RunState::complete);
  rewrite_result(path_, read_result(path_));  // as for more rounds
  const Result got = read_result(path_);
  EXPECT_EQ(got.doctor.facts, plan_.doctor.facts);
  ASSERT_EQ(got.doctor.findings.size(), 2u);
  const ResultFinding& row = got.doctor.findings[0];
  EXPECT_EQ(row.verdict + row.check + row.where + row.evidence + row.remedy + row.docs,
            "failpcie.widthall 2on 8 of 16 lanesreseat ithttps://a");
  EXPECT_EQ(row.nodes, 2);
  EXPECT_TRUE(row.is_of_nodes() && row.is_failure());
  EXPECT_EQ(got.doctor.findings[1].case_index, 2);
}

TEST_F(ResultFileTest, RankSecondsAndTimelineAreReadOnlyWhenWanted) {
  const auto file = ResultFile::create(path_, plan_, room, false);
  write_sample(*file, plan_, 0);
  file->add_timeline({interval(0, "x")});
  const Result got = read_result(path_, {.rank_seconds = false, .timeline = false});
  EXPECT_TRUE(got.rank_seconds.empty());
  EXPECT_TRUE(got.timeline.empty());
  EXPECT_FALSE(std::isnan(got.step_seconds[0][0]));
}

}  // namespace
}  // namespace harness::store
