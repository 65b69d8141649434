#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "traces/answer.h"

namespace harness::traces {

/// The report of files that are of one job.
inline Report read_job(const std::vector<std::string>& paths) {
  std::vector<Report> reports = read_traces(paths);
  EXPECT_EQ(reports.size(), 1u);
  return std::move(reports.back());
}

}  // namespace harness::traces
