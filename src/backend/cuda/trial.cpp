#include "backend/cuda/trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "backend/cuda/algorithm.h"
#include "backend/cuda/kernels/difference.h"
#include "backend/cuda/kernels/kernels.h"
#include "base/error.h"

namespace harness::cuda {
namespace {

constexpr std::int64_t max_memory = std::int64_t{8} << 30;
constexpr int max_calls = 200;  // at a time: a stream holds a limited number of launches

// Relative to the norm. Where bf16 is an input, the separate form rounds once more on its way.
double tolerance_of(const Product& product) {
  return product.a.type == program::DType::bf16 ? 1e-2 : 1e-3;
}

/// What the reference made of the first set of operands, and whether another choice makes the same.
class Judge {
 public:
  Judge(const Product& product, const Operands& operands, Blas& blas, Stream stream)
      : product_(product), at_(operands), blas_(blas), stream_(stream) {
    for (const backend::Tensor& t : {at_.out, at_.aux, at_.bias_gradient}) {
      if (t) kept_.push_back({t, Memory(Memory::Kind::device, t.bytes(), "what a product should be")});
    }
  }

  void set_reference(const ProductChoice& choice) {
    compute(choice);
    for (const Kept& k : kept_) copy_within(stream_, k.memory.data(), k.result.data, k.result.bytes());
    synchronize(stream_);
  }

  bool agrees(const ProductChoice& choice) {
    compute(choice);
    return std::ranges::all_of(kept_, [&](const Kept& k) { return is_near(k); });
  }

 private:
  struct Kept {
    backend::Tensor result;
    Memory memory;  // the reference's
  };

  // Results may be added to, or be inputs as well: before each call they are the same again.
  void compute(const ProductChoice& choice) {
    std::uint64_t seed = 1000;
    for (const Kept& k : kept_) fill_random(stream_, k.result, seed++);
    blas_.prepare(product_, at_, choice)(stream_);
  }

  bool is_near(const Kept& k) {
    const backend::Tensor reference{k.memory.data(), k.result.type, k.result.count};
    const int count = difference(stream_, k.result, reference, reinterpret_cast<float*>(parts_.data()));
    std::vector<float> parts(2 * max_difference_parts);
    copy_out(stream_, parts.data(), parts_.data(), parts_.bytes());
    synchronize(stream_);
    double apart = 0, norm = 0;
    for (int i = 0; i < count; ++i) {
      apart += parts[2 * i];
      norm += parts[2 * i + 1];
    }
    return std::sqrt(apart) <= tolerance_of(product_) * std::sqrt(norm);  // false for a NaN
  }

  const Product& product_;
  Operands at_;
  Blas& blas_;
  Stream stream_;
  std::vector<Kept> kept_;
  Memory parts_{Memory::Kind::device, 2 * max_difference_parts* std::int64_t{sizeof(float)}, "comparing products"};
};

double median(std::vector<double> values) {
  const std::size_t half = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(half));
  return values[half];
}

// The first proposal, of the separate form where there is one: `timed` is in the library's order.
ProductChoice reference_of(const std::vector<ProductChoice>& timed) {
  const auto separate = std::ranges::find(timed, false, &ProductChoice::fused);
  return separate == timed.end() ? timed.front() : *separate;
}

}  // namespace

double Timer::measure(const std::vector<Blas::Run>& runs, int calls) {
  spin(stream_.get(), 50e-6 + 5e-6 * calls);  // the device waits until the host has queued everything
  begin_.record(stream_.get());
  for (int i = 0; i < calls; ++i) runs[i % runs.size()](stream_.get());
  end_.record(stream_.get());
  synchronize(stream_.get());
  return end_.seconds_since(begin_) / calls;
}

double Timer::mean(const std::vector<Blas::Run>& runs, double seconds) {
  runs.front()(stream_.get());  // loads its code
  const double rounds = seconds / std::max(measure(runs, 2), 1e-7);
  return measure(runs, static_cast<int>(std::clamp(rounds, 3.0, double{max_calls})));
}

double Timer::sustained(const std::vector<Blas::Run>& runs, double seconds) {
  constexpr double batch_s = 0.05;
  const double rounds = batch_s / std::max(measure(runs, 2), 1e-7);
  const int batch = static_cast<int>(std::clamp(rounds, 1.0, double{max_calls}));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  double total_s = 0;
  std::int64_t batches = 0;
  do {
    total_s += measure(runs, batch);
    ++batches;
  } while (std::chrono::steady_clock::now() < end);
  return total_s / static_cast<double>(batches);
}

std::vector<double> Timer::medians(const std::vector<std::vector<Blas::Run>>& contestants, int rounds) {
  const int calls = rounds * static_cast<int>(contestants.size());
  std::vector<OwnedEvent> ends;  // [i]: of call i - 1
  for (int i = 0; i <= calls; ++i) ends.emplace_back(OwnedEvent::Timing::on);
  spin(stream_.get(), 50e-6 + 10e-6 * calls);
  ends[0].record(stream_.get());
  for (int i = 0; i < calls; ++i) {
    const auto& runs = contestants[i % contestants.size()];
    runs[i % runs.size()](stream_.get());
    ends[i + 1].record(stream_.get());
  }
  synchronize(stream_.get());
  std::vector<std::vector<double>> seconds(contestants.size());
  for (int i = 0; i < calls; ++i) seconds[i % contestants.size()].push_back(ends[i + 1].seconds_since(ends[i]));
  std::vector<double> medians;
  for (const auto& s : seconds) medians.push_back(median(s));
  return medians;
}

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
  if (sets * set_bytes > max_memory) fail("{} bytes to tune a product", sets * set_bytes);
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
    for (const backend::Tensor& t : {o.a, o.b, o.out, o.add, o.aux, o.bias, o.bias_gradient}) {
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
  std::vector<ProductChoice> timed;
  const auto time_all = [&](std::vector<ProductChoice> choices) {
    for (ProductChoice& choice : choices) {
      try {
        choice.seconds = timer.mean(runs_of(product, rotation, blas, choice), effort.quick_s);
        timed.push_back(choice);
      } catch (const Error&) {  // a proposal may still refuse to run
      }
    }
  };
  time_all(blas.candidates(product, first, effort.proposals));
  if (timed.empty()) fail("no algorithm runs");
  const ProductChoice reference = reference_of(timed);
  std::ranges::stable_sort(timed, {}, &ProductChoice::seconds);
  std::vector<ProductChoice> variants;
  for (std::size_t i = 0; i < timed.size() && std::cmp_less(i, effort.varied); ++i) {
    for (std::string& algorithm : variants_of(timed[i].algorithm, effort.variants)) {
      variants.push_back({timed[i].fused, std::move(algorithm)});
    }
  }
  time_all(blas.runnable(product, first, variants));
  Judge judge(product, first, blas, timer.stream());
  judge.set_reference(reference);
  std::ranges::stable_sort(timed, {}, &ProductChoice::seconds);
  std::vector<ProductChoice> finalists;
  int rejected = 0;
  for (const ProductChoice& choice : timed) {
    if (std::cmp_equal(finalists.size(), effort.finalists)) break;
    if (judge.agrees(choice)) {
      finalists.push_back(choice);
    } else {
      ++rejected;
    }
  }
  if (finalists.empty()) fail("no algorithm computes the same twice");
  std::vector<std::vector<Blas::Run>> contestants;
  for (const ProductChoice& choice : finalists) contestants.push_back(runs_of(product, rotation, blas, choice));
  const std::vector<double> seconds = timer.medians(contestants, effort.rounds);
  for (std::size_t i = 0; i < finalists.size(); ++i) finalists[i].seconds = seconds[i];
  ProductChoice best = *std::ranges::min_element(finalists, {}, &ProductChoice::seconds);
  best.rejected = rejected;
  return best;
}

}  // namespace harness::cuda
