#include "backend/cuda/judge.h"

#include <algorithm>
#include <cmath>

#include "backend/cuda/kernels/difference.h"
#include "backend/cuda/kernels/kernels.h"

namespace harness::cuda {

Judge::Judge(const std::vector<backend::Tensor>& results, double tolerance, float before, Stream stream)
    : tolerance_(tolerance),
      before_(before),
      stream_(stream),
      parts_(Memory::Kind::device, 2 * max_difference_parts * std::int64_t{sizeof(float)}, "comparing results") {
  for (const backend::Tensor& t : results) {
    if (t) kept_.push_back({t, Memory(Memory::Kind::device, t.bytes(), "what a result should be")});
  }
}

void Judge::set_reference(const Run& run) {
  compute(run);
  for (const Kept& k : kept_) copy_within(stream_, k.memory.data(), k.result.data, k.result.bytes());
  synchronize(stream_);
}

bool Judge::agrees(const Run& run) {
  compute(run);
  return std::ranges::all_of(kept_, [&](const Kept& k) { return is_near(k); });
}

void Judge::compute(const Run& run) {
  std::uint64_t seed = 1000;
  for (const Kept& k : kept_) fill_random(stream_, k.result, seed++, before_);
  run(stream_);
}

bool Judge::is_near(const Kept& k) {
  const backend::Tensor reference{k.memory.data(), k.result.type, k.result.count};
  const int count = difference(stream_, k.result, reference, reinterpret_cast<float*>(parts_.data()));
  std::vector<float> parts(2 * max_difference_parts);
  copy_out(stream_, parts.data(), parts_.data(), parts_.bytes());
  synchronize(stream_);
  double apart = 0, norm = 0, worst = 0;
  for (int i = 0; i < count; ++i) {
    apart += parts[2 * i];
    norm += parts[2 * i + 1];
    worst = std::max<double>(worst, parts[2 * i]);
  }
  // A part is held against the mean part: of few numbers, all may happen to be small. Rounding scatters over parts.
  constexpr double scatter = 2;
  return std::sqrt(apart) <= tolerance_ * std::sqrt(norm) &&  // false for a NaN
         std::sqrt(worst) <= scatter * tolerance_ * std::sqrt(norm / count);
}

}  // namespace harness::cuda
