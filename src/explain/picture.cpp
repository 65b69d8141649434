#include "explain/picture.h"

#include <algorithm>
#include <cmath>

#include "analysis/profiled_step.h"

namespace harness::explain {
namespace {

double finite_or_0(double seconds) {
  return std::isfinite(seconds) ? seconds : 0;
}

double takes_s(const Picture& picture, const analysis::KindTime& kind) {
  const auto found = std::ranges::find_if(picture.kinds, [&](const auto& other) { return other.is_same_kind(kind); });
  return found == picture.kinds.end() ? 0 : found->takes_s;
}

}  // namespace

Picture picture_of(const store::Result& result, const analysis::CaseBreakdown& breakdown) {
  Picture picture{breakdown.mean.step_s, {}, breakdown.mean.kinds};
  for (const store::ResultSplit& split : result.splits) {
    if (split.case_index != breakdown.case_index || split.rank < 0 || split.rank >= result.ranks) continue;
    const auto rank = static_cast<std::size_t>(split.rank);
    if (rank >= picture.ranks.size()) picture.ranks.resize(rank + 1);
    const double waits_s = finite_or_0(split.waiting_s) + finite_or_0(split.bubble_s);
    picture.ranks[rank] = {split.compute_s, std::max(0.0, split.communication_s - waits_s), waits_s};
  }
  return picture;
}

Picture picture_of(const store::Result& predicted) {
  return picture_of(predicted, analysis::break_down(predicted).front());
}

double distance(const Picture& a, const Picture& b) {
  double seconds = 0;
  const std::size_t ranks = std::min(a.ranks.size(), b.ranks.size());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    seconds += std::abs(a.ranks[rank].computes_s - b.ranks[rank].computes_s) +
               std::abs(a.ranks[rank].communicates_s - b.ranks[rank].communicates_s) +
               std::abs(a.ranks[rank].waits_s - b.ranks[rank].waits_s);
  }
  if (ranks > 0) seconds /= static_cast<double>(ranks);
  for (const analysis::KindTime& kind : a.kinds) {
    if (analysis::is_communication(kind.kind)) seconds += std::abs(kind.takes_s - takes_s(b, kind));
  }
  return seconds;
}

double common_slowness(const Picture& measured, const Picture& predicted) {
  std::vector<double> ratios;
  const std::size_t ranks = std::min(measured.ranks.size(), predicted.ranks.size());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (predicted.ranks[rank].computes_s > 0)
      ratios.push_back(measured.ranks[rank].computes_s / predicted.ranks[rank].computes_s);
  }
  if (ratios.empty()) return 1;
  // The lower one of two in the middle: of two ranks the quicker is the rule.
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>((ratios.size() - 1) / 2);
  std::ranges::nth_element(ratios, middle);
  return *middle;
}

}  // namespace harness::explain
