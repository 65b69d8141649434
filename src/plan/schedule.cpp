#include "plan/plan.h"

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

// The order of n things in one round after the other.
class BalancedOrder {
 public:
  explicit BalancedOrder(std::size_t n) : n_(n), row_(n) {}

  std::vector<std::size_t> next(Shuffler& shuffler) {
    if (row_ == n_) {
      names_ = shuffler.permutation(n_);      // which thing plays which part of the square
      rotations_ = shuffler.permutation(n_);  // in which order its rows are run
      row_ = 0;
    }
    std::vector<std::size_t> order(n_);
    for (std::size_t column = 0; column < n_; ++column)
      order[column] = names_[(zigzag(column, n_) + rotations_[row_]) % n_];
    ++row_;
    return order;
  }

 private:
  std::size_t n_, row_;  // row_: of the square; n_: a new square begins
  std::vector<std::size_t> names_, rotations_;
};

}  // namespace

std::vector<Slot> make_schedule(std::span<const EntrantSet> sets, int rounds, std::uint64_t seed) {
  std::vector<Slot> schedule;
  Shuffler shuffler(seed);
  BalancedOrder of_sets(sets.size());
  std::vector<BalancedOrder> within;
  for (const EntrantSet& set : sets) within.emplace_back(set.size());
  for (int round = 0; round < rounds; ++round) {
    int position = 0;
    for (const std::size_t set : of_sets.next(shuffler)) {
      const int process = static_cast<int>(schedule.size());
      for (const std::size_t member : within[set].next(shuffler))
        schedule.push_back({round, position++, sets[set][member], process});
    }
  }
  return schedule;
}

}  // namespace harness::plan
