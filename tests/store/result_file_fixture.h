#pragma once

#include <gtest/gtest.h>

#include <string>

#include "cells.h"
#include "sample.h"
#include "store/result_file.h"
#include "support/temporary_folder.h"

namespace harness::store {

inline constexpr ResultCapacity room{.intervals = 4, .totals = 3, .warnings = 3};

inline ResultInterval interval(int case_index, const std::string& what) {
  ResultInterval row;
  row.case_index = case_index;
  row.role = 1;
  row.rank = 2;
  row.operation = 3;
  row.kind = "matmul";
  row.stream = "compute";
  row.phase = "forward";
  row.what = what;
  row.micro_batch = 4;
  row.layer = 5;
  row.start_s = 0.125;
  row.end_s = 0.25;
  row.waiting_s = 0.0625;
  row.bubble_s = 0.03125;
  return row;
}

class ResultFileTest : public ::testing::Test {
 protected:
  /// Each table of which `want` has rows, and the attributes of /run.
  void expect_read_back(Result want) {
    want.model = want.model.resolved();
    auto got = cells_of(read_result(path_));
    for (const auto& [path, rows] : cells_of(want)) EXPECT_EQ(got[path], rows) << path;
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "r.h5";
  Result plan_ = sample_plan();
};

}  // namespace harness::store
