#include "backend/cuda/trial.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <utility>

#include "backend/cuda/algorithm.h"
#include "backend/cuda/judge.h"
#include "backend/cuda/kernels/kernels.h"
#include "base/error.h"

namespace harness::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// Relative to the norm. Where bf16 is an input, the separate form rounds once more on its way. Where tf32 is, one
// kernel may round inputs to 10 bits and another cut them off.
double tolerance_of(const Product& product) {
  if (product.a.type == program::DType::bf16) return 1e-2;
  return product.tf32 ? 2e-3 : 1e-3;
}

// What was tried so far, each form and algorithm once.
class Trials {
 public:
  Trials(const Product& product, const Rotation& rotation, Blas& blas, Timer& timer, const Effort& effort)
      : product_(product),
        rotation_(rotation),
        blas_(blas),
        timer_(timer),
        quick_s_(effort.quick_s),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(effort.limit_s))) {}

  // Times those that are new, until the time is up.
  void add(std::vector<ProductChoice> choices) {
    for (ProductChoice& choice : choices) {
      if (!timed_.empty() && Clock::now() > end_) return;
      if (!seen_.emplace(choice.fused, choice.algorithm).second) continue;
      attempt(choice, [&] {
        choice.seconds = timer_.mean(runs_of(product_, rotation_, blas_, choice), quick_s_, hopeless * fastest_s_);
        fastest_s_ = std::min(fastest_s_, choice.seconds);
        timed_.push_back(choice);
      });
    }
  }

  // Calls f(); false if the library refuses. Throws DeviceFailed if the device does not survive it.
  template <class F>
  bool attempt(const ProductChoice& choice, F&& f) const {
    return survives(f, [&] {
      return fmt::format("while cuBLASLt's algorithm {} was tried for {}", print_choice(choice), key_of(product_));
    });
  }

  // In the order in which they were tried.
  const std::vector<ProductChoice>& timed() const { return timed_; }
  std::vector<ProductChoice> from_the_fastest() const {
    std::vector<ProductChoice> sorted = timed_;
    std::ranges::stable_sort(sorted, {}, &ProductChoice::seconds);
    return sorted;
  }

 private:
  // So many times as slow as the fastest in its first call, a proposal needs no second one.
  static constexpr double hopeless = 1.4;

  const Product& product_;
  const Rotation& rotation_;
  Blas& blas_;
  Timer& timer_;
  double quick_s_, fastest_s_ = std::numeric_limits<double>::infinity();
  Clock::time_point end_;
  std::set<std::pair<bool, std::string>> seen_;
  std::vector<ProductChoice> timed_;
};

// Variants of the fastest of each form.
std::vector<ProductChoice> variants_of_fastest(const Trials& trials, int at_most) {
  std::vector<ProductChoice> variants;
  const std::vector<ProductChoice> sorted = trials.from_the_fastest();
  for (const bool fused : {true, false}) {
    const auto best = std::ranges::find(sorted, fused, &ProductChoice::fused);
    if (best == sorted.end()) continue;
    for (std::string& algorithm : variants_of(best->algorithm, at_most)) {
      variants.push_back({fused, std::move(algorithm)});
    }
  }
  return variants;
}

// The first proposal, of the separate form where there is one: `timed` is in the library's order.
ProductChoice reference_of(const std::vector<ProductChoice>& timed) {
  const auto separate = std::ranges::find(timed, false, &ProductChoice::fused);
  return separate == timed.end() ? timed.front() : *separate;
}

void sort_by(std::vector<double> seconds, std::vector<ProductChoice>& choices) {
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i].seconds = seconds[i];
  std::ranges::stable_sort(choices, {}, &ProductChoice::seconds);
}

}  // namespace

Rotation::Rotation(const Product& p, const program::Matmul& op, std::int64_t at_least_bytes) {
  // Every operand lies as badly as the worst of the real ones: the library asks addresses for their alignment.
  const std::int64_t skew = p.alignment_bytes % 256;
  const auto bytes = [&](std::int64_t count, program::DType type) {
    return (skew + count * program::size_of(type) + 255) / 256 * 256;
  };
  const std::int64_t a = bytes(p.m * p.k, p.a.type), b = bytes(p.k * p.n, p.b.type), out = bytes(p.m * p.n, p.out.type);
  const std::int64_t aux = op.aux.present() ? out : 0, add = p.add ? out : 0,
                     vector = bytes(std::max(p.m, p.n), program::DType::f32);
  const std::int64_t scratch = bytes(Blas::scratch_floats(p), program::DType::f32);
  const std::int64_t set_bytes = a + b + out + aux + add + 2 * vector + scratch;
  const std::int64_t sets = std::clamp<std::int64_t>((at_least_bytes + set_bytes - 1) / set_bytes, 1, 32);
  while (deviation_of_a_ * deviation_of_a_ * static_cast<float>(p.k) > 2) deviation_of_a_ /= 2;
  memory_ = Memory(Memory::Kind::device, sets * set_bytes, "tuning a matrix product");
  std::byte* at = memory_.data();
  const auto take = [&](std::int64_t size, program::DType type, std::int64_t count) {
    const backend::Tensor t{at + skew, type, count};
    at += size;
    return t;
  };
  for (std::int64_t i = 0; i < sets; ++i) {
    Operands o;
    o.a = take(a, p.a.type, p.m * p.k);
    o.b = take(b, p.b.type, p.k * p.n);
    o.out = take(out, p.out.type, p.m * p.n);
    if (op.aux.present()) o.aux = take(aux, p.out.type, p.m * p.n);
    if (p.add) o.add = take(add, p.out.type, p.m * p.n);
    const backend::Tensor first = take(vector, p.bias ? p.out.type : program::DType::f32, p.n);
    if (p.bias) o.bias = first;
    const backend::Tensor second = take(vector, program::DType::f32, p.m);
    if (p.bias_gradient) o.bias_gradient = second;
    o.scratch = take(scratch, program::DType::f32, 0).f32();
    operands_.push_back(o);
  }
}

void Rotation::fill(Stream stream) const {
  std::uint64_t seed = 1;
  for (const Operands& o : operands_) {
    fill_random(stream, o.a, seed++, deviation_of_a_);
    for (const backend::Tensor& t : {o.b, o.out, o.add, o.aux, o.bias, o.bias_gradient}) {
      if (t) fill_random(stream, t, seed++);
    }
  }
}

std::vector<Blas::Run> runs_of(const Product& product, const Rotation& rotation, Blas& blas,
                               const ProductChoice& choice) {
  std::vector<Blas::Run> runs;
  for (const Operands& o : rotation.operands()) runs.push_back(blas.prepare(product, o, choice));
  return runs;
}

ProductChoice fastest(const Product& product, const program::Matmul& operation, Blas& blas, Timer& timer,
                      std::int64_t l2_bytes, const Effort& effort) {
  const Rotation rotation(product, operation, 2 * l2_bytes);
  rotation.fill(timer.stream());
  const Operands& first = rotation.operands().front();
  Trials trials(product, rotation, blas, timer, effort);
  trials.add(blas.candidates(product, first, effort.proposals));
  if (trials.timed().empty()) fail("no algorithm runs");
  const ProductChoice reference = reference_of(trials.timed());
  for (int i = 0; i < effort.varied; ++i) {
    trials.add(blas.runnable(product, first, variants_of_fastest(trials, effort.variants)));
  }
  Judge judge({first.out, first.aux, first.bias_gradient}, tolerance_of(product), 1, timer.stream());
  judge.set_reference(blas.prepare(product, first, reference));
  std::vector<ProductChoice> finalists;
  int rejected = 0;
  for (const ProductChoice& choice : trials.from_the_fastest()) {
    if (std::cmp_equal(finalists.size(), effort.finalists)) break;
    bool agrees = false;
    const bool ran = trials.attempt(choice, [&] { agrees = judge.agrees(blas.prepare(product, first, choice)); });
    if (agrees) finalists.push_back(choice);
    rejected += ran && !agrees ? 1 : 0;
  }
  if (finalists.empty()) fail("no algorithm computes the same twice");
  const auto runs = [&] {
    std::vector<std::vector<Blas::Run>> all;
    for (const ProductChoice& choice : finalists) all.push_back(runs_of(product, rotation, blas, choice));
    return all;
  };
  sort_by(timer.medians(runs(), effort.rounds), finalists);
  if (effort.lasting_s > 0) {
    finalists.resize(std::min<std::size_t>(finalists.size(), effort.lasting));
    sort_by(timer.lasting(runs(), effort.lasting_s), finalists);
  }
  finalists.front().rejected = rejected;
  return finalists.front();
}

}  // namespace harness::cuda
