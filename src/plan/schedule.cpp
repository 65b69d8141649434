#include "plan/schedule.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "base/text.h"

namespace harness::plan {
namespace {

// std::shuffle and std::uniform_int_distribution give different orders with different standard libraries; this does
// not.
class Shuffler {
 public:
  explicit Shuffler(std::uint64_t seed) : seed_(seed) {}

  /// 0 … n-1 in random order (Fisher and Yates).
  std::vector<std::size_t> permutation(std::size_t n) {
    std::vector<std::size_t> p(n);
    std::iota(p.begin(), p.end(), 0);
    for (std::size_t i = n; i > 1; --i) std::swap(p[i - 1], p[below(i)]);
    return p;
  }

 private:
  // Uniform in [0, n): words beyond the largest multiple of n are drawn again, so that no remainder is favoured.
  std::size_t below(std::size_t n) {
    const std::uint64_t range = std::uint64_t{1} << 32;
    std::uint64_t word = 0;
    do {
      word = philox(seed_, counter_++, stream)[0];
    } while (word >= range - range % n);
    return word % n;
  }

  static inline const std::uint64_t stream = fnv1a("schedule");  // apart from weights and tokens of the same seed
  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
};

// 0, 1, n-1, 2, n-2, …: the differences of neighbours are all different modulo n when n is even, which balances who
// follows whom over the n rotations (E. J. Williams, "Experimental designs balanced for the estimation of residual
// effects of treatments", Australian Journal of Scientific Research A 2, 1949).
std::size_t zigzag(std::size_t position, std::size_t n) {
  if (position == 0) return 0;
  return position % 2 == 1 ? (position + 1) / 2 : n - position / 2;
}

// Of the first r rounds, ceil(r share): the epsilon keeps 10 · 0.1 from being more than 1.
bool takes_part(double share, int round) {
  const auto rounds_of = [share](int r) { return std::ceil(r * share - 1e-9); };
  return rounds_of(round + 1) > rounds_of(round);
}

}  // namespace

std::vector<Slot> make_schedule(std::span<const Entrant> entrants, int rounds, std::uint64_t seed) {
  const std::size_t n = entrants.size();
  std::vector<Slot> schedule;
  Shuffler shuffler(seed);
  std::vector<std::size_t> names, rotations;
  std::size_t row = n;  // of the square; n: a new square begins
  for (int round = 0; round < rounds; ++round, ++row) {
    if (row == n) {
      names = shuffler.permutation(n);      // which case plays which part of the square
      rotations = shuffler.permutation(n);  // in which order its rows are run
      row = 0;
    }
    int position = 0;
    for (std::size_t column = 0; column < n; ++column) {
      const Entrant& entrant = entrants[names[(zigzag(column, n) + rotations[row]) % n]];
      if (takes_part(entrant.share, round)) schedule.push_back({round, position++, entrant.case_index});
    }
  }
  return schedule;
}

}  // namespace harness::plan
