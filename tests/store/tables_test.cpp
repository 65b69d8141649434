// The tables of a result file besides its cases and blocks: what is written is read back.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "base/text.h"
#include "result_file_fixture.h"

namespace harness::store {
namespace {

// Two columns that hold one member would have one value.
template <class Row>
void expect_members_of_their_own(const ColumnList& columns) {
  Row row;
  if constexpr (std::is_same_v<Row, ResultCase>) row.settings.resize(3);
  std::vector<std::string> given;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    const int value = static_cast<int>(i) + 1;
    if (column.member == Member::int32) *static_cast<std::int32_t*>(column.in(&row)) = value;
    if (column.member == Member::int64) *static_cast<std::int64_t*>(column.in(&row)) = value;
    if (column.member == Member::uint64) *static_cast<std::uint64_t*>(column.in(&row)) = value;
    if (column.member == Member::real) *static_cast<double*>(column.in(&row)) = value;
    if (column.member == Member::text) set_text(column, &row, std::to_string(value));
    given.push_back(column.name + "=" + cell(column, &row));
  }
  EXPECT_EQ(cells_of(columns, &row), given);
}

TEST_F(ResultFileTest, EachColumnHoldsAMemberOfItsOwn) {
  expect_members_of_their_own<Result>(columns_of<Result>().list());
  each_table(plan_, [&]<class Row>(const Table&, std::vector<Row>&, const Columns<Row>& columns) {
    expect_members_of_their_own<Row>(columns.list());
  });
}

TEST_F(ResultFileTest, EveryTableIsReadBackWhole) {
  plan_.link_source = "hardware file x: nvlink";
  plan_.stands_for = "cpu";
  plan_.memory_bytes_per_s = 3e12;
  plan_.splits = {{1, 2, 10, 6, 3, 2, 1, 2, 0.5, 0.25, 0.125}};
  plan_.operations = {{1, 2, 1, "all_reduce", "data", "backward", "bucket", "data", 7, 0, 1e6, 0.5}};
  plan_.points = {{1, "all_reduce", 5, 4096, 1.5, 1e9, "given", "qkv, forward", 7}};
  plan_.gradients = {{1, 0.5, 0.25}};
  plan_.nccl_calls = {{1, "AllReduce", "Ring", "LL", 4096, 3, 0, 7}};
  plan_.nccl_facts = {{1, "version", "2.28"}};
  plan_.tuning = {{"a", "b"}};
  plan_.timeline = {interval(0, "first"), interval(0, "second"), interval(2, "third")};
  plan_.totals = {{0, 1, "matmul", "compute", 0.5, 7}, {2, 3, "all_reduce", "data", 1.5, 9}};
  plan_.doctor.findings = {{-1, "fail", "pcie.width", "all 2", 2, "on 8 of 16 lanes", "reseat it", "https://a"},
                           {2, "info", "env.devices", "node0", 1, "", "", ""}};
  plan_.doctor.facts = "{\"text\": \"ünïcödé\"}\n" + std::string(70000, 'x');
  ResultFile::create(path_, plan_, false)->finish(RunState::complete);
  write_result(path_, read_result(path_));  // as for more rounds
  expect_read_back(plan_);
  EXPECT_EQ(read_result(path_).doctor.facts, plan_.doctor.facts);
}

TEST_F(ResultFileTest, ConditionsAreReadBackWhole) {
  const auto file = ResultFile::create(path_, plan_, false);
  plan_.conditions.resize(plan_.blocks.size());
  plan_.conditions[1] = {2.5, 0.125, 0.75, 3e9, "node1"};
  file->write_conditions(1, plan_.conditions[1]);
  expect_read_back(plan_);
}

TEST_F(ResultFileTest, RankSecondsAndTimelineAreReadOnlyWhenWanted) {
  plan_.timeline = {interval(0, "x")};
  write_sample(*ResultFile::create(path_, plan_, false), plan_, 0);
  const Result got = read_result(path_, {.rank_seconds = false, .timeline = false});
  EXPECT_TRUE(got.rank_seconds.empty());
  EXPECT_TRUE(got.timeline.empty());
  EXPECT_FALSE(std::isnan(got.step_seconds[0][0]));
}

}  // namespace
}  // namespace harness::store
