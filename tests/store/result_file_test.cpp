#include "store/result_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/text.h"
#include "sample.h"
#include "store/columns.h"
#include "store/hdf5_file.h"
#include "support/files.h"

namespace harness::store {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string cell(const Column& column, const void* row) {
  if (!column.get) return "";
  return std::visit([](const auto& value) { return fmt::format("{}", value); }, column.get(row));
}

/// Returns "NAME=VALUE" for each column of a row.
std::vector<std::string> cells_of(const ColumnList& columns, const void* row) {
  std::vector<std::string> cells;
  for (const Column& column : columns) cells.push_back(column.name + "=" + cell(column, row));
  return cells;
}

/// Returns all non-empty tables and the attributes of /run, by path.
std::map<std::string, std::vector<std::vector<std::string>>> cells_of(const Result& result) {
  std::map<std::string, std::vector<std::vector<std::string>>> tables;
  tables["/run"] = {cells_of(columns_of<Result>(), &result)};
  each_table(result, [&](const Table& table, const auto& rows, const auto& columns) {
    for (const auto& row : rows) tables[table.path].push_back(cells_of(columns, &row));
  });
  return tables;
}

ResultInterval interval(int case_index, const std::string& what) {
  return {case_index, 1, 2, 3, "matmul", "compute", "forward", what, 4, 5, 0, 0.125, 0.25, 0.0625, 0.03125};
}

class ResultFileTest : public ::testing::Test {
 protected:
  /// Compares the attributes of /run and each table for which `want` has rows.
  void expect_read_back(Result want) {
    want.model = want.model.resolved();
    auto got = cells_of(read_result(path_));
    for (const auto& [path, rows] : cells_of(want)) EXPECT_EQ(got[path], rows) << path;
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "r.h5";
  Result plan_ = sample_plan();
};

// Compares bytes, so that NaN equals NaN.
::testing::AssertionResult same_values(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << ::testing::PrintToString(a) << " is not " << ::testing::PrintToString(b);
}
bool all_nan(const std::vector<float>& values) {
  return !values.empty() && std::ranges::all_of(values, [](float value) { return std::isnan(value); });
}

TEST_F(ResultFileTest, WhatThePlanKnowsIsThereBeforeTheFirstBlock) {
  const auto file = ResultFile::create(path_, plan_, false);
  const Result got = read_result(path_);  // while it is open for writing
  EXPECT_EQ(got.tool_version, plan_.tool_version);
  EXPECT_EQ(got.created, plan_.created);
  EXPECT_EQ(got.run_uuid, plan_.run_uuid);
  EXPECT_EQ(got.argv, plan_.argv);
  EXPECT_EQ(got.state, RunState::running);
  EXPECT_EQ(got.sessions, 1);
  EXPECT_EQ(got.config_text, plan_.config_text);
  EXPECT_EQ(got.overrides, plan_.overrides);
  EXPECT_EQ(got.model.ffn, 256);  // derived from hidden
  EXPECT_EQ(got.variables, plan_.variables);
  EXPECT_EQ(got.warnings, plan_.warnings);
  expect_read_back(plan_);
  for (const auto* matrix : {&got.step_seconds, &got.losses, &got.rank_seconds})
    EXPECT_THAT(*matrix, AllOf(SizeIs(12), Each(IsEmpty())));
  EXPECT_THAT(got.timeline, IsEmpty());
  EXPECT_THAT(got.totals, IsEmpty());
}

TEST_F(ResultFileTest, BlocksComeBackAsWritten) {
  const auto file = ResultFile::create(path_, plan_, false);
  for (const int index : {0, 7}) write_sample(*file, plan_, index);
  const Result got = read_result(path_);
  const SampleBlock want = sample_block(plan_, 7);
  EXPECT_EQ(cells_of(columns_of<ResultBlock>(), &got.blocks[7]), cells_of(columns_of<ResultBlock>(), &want.row));
  EXPECT_TRUE(same_values(got.step_seconds[7], want.steps));
  EXPECT_TRUE(same_values(got.losses[7], want.losses));
  EXPECT_TRUE(same_values(got.rank_seconds[7], want.ranks));
  EXPECT_EQ(got.blocks[6].status, BlockStatus::pending);
  EXPECT_TRUE(got.step_seconds[6].empty());
  EXPECT_TRUE(got.rank_seconds[8].empty());
}

TEST_F(ResultFileTest, AFailedBlockErasesWhatAnEarlierSessionLeft) {
  const auto file = ResultFile::create(path_, plan_, false);
  write_sample(*file, plan_, 3);
  ResultBlock failed = plan_.blocks[3];
  failed.status = BlockStatus::failed;
  failed.reason = "rank 2 on node1: worker killed by signal 11";
  file->write_block(3, failed, {}, {}, {});
  const Result got = read_result(path_);
  EXPECT_EQ(got.blocks[3].status, BlockStatus::failed);
  EXPECT_EQ(got.blocks[3].reason, failed.reason);
  EXPECT_TRUE(all_nan(got.step_seconds[3]));
  EXPECT_TRUE(all_nan(got.rank_seconds[3]));
}

// As a resumed sweep that is killed while it replaces a block of the interrupted round.
TEST_F(ResultFileTest, ABlockThatIsBeingReplacedCountsAsPending) {
  const auto file = ResultFile::create(path_, plan_, false);
  write_sample(*file, plan_, 3);
  file->reopen_block(3, plan_.blocks[3]);
  const Result got = read_result(path_);
  EXPECT_EQ(got.blocks[3].status, BlockStatus::pending);
  EXPECT_EQ(got.blocks[3].session, -1);
  EXPECT_TRUE(got.step_seconds[3].empty());
}

TEST_F(ResultFileTest, CasesAreRewrittenInPlace) {
  const auto file = ResultFile::create(path_, plan_, false);
  ResultCase changed = plan_.cases[1];
  changed.status = CaseStatus::failed;
  changed.program_hash = "0123456789abcdef";
  changed.peak_flops_per_rank = 5e10;
  changed.reason = std::string(5000, 'a');  // longer than its column
  for (int i = 1; i < 5000; i += 2) changed.reason.replace(static_cast<std::size_t>(i) - 1, 2, "é");
  file->write_case(1, changed);
  const Result got = read_result(path_);
  EXPECT_EQ(got.cases[1].status, CaseStatus::failed);
  EXPECT_EQ(got.cases[1].program_hash, changed.program_hash);
  EXPECT_EQ(got.cases[1].peak_flops_per_rank, 5e10);
  EXPECT_GE(got.cases[1].reason.size(), 500u);
  EXPECT_EQ(got.cases[1].reason.substr(got.cases[1].reason.size() - 5), "é…");  // cut between characters, and marked
  EXPECT_EQ(got.cases[0].status, CaseStatus::pending);
  EXPECT_EQ(got.cases[2].name, "micro_batch_size=2");
}

TEST_F(ResultFileTest, TooManyWarningsBeforeItsCreationLeaveANote) {
  plan_.warnings.assign(ResultFile::most_warnings + 1, "one of many");
  ResultFile::create(path_, plan_, false)->finish(RunState::partial);
  const Result got = read_result(path_);
  ASSERT_EQ(got.warnings.size(), ResultFile::most_warnings);
  EXPECT_EQ(got.warnings.back(), "There were more warnings than this file has room for.");
}

TEST_F(ResultFileTest, WarningsSessionsAndStateAreRewritten) {
  const auto file = ResultFile::create(path_, plan_, false);
  file->add_warning("second");
  for (std::size_t i = 0; i < ResultFile::most_warnings; ++i) file->add_warning("and more");
  file->begin_session(3);
  file->finish(RunState::partial);
  const Result got = read_result(path_);
  ASSERT_EQ(got.warnings.size(), ResultFile::most_warnings);
  EXPECT_EQ(got.warnings[1], "second");
  EXPECT_THAT(got.warnings.back(), HasSubstr("more warnings"));
  EXPECT_EQ(got.sessions, 3);
  EXPECT_EQ(got.state, RunState::partial);
}

TEST_F(ResultFileTest, NothingButRawDataIsWrittenAfterCreation) {
  const auto bytes = [&] { return test::text_of(path_); };
  const auto file = ResultFile::create(path_, plan_, false);
  const std::string before = bytes();
  for (int index = 0; index < 12; ++index) write_sample(*file, plan_, index);
  file->write_case(0, plan_.cases[0]);
  file->add_warning("x");
  file->begin_session(2);
  file->finish(RunState::complete);
  const std::string after = bytes();
  ASSERT_EQ(before.size(), after.size());
  // Object headers, heaps and B-tree nodes carry signatures; the 64 bytes from each signature must be unchanged.
  int signatures = 0, changed = 0;
  for (std::size_t i = 0; i + 64 < before.size(); ++i) {
    for (const char* signature : {"\x89HDF", "TREE", "HEAP", "SNOD", "GCOL"}) {
      if (before.compare(i, 4, signature) != 0) continue;
      ++signatures;
      EXPECT_EQ(before.compare(i, 64, after, i, 64), 0) << signature << " at " << i;
    }
    changed += before[i] != after[i];
  }
  EXPECT_GE(signatures, 6);
  EXPECT_GT(changed, 100);
}

// Whether ranks are GPUs follows from the backend that the step stands for.
TEST(ResultFile, ItsRanksAreThoseOfTheBackendThatItStandsFor) {
  Result result;
  for (const auto& [backend, stands_for, gpus] :
       std::vector<std::tuple<std::string, std::string, bool>>{{"cpu", "cpu", false},
                                                               {"cuda", "cuda", true},
                                                               {"sim", "cuda", true},
                                                               {"sim", "cpu", false},
                                                               {"of a later version", "of a later version", true}}) {
    result.backend = backend;
    result.stands_for = stands_for;
    EXPECT_EQ(result.step_backend(), stands_for) << backend;
    EXPECT_EQ(result.ranks_are_gpus(), gpus) << backend << stands_for;
  }
}

// A killed process leaves each page either old or new, so a row within one page is never half written.
TEST_F(ResultFileTest, RowsThatChangeLieWithinOnePage) {
  ResultFile::create(path_, sample_plan(4, 50), false);
  const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const auto place = [&](const char* path) {
    const hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT), type = H5Dget_type(dataset);
    const std::pair<std::uint64_t, std::uint64_t> found(H5Dget_offset(dataset), H5Tget_size(type));
    H5Tclose(type);
    H5Dclose(dataset);
    return found;
  };
  for (const char* path : {"/cases", "/blocks", "/conditions", "/run/warnings"}) {
    const auto [offset, row_bytes] = place(path);
    EXPECT_EQ(4096 % row_bytes, 0u) << path;
    EXPECT_EQ(offset % 4096, 0u) << path;
  }
  for (const char* path : {"/run/state", "/run/sessions"}) {
    const auto [offset, bytes] = place(path);
    EXPECT_EQ(offset / 4096, (offset + bytes - 1) / 4096) << path;
  }
  EXPECT_EQ(place("/blocks").second, 1024u);
  H5Fclose(file);
}

TEST_F(ResultFileTest, APlanOfNothingIsAFileToo) {
  Result empty;
  ResultFile::create(path_, empty, false)->finish(RunState::complete);
  const Result got = read_result(path_);
  EXPECT_TRUE(got.cases.empty());
  EXPECT_TRUE(got.config_text.empty());
  EXPECT_EQ(got.state, RunState::complete);
}

TEST_F(ResultFileTest, WrongSizesAndRowsAreMistakes) {
  const auto file = ResultFile::create(path_, plan_, false);
  const SampleBlock block = sample_block(plan_, 0);
  EXPECT_THROW(file->write_block(12, block.row, block.steps, block.losses, block.ranks), Error);
  EXPECT_THROW(file->write_block(-1, block.row, block.steps, block.losses, block.ranks), Error);
  EXPECT_THROW(file->write_block(0, block.row, {1.f}, block.losses, block.ranks), Error);
  EXPECT_THROW(file->write_case(3, plan_.cases[0]), Error);
  EXPECT_THROW(file->write_case(0, ResultCase{}), Error);
  plan_.variables.push_back("name");  // an existing column
  for (auto& row : plan_.cases) row.settings.emplace_back("x");
  EXPECT_THROW(ResultFile::create(folder_ / "other.h5", plan_, false), Error);
}

// If two columns shared a member, they would read the same value.
template <class Row>
void expect_members_of_their_own(const ColumnList& columns) {
  Row row;
  if constexpr (std::is_same_v<Row, ResultCase>) row.settings.resize(3);
  std::vector<std::string> given;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    const std::int64_t value = static_cast<std::int64_t>(i) + 1;
    if (column.kind == hdf5::Kind::text) {
      try {
        column.set(&row, std::to_string(value));
      } catch (const Error&) {  // not a word of the column
      }
    } else if (column.set) {
      column.set(&row, column.kind == hdf5::Kind::float64 ? Value(static_cast<double>(value)) : Value(value));
    }
    given.push_back(column.name + "=" + cell(column, &row));
  }
  EXPECT_EQ(cells_of(columns, &row), given);
}

TEST_F(ResultFileTest, EachColumnHoldsAMemberOfItsOwn) {
  expect_members_of_their_own<Result>(columns_of<Result>());
  each_table(plan_, [&]<class Row>(const Table&, std::vector<Row>&, const ColumnList& columns) {
    expect_members_of_their_own<Row>(columns);
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
  plan_.nccl_calls = {{{"AllReduce", 4096, "Ring", "LL", 0, 7, 3}, 1}};
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
  plan_.conditions[1] = {0.125, 0.75, "node1"};
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
