#include "workloads/gpt/schedule.h"

#include <algorithm>
#include <map>
#include <utility>

namespace harness::gpt {
namespace {

// A schedule decides the order of the passes; which of them are the first and the last of a chunk follows from it.
std::vector<Pass> with_ends_marked(std::vector<Pass> passes) {
  std::map<int, Pass*> latest;  // by chunk
  for (Pass& pass : passes) {
    if (pass.direction == Pass::Direction::forward) continue;
    pass.first = !latest.contains(pass.chunk);
    latest[pass.chunk] = &pass;
  }
  for (const auto& [chunk, pass] : latest) pass->last = true;
  return passes;
}

}  // namespace

std::vector<Pass> one_forward_one_backward(int stage, int stages, int micro_batches) {
  const int ahead = std::min(stages - stage - 1, micro_batches);
  std::vector<Pass> passes;
  for (int i = 0; i < ahead; ++i) passes.push_back({Pass::Direction::forward, i});
  for (int i = ahead; i < micro_batches; ++i) {
    passes.push_back({Pass::Direction::forward, i});
    passes.push_back({Pass::Direction::backward, i - ahead});
  }
  for (int i = micro_batches - ahead; i < micro_batches; ++i) passes.push_back({Pass::Direction::backward, i});
  return with_ends_marked(std::move(passes));
}

}  // namespace harness::gpt
