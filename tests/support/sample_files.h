#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "analysis/comparison.h"
#include "analysis/summary.h"

namespace harness::test {

/// Files of one test, kept where ComparedFile can point at them.
struct SampleFiles {
  std::vector<analysis::ComparedFile> list;
  std::deque<store::Result> results;
  std::deque<analysis::Summary> summaries;

  /// Each sample becomes a separate run named after its label, unless the test has set its run_uuid.
  analysis::ComparedFile add(const std::string& label, store::Result result) {
    if (result.run_uuid.starts_with("1111")) result.run_uuid = label;
    results.push_back(std::move(result));
    summaries.push_back(analysis::summarise(results.back()));
    list.push_back({label, &results.back(), &summaries.back()});
    return list.back();
  }
};

}  // namespace harness::test
