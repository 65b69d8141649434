#include "analysis/how_far.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/blocks.h"

namespace harness::analysis {
namespace {

struct Mean {
  double sum = 0;
  int n = 0;
  void add(double value) {
    sum += value;
    ++n;
  }
  double value() const { return sum / n; }
};

// From a block's start to the next one's, in the same session; of the last one what it reports itself.
double duration_of(const store::ResultBlock& block, const store::ResultBlock* next) {
  const bool followed = next != nullptr && next->session == block.session && next->start_unix_s > block.start_unix_s;
  return followed ? next->start_unix_s - block.start_unix_s : block.setup_s + block.timed_total_s;
}

}  // namespace

HowFar how_far(const store::Result& result) {
  HowFar out;
  std::set<int> rounds, open_rounds;
  std::vector<const store::ResultBlock*> measured, open;
  for (const store::ResultBlock& block : result.blocks) {
    rounds.insert(block.round);
    if (will_still_run(result, block)) {
      open_rounds.insert(block.round);
      open.push_back(&block);
    } else if (was_tried(block)) {
      measured.push_back(&block);
    }
  }
  out.blocks_done = measured.size();
  out.blocks = measured.size() + open.size();
  out.rounds = static_cast<int>(rounds.size());
  out.rounds_done = static_cast<int>(rounds.size() - open_rounds.size());
  if (open.empty() || measured.empty()) return out;
  std::ranges::stable_sort(measured, {}, [](const store::ResultBlock* block) { return block->start_unix_s; });
  Mean all;
  std::map<std::int32_t, Mean> by_case;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const double seconds = duration_of(*measured[i], i + 1 < measured.size() ? measured[i + 1] : nullptr);
    all.add(seconds);
    by_case[measured[i]->case_index].add(seconds);
  }
  double remaining_s = 0;
  for (const store::ResultBlock* block : open) {
    const auto own = by_case.find(block->case_index);
    remaining_s += own == by_case.end() ? all.value() : own->second.value();
  }
  out.remaining_s = remaining_s;
  return out;
}

}  // namespace harness::analysis
