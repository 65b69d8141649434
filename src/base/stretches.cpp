#include "base/stretches.h"

#include <algorithm>

namespace harness {

Stretches united(std::vector<Stretch> stretches) {
  std::erase_if(stretches, [](const Stretch& s) { return !(s.start_s < s.end_s); });
  std::ranges::sort(stretches, {}, &Stretch::start_s);
  Stretches whole;
  for (const Stretch& next : stretches) {
    if (whole.empty() || next.start_s > whole.back().end_s) {
      whole.push_back(next);
    } else {
      whole.back().end_s = std::max(whole.back().end_s, next.end_s);
    }
  }
  return whole;
}

Stretches without(const Stretches& a, const Stretches& b) {
  Stretches left;
  auto hole = b.begin();
  for (const Stretch& stretch : a) {
    double at = stretch.start_s;
    while (hole != b.end() && hole->end_s <= at) ++hole;
    for (auto h = hole; h != b.end() && h->start_s < stretch.end_s; ++h) {
      if (at < h->start_s) left.push_back({at, h->start_s});
      at = h->end_s;
    }
    if (at < stretch.end_s) left.push_back({at, stretch.end_s});
  }
  return left;
}

double length(const Stretches& stretches) {
  double sum = 0;
  for (const Stretch& s : stretches) sum += s.end_s - s.start_s;
  return sum;
}

}  // namespace harness
