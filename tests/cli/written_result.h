#pragma once

#include <string>
#include <vector>

#include "store/result_file.h"

namespace harness::test::samples {

/// Writes a Result as a sweep would have: file made from the plan, then block by block.
inline void write_result(const std::string& path, const store::Result& result) {
  store::Result plan = result;
  plan.state = store::RunState::running;
  plan.timeline.clear();
  const store::ResultCapacity capacity{static_cast<std::int64_t>(result.timeline.size()),
                                       static_cast<std::int64_t>(result.totals.size()), 64};
  for (auto& block : plan.blocks) block.status = store::BlockStatus::pending;
  const auto file = store::ResultFile::create(path, plan, capacity, true);
  file->add_timeline(result.timeline);
  file->add_totals(result.totals);
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    if (result.blocks[i].status == store::BlockStatus::pending) continue;
    const int block = static_cast<int>(i);
    if (i < result.gpu.size()) file->write_gpu(block, result.gpu[i]);
    if (i < result.conditions.size()) file->write_conditions(block, result.conditions[i]);
    const std::vector<float> none;
    file->write_block(block, result.blocks[i], result.step_seconds[i], result.losses[i],
                      i < result.rank_seconds.size() ? result.rank_seconds[i] : none);
  }
  file->finish(result.state);
}

}  // namespace harness::test::samples
