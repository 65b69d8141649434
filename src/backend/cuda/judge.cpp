#include "backend/cuda/judge.h"

#include <algorithm>
#include <cmath>

#include "backend/cuda/kernels/difference.h"
#include "backend/cuda/kernels/kernels.h"

namespace harness::cuda {
namespace {

// Relative to the norm. Where bf16 is an input, the separate form rounds once more on its way. Where tf32 is, one
// kernel may round inputs to 10 bits and another cut them off.
double tolerance_of(const Product& product) {
  if (product.a.type == program::DType::bf16) return 1e-2;
  return product.tf32 ? 2e-3 : 1e-3;
}

}  // namespace

Judge::Judge(const Product& product, const Operands& operands, Blas& blas, Stream stream)
    : product_(product),
      at_(operands),
      blas_(blas),
      stream_(stream),
      parts_(Memory::Kind::device, 2 * max_difference_parts * std::int64_t{sizeof(float)}, "comparing products") {
  for (const backend::Tensor& t : {at_.out, at_.aux, at_.bias_gradient}) {
    if (t) kept_.push_back({t, Memory(Memory::Kind::device, t.bytes(), "what a product should be")});
  }
}

void Judge::set_reference(const ProductChoice& choice) {
  compute(choice);
  for (const Kept& k : kept_) copy_within(stream_, k.memory.data(), k.result.data, k.result.bytes());
  synchronize(stream_);
}

bool Judge::agrees(const ProductChoice& choice) {
  compute(choice);
  return std::ranges::all_of(kept_, [&](const Kept& k) { return is_near(k); });
}

// Results may be added to, or be inputs as well: before each call they are the same again.
void Judge::compute(const ProductChoice& choice) {
  std::uint64_t seed = 1000;
  for (const Kept& k : kept_) fill_random(stream_, k.result, seed++);
  blas_.prepare(product_, at_, choice)(stream_);
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
  const double tolerance = tolerance_of(product_);
  return std::sqrt(apart) <= tolerance * std::sqrt(norm) &&  // false for a NaN
         std::sqrt(worst) <= scatter * tolerance * std::sqrt(norm / count);
}

}  // namespace harness::cuda
