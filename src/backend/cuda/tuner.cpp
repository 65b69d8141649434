#include "backend/cuda/tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "backend/cuda/kernels/kernels.h"
#include "base/median.h"
#include "base/text.h"

namespace harness::cuda {
namespace {

// The base address while there is no memory, as aligned as allocated memory.
std::byte* nowhere() {
  return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20);  // NOLINT(performance-no-int-to-ptr): never read
}

constexpr int most_proposals = 16;  // per form
constexpr int max_calls = 200;      // per batch: a stream queues a limited number of launches

// Relative to the norm. With 16-bit inputs, the separate form rounds once more. With 8-bit inputs, kernels accumulate
// with fewer bits. With tf32, one kernel may round inputs to 10 bits and another truncate them.
double tolerance_of(const Product& product) {
  if (product.op.a.type != program::DType::f32) return 1e-2;
  return product.tf32 ? 2e-3 : 1e-3;
}

// Clocks take a second or two to ramp up from idle. In between, another algorithm may be the fastest.
void warm_up(const Product& needed, Blas& blas, Timer& timer, std::int64_t l2_bytes, double seconds) {
  if (seconds <= 0) return;
  const Rotation rotation(needed, 2 * l2_bytes, timer.stream());
  timer.sustained(rotation.runs(blas, blas.default_choice(rotation.products().front())), seconds);
}

// A proposal that the library refuses to run is skipped; the error names one that broke the GPU.
void throw_if_device_failed(const Error& problem, const Product& product, const ProductChoice& choice) {
  try {
    synchronize_device();
  } catch (const Error& failure) {
    throw DeviceFailed(fmt::format("while cuBLASLt's algorithm {} was tried for {}: {}; {}", print_choice(choice),
                                   key_of(product), problem.what(), failure.what()));
  }
}

// Returns the proposals that run and agree with the first; `rejected` counts those that run and do not agree.
std::vector<ProductChoice> right_ones(const Product& product, Blas& blas, Stream stream, int& rejected) {
  std::vector<ProductChoice> proposals = blas.candidates(product, most_proposals);
  Judge judge({product.op.out, product.op.aux, product.op.bias_gradient}, tolerance_of(product), stream);
  std::erase_if(proposals, [&](const ProductChoice& choice) {
    bool agrees = false;
    try {
      agrees = judge.agrees(blas.prepare(product, choice));
      rejected += agrees ? 0 : 1;
    } catch (const Error& e) {
      throw_if_device_failed(e, product, choice);
    }
    return !agrees;
  });
  if (!judge.has_reference()) fail("no algorithm of cuBLASLt runs for {}", key_of(product));
  if (proposals.empty()) fail("no algorithm of cuBLASLt computes the same twice for {}", key_of(product));
  return proposals;
}

ProductChoice fastest(const Product& needed, Blas& blas, Timer& timer, std::int64_t l2_bytes, double limit_s,
                      int most_rounds) {
  const Rotation rotation(needed, 2 * l2_bytes, timer.stream());
  int rejected = 0;
  std::vector<ProductChoice> choices = right_ones(rotation.products().front(), blas, timer.stream(), rejected);
  std::vector<std::vector<Blas::Run>> runs;
  for (const ProductChoice& choice : choices) runs.push_back(rotation.runs(blas, choice));
  double round_s = 0;
  for (const double seconds : timer.medians(runs, 1)) round_s += seconds;
  const int rounds =
      static_cast<int>(std::clamp(limit_s / std::max(round_s, 1e-7), 3.0, static_cast<double>(most_rounds)));
  const std::vector<double> medians = timer.medians(runs, rounds);
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i].seconds = medians[i];
  ProductChoice best = *std::ranges::min_element(choices, {}, &ProductChoice::seconds);
  best.rejected = rejected;
  return best;
}

}  // namespace

std::vector<Product> needed_products(const program::Program& program, bool tf32) {
  const program::Arena arena = program::plan_arena(program);
  std::vector<Product> needed;
  std::set<std::string> seen;
  for (const program::Operation& operation : program.step) {
    const auto* op = std::get_if<program::Matmul>(&operation.action);
    if (op == nullptr) continue;
    const auto tensor = [&](const program::View& v) { return backend::locate(v, program, arena, nowhere(), {}); };
    const Product product(backend::bind(*op, tensor), tf32);
    if (seen.insert(key_of(product)).second) needed.push_back(product);
  }
  return needed;
}

Rotation::Rotation(const Product& needed, std::int64_t at_least_bytes, Stream stream) {
  // Every operand is aligned like the worst of the real ones, because the library checks addresses.
  const std::int64_t skew = needed.alignment_bytes % 256;
  std::byte* begin = nowhere();
  std::int64_t at = 0;
  const auto place = [&](backend::Tensor& tensor, std::int64_t count) {
    tensor.data = begin + at + skew;
    tensor.count = count;
    at += (skew + tensor.bytes() + 255) / 256 * 256;
  };
  // Places a set of operands from `at` on.
  const auto place_all = [&] {
    Product p = needed;
    auto& op = p.op;
    place(op.a, op.m * op.k);
    place(op.b, op.k * op.n);
    place(op.out, op.m * op.n);
    if (op.aux) place(op.aux, op.m * op.n);
    if (op.add) place(op.add, op.m * op.n);
    if (op.bias) place(op.bias, op.n);
    if (op.bias_gradient) place(op.bias_gradient, op.m);
    if (program::is_fp8(op.a.type)) {
      place(op.a_scale, p.block_scales() ? block_scales(op.m, op.k) : 1);
      place(op.b_scale, p.block_scales() ? block_scales(op.n, op.k) : 1);
    }
    backend::Tensor scratch;
    place(scratch, scratch_floats(op));
    p.scratch = scratch.f32();
    return p;
  };
  place_all();
  const std::int64_t set_bytes = at, sets = std::clamp<std::int64_t>((at_least_bytes + at - 1) / at, 1, 32);
  memory_ = Memory(Memory::Kind::device, sets * set_bytes, "tuning a matrix product");
  begin = memory_.data();
  at = 0;
  for (std::int64_t i = 0; i < sets; ++i) products_.push_back(place_all());

  std::uint64_t seed = 1;
  float deviation_of_a = 1;
  while (deviation_of_a * deviation_of_a * static_cast<float>(needed.op.k) > 2) deviation_of_a /= 2;
  for (const Product& p : products_) {
    fill_random(stream, p.op.a, seed++, deviation_of_a);
    for (const backend::Tensor& t : {p.op.b, p.op.out, p.op.add, p.op.aux, p.op.bias, p.op.bias_gradient}) {
      if (t) fill_random(stream, t, seed++);
    }
    for (const backend::Tensor& t : {p.op.a_scale, p.op.b_scale}) {
      if (t) run(stream, backend::Bound<program::Fill>{t, 1});
    }
  }
}

std::vector<Blas::Run> Rotation::runs(Blas& blas, const ProductChoice& choice) const {
  std::vector<Blas::Run> runs;
  for (const Product& p : products_) runs.push_back(blas.prepare(p, choice));
  return runs;
}

Judge::Judge(const std::vector<backend::Tensor>& results, double tolerance, Stream stream)
    : tolerance_(tolerance),
      stream_(stream),
      parts_(Memory::Kind::device, 2 * max_difference_parts * std::int64_t{sizeof(float)}, "comparing results") {
  for (const backend::Tensor& t : results) {
    if (t) kept_.push_back({t, Memory(Memory::Kind::device, t.bytes(), "what a result should be")});
  }
}

bool Judge::agrees(const Blas::Run& run) {
  if (!has_reference_) {
    compute(run);
    for (const Kept& k : kept_) copy_within(stream_, k.reference.data(), k.result.data, k.result.bytes());
    synchronize(stream_);
    has_reference_ = true;
  }
  compute(run);
  return std::ranges::all_of(kept_, [&](const Kept& k) { return is_near(k); });
}

void Judge::compute(const Blas::Run& run) {
  std::uint64_t seed = 1000;
  for (const Kept& k : kept_) fill_random(stream_, k.result, seed++);
  run(stream_);
}

bool Judge::is_near(const Kept& k) {
  const backend::Tensor reference{k.reference.data(), k.result.type, k.result.count};
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
  // Compares a part with the mean part, because its few numbers may all be small. Rounding varies between parts.
  constexpr double scatter = 2;
  return std::sqrt(apart) <= tolerance_ * std::sqrt(norm) &&  // false for a NaN
         std::sqrt(worst) <= scatter * tolerance_ * std::sqrt(norm / count);
}

backend::Tuning tune_products(const program::Program& program, bool tf32, const backend::Tuning& known,
                              std::int64_t l2_bytes, const Effort& effort) {
  std::vector<Product> unknown = needed_products(program, tf32);
  std::erase_if(unknown, [&](const Product& p) { return known.contains(key_of(p)); });
  double flop = 0;
  for (const Product& p : unknown) flop += p.flop();
  backend::Tuning found;
  Blas blas;
  Timer timer;
  bool warm = false;
  for (const Product& needed : unknown) {
    try {
      if (!warm) warm_up(needed, blas, timer, l2_bytes, effort.warm_up_s);
      warm = true;
      const double its_limit_s = effort.limit_s * needed.flop() / flop;
      found[key_of(needed)] = print_choice(fastest(needed, blas, timer, l2_bytes, its_limit_s, effort.rounds));
    } catch (const OutOfMemory&) {  // too large for the otherwise empty GPU: the library's first proposal serves
    }
  }
  return found;
}

double measure_products(config::Precision precision, double seconds) {
  constexpr std::int64_t n = 8192;
  const program::DType type = config::storage_of(precision);
  const bool fp8 = config::has_fp8_products(precision);
  const program::DType factor = fp8 ? program::DType::e4m3 : type;
  const program::DType scale = precision == config::Precision::mxfp8 ? program::DType::e8m0 : program::DType::f32;
  const Product needed({.a = {nullptr, factor},
                        .b = {nullptr, factor},
                        .out = {nullptr, type},
                        .m = n,
                        .n = n,
                        .k = n,
                        .transpose_b = fp8,
                        .a_scale = {nullptr, scale},
                        .b_scale = {nullptr, scale}},
                       precision == config::Precision::tf32);
  Blas blas;
  Timer timer;
  constexpr double limit_s = 5;
  const ProductChoice choice = fastest(needed, blas, timer, 0, limit_s, Effort{}.rounds);
  const Rotation rotation(needed, 0, timer.stream());
  return needed.flop() / timer.sustained(rotation.runs(blas, choice), seconds);
}

double measure_copies(double seconds) {
  constexpr std::int64_t bytes = std::int64_t{1} << 30;  // no L2 holds a notable part of it
  const Memory from(Memory::Kind::device, bytes, "what a copy reads"), to(Memory::Kind::device, bytes, "a copy");
  Timer timer;
  fill_random(timer.stream(),
              backend::Tensor{from.data(), program::DType::f32, bytes / program::size_of(program::DType::f32)}, 1);
  const std::vector<Blas::Run> runs{[&](Stream s) { copy_within(s, to.data(), from.data(), bytes); }};
  return 2 * static_cast<double>(bytes) / timer.sustained(runs, seconds);
}

double Timer::measure(const std::vector<Blas::Run>& runs, int calls) {
  spin(stream_.get(), 50e-6 + 5e-6 * calls);  // the device waits until the host has queued everything
  begin_.record(stream_.get());
  for (int i = 0; i < calls; ++i) runs[i % runs.size()](stream_.get());
  end_.record(stream_.get());
  synchronize(stream_.get());
  return end_.seconds_since(begin_) / calls;
}

double Timer::sustained(const std::vector<Blas::Run>& runs, double seconds) {
  constexpr double longest_batch_s = 0.05;
  const double rounds = std::min(longest_batch_s, seconds) / std::max(measure(runs, 2), 1e-7);
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

std::vector<double> Timer::medians(const std::vector<std::vector<Blas::Run>>& candidates, int rounds) {
  const int count = static_cast<int>(candidates.size());
  std::vector<std::vector<double>> seconds(candidates.size());
  for (int done = 0; done < rounds;) {
    const int batch = std::clamp(max_calls / count, 1, rounds - done);
    const int calls = batch * count;
    std::vector<OwnedEvent> ends;  // [i]: of call i - 1
    for (int i = 0; i <= calls; ++i) ends.emplace_back(OwnedEvent::Timing::on);
    spin(stream_.get(), 50e-6 + 10e-6 * calls);
    ends[0].record(stream_.get());
    for (int i = 0; i < calls; ++i) {
      const auto& runs = candidates[i % count];
      runs[(done + i / count) % runs.size()](stream_.get());
      ends[i + 1].record(stream_.get());
    }
    synchronize(stream_.get());
    for (int i = 0; i < calls; ++i) seconds[i % count].push_back(ends[i + 1].seconds_since(ends[i]));
    done += batch;
  }
  std::vector<double> medians;
  for (const auto& s : seconds) medians.push_back(median(s));
  return medians;
}

machine::HostCopies measure_host_copies(double seconds) {
  constexpr std::int64_t copy_bytes = 64 << 20;  // large enough to make the start of a copy negligible
  const auto memory = [](Memory::Kind kind) { return Memory(kind, copy_bytes, "copies between host and GPU"); };
  // The driver allocates pinned memory on the NUMA node that the worker is bound to.
  const Memory host_from = memory(Memory::Kind::pinned), device_to = memory(Memory::Kind::device);
  const Memory host_to = memory(Memory::Kind::pinned), device_from = memory(Memory::Kind::device);
  Timer timer;
  const OwnedStream other(Priority::normal);
  const OwnedEvent begun(OwnedEvent::Timing::off), ended(OwnedEvent::Timing::off);
  const auto to_device = [&](Stream s) { copy_in(s, device_to.data(), host_from.data(), copy_bytes); };
  const auto from_device = [&](Stream s) { copy_out(s, host_to.data(), device_from.data(), copy_bytes); };
  const auto both = [&](Stream s) {
    begun.record(s);
    wait_for(other.get(), begun.get());
    to_device(s);
    from_device(other.get());
    ended.record(other.get());
    wait_for(s, ended.get());
  };
  constexpr auto bytes = static_cast<double>(copy_bytes);
  machine::HostCopies rates;
  rates.to_device_bytes_per_s = bytes / timer.sustained({to_device}, seconds / 3);
  rates.from_device_bytes_per_s = bytes / timer.sustained({from_device}, seconds / 3);
  rates.both_bytes_per_s = 2 * bytes / timer.sustained({both}, seconds / 3);
  return rates;
}

}  // namespace harness::cuda
