#pragma once

#include <string>
#include <utility>

#include "report/compare.h"
#include "support/sample_files.h"
#include "support/sample_results.h"

namespace harness::test {

/// What `compare` says of the files of one test.
struct ComparedFiles : SampleFiles {
  report::CompareReport report;

  /// As on a machine where all takes `factor` as long.
  void add(const std::string& label, store::Result result, double factor = 1) {
    report.files.push_back(SampleFiles::add(label, samples::scaled(std::move(result), factor)));
  }
  void find_reservations() {
    report.differences = analysis::find_differences(report.files);
    report.incomparable = analysis::why_incomparable(report.files);
    report.unreliable = analysis::why_unreliable(report.files);
  }
  /// The first ones with the others.
  void compare(std::size_t first) {
    const std::span<const analysis::ComparedFile> all(report.files);
    find_reservations();
    report.answer = analysis::compare_sides(all.first(first), all.subspan(first));
  }
  void pool() {
    find_reservations();
    report.answer = analysis::pool_runs(report.files);
  }
};

}  // namespace harness::test
