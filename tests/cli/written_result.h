#pragma once

#include <limits>
#include <string>

#include "store/result_file.h"

namespace harness::samples {

/// Writes a Result as a sweep would have: file made from the plan, then block by block.
inline void write_result(const std::string& path, const Result& result) {
  Result plan = result;
  plan.state = RunState::running;
  plan.timeline.clear();
  const ResultCapacity capacity{static_cast<std::int64_t>(result.timeline.size()),
                                static_cast<std::int64_t>(result.totals.size()), 64};
  for (auto& block : plan.blocks) block.status = BlockStatus::pending;
  const auto file = ResultFile::create(path, plan, capacity, true);
  file->add_timeline(result.timeline);
  file->add_totals(result.totals);
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    if (result.blocks[i].status == BlockStatus::pending) continue;
    file->write_block(static_cast<int>(i), result.blocks[i], result.step_seconds[i], result.losses[i], {});
  }
  file->finish(result.state);
}

}  // namespace harness::samples
