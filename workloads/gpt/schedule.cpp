#include "workloads/gpt/schedule.h"

#include <algorithm>

namespace harness::gpt {

std::vector<Pass> one_forward_one_backward(int stage, int stages, int micro_batches) {
  const int ahead = std::min(stages - stage - 1, micro_batches);
  std::vector<Pass> passes;
  for (int i = 0; i < ahead; ++i) passes.push_back({Pass::Direction::forward, i});
  for (int i = ahead; i < micro_batches; ++i) {
    passes.push_back({Pass::Direction::forward, i});
    passes.push_back({Pass::Direction::backward, i - ahead});
  }
  for (int i = micro_batches - ahead; i < micro_batches; ++i) passes.push_back({Pass::Direction::backward, i});
  return passes;
}

}  // namespace harness::gpt
