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

  /// A sample is a run of its own, called like its label, unless the test gave it a name.
  analysis::ComparedFile add(const std::string& label, store::Result result) {
    if (result.run_uuid.starts_with("1111")) result.run_uuid = label;
    results.push_back(std::move(result));
    summaries.push_back(analysis::summarise(results.back()));
    list.push_back({label, &results.back(), &summaries.back()});
    return list.back();
  }
};

}  // namespace harness::test
