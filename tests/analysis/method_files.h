#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/differences.h"
#include "base/random.h"
#include "method_sweep.h"
#include "support/sample_files.h"

// Several files, for the parts of docs/method.md that are about them.
namespace harness::method {

/// The example as another run measured it: its cases take exp(log_factor(case)) as long, and its blocks scatter by 1 %.
inline store::Result another_run(int run, const std::function<double(int)>& log_factor) {
  store::Result file = example();
  file.timeline.clear();
  file.rank_seconds.clear();
  return changed(std::move(file), "run " + std::to_string(run), [&](const store::ResultBlock& block) {
    const auto number = static_cast<std::uint64_t>(block.round * 16 + block.case_index);
    return log_factor(block.case_index) + 0.01 * philox_normal(100 + static_cast<std::uint64_t>(run), number);
  });
}

/// The files of one test.
struct PageFiles : test::SampleFiles {
  void add(store::Result result) {
    const std::string label = result.run_uuid;
    SampleFiles::add(label, std::move(result));
  }
};

}  // namespace harness::method
