// Reads a file without the columns and tables that were added later.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "sample.h"
#include "store/hdf5_file.h"
#include "store/result_file.h"
#include "support/files.h"

namespace harness::store {
namespace {

using hdf5::Handle;

// Recreates the table without these columns.
void remove_columns(const std::string& file_path, const char* table, const std::vector<std::string>& columns) {
  const Handle file(H5Fopen(file_path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), file_path);
  Handle before(H5Dopen2(file.id(), table, H5P_DEFAULT), table);
  const Handle all(H5Dget_type(before.id()), table), space(H5Dget_space(before.id()), table);
  const Handle kept(H5Tcreate(H5T_COMPOUND, H5Tget_size(all.id())), table);
  std::size_t bytes = 0;
  for (int i = 0; i < H5Tget_nmembers(all.id()); ++i) {
    char* const name = H5Tget_member_name(all.id(), i);
    const Handle type(H5Tget_member_type(all.id(), i), name);
    if (std::ranges::find(columns, name) == columns.end()) {
      H5Tinsert(kept.id(), name, bytes, type.id());
      bytes += H5Tget_size(type.id());
    }
    H5free_memory(name);
  }
  H5Tset_size(kept.id(), bytes);
  std::vector<char> rows(bytes * H5Sget_simple_extent_npoints(space.id()));
  EXPECT_GE(H5Dread(before.id(), kept.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data()), 0);
  before.close(table);
  H5Ldelete(file.id(), table, H5P_DEFAULT);
  const Handle after(H5Dcreate2(file.id(), table, kept.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), table);
  EXPECT_GE(H5Dwrite(after.id(), kept.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data()), 0);
}

TEST(LackingFile, IsReadWithoutTheColumnsThatCameLater) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "r.h5";
  Result plan = sample_plan();
  plan.points = {{1, "gemm", 5, 4096, 0, 0, "given", "qkv, forward", 7}};
  plan.splits = {{1, 2, 10, 6, 3, 2, 1, 2, 0.5, 0.25, 0.125}};
  ResultFile::create(path, plan, true)->finish(RunState::complete);
  EXPECT_EQ(read_result(path).points.at(0).uses, "qkv, forward");
  EXPECT_EQ(read_result(path).points[0].count, 7);
  remove_columns(path, "/points", {"uses", "count"});
  remove_columns(path, "/blocks", {"total_s"});
  remove_columns(path, "/timeline_splits", {"loading_s", "waiting_s", "bubble_s"});
  const Result got = read_result(path);
  ASSERT_EQ(got.points.size(), 1u);
  EXPECT_EQ(got.points[0].limit_source, "given");
  EXPECT_EQ(got.points[0].uses, "");
  EXPECT_EQ(got.points[0].count, 0);
  EXPECT_TRUE(std::isnan(got.blocks.at(0).total_s));
  ASSERT_EQ(got.splits.size(), 1u);
  EXPECT_EQ(got.splits[0].idle_s, 2);
  EXPECT_TRUE(std::isnan(got.splits[0].waiting_s));
}

// Roles keep the file's numbering. Each rank of a case must have one.
TEST(Roles, AreReadAsTheyStandAndRefusedWhereOneIsMissing) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "r.h5";
  Result plan = sample_plan();
  const std::int32_t ranks = plan.cases[0].ranks;
  ASSERT_GT(ranks, 1);
  EXPECT_EQ(roles_of(plan, 0).size(), static_cast<std::size_t>(ranks));  // as in an older file: a single stage
  EXPECT_EQ(roles_of(plan, 0).back().role, 0);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    program::Coordinates at;
    at[program::Axis::data] = ranks - 1 - rank;
    plan.roles.push_back({0, rank, ranks - 1 - rank, at});
  }
  ResultFile::create(path, plan, true)->finish(RunState::complete);
  const std::vector<ResultRole> got = roles_of(read_result(path), 0);
  ASSERT_EQ(got.size(), plan.roles.size());
  EXPECT_EQ(got.front().role, ranks - 1);
  EXPECT_EQ(got.front().at, plan.roles.front().at);
  plan.roles.erase(plan.roles.begin());
  ResultFile::create(path, plan, true)->finish(RunState::complete);
  EXPECT_THROW(read_result(path), Error);
}

}  // namespace
}  // namespace harness::store
