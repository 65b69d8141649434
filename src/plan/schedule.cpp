#include "plan/schedule.h"

#include <numeric>
#include <utility>

#include "base/random.h"
#include "base/text.h"

namespace harness {
namespace {

// std::shuffle and std::uniform_int_distribution give different orders with different standard libraries; this does
// not.
class Shuffler {
 public:
  explicit Shuffler(std::uint64_t seed) : seed_(seed) {}

  /// 0 … n-1 in random order (Fisher and Yates).
  std::vector<int> permutation(std::size_t n) {
    std::vector<int> p(n);
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
int zigzag(int position, int n) {
  if (position == 0) return 0;
  return position % 2 == 1 ? (position + 1) / 2 : n - position / 2;
}

}  // namespace

std::vector<Slot> make_schedule(std::span<const int> cases, int rounds, std::uint64_t seed) {
  const auto n = static_cast<int>(cases.size());
  std::vector<Slot> schedule;
  schedule.reserve(cases.size() * static_cast<std::size_t>(rounds));
  Shuffler shuffler(seed);
  std::vector<int> names, rotations;
  for (int round = 0; round < rounds; ++round) {
    if (round % n == 0) {
      names = shuffler.permutation(cases.size());      // which case plays which part of the square
      rotations = shuffler.permutation(cases.size());  // in which order its rows are run
    }
    const int rotation = rotations[static_cast<std::size_t>(round % n)];
    for (int position = 0; position < n; ++position) {
      const auto part = static_cast<std::size_t>((zigzag(position, n) + rotation) % n);
      schedule.push_back({round, position, cases[static_cast<std::size_t>(names[part])]});
    }
  }
  return schedule;
}

}  // namespace harness
