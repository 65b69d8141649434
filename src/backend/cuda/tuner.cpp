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

constexpr int most_proposals = 16;  // of a form
constexpr int max_calls = 200;      // at a time: a stream holds a limited number of launches

// Relative to the norm. Where an input has 16 bits, the separate form rounds once more on its way. Where it has 8,
// kernels add up with fewer bits. Where tf32 is, one kernel may round inputs to 10 bits and another cut them off.
double tolerance_of(const Product& product) {
  if (product.a.type != program::DType::f32) return 1e-2;
  return product.tf32 ? 2e-3 : 1e-3;
}

// Clocks climb from idle within a second or two. At the clocks between, another algorithm may be the fastest.
void warm_up(const NeededProduct& needed, Blas& blas, Timer& timer, std::int64_t l2_bytes, double seconds) {
  if (seconds <= 0) return;
  const Rotation rotation(needed, 2 * l2_bytes);
  rotation.fill(timer.stream());
  const ProductChoice choice = blas.default_choice(needed.product, rotation.operands().front());
  timer.sustained(rotation.runs(needed.product, blas, choice), seconds);
}

// A proposal that the library refuses to run is none; one that broke the GPU is named.
void throw_if_device_failed(const Error& problem, const Product& product, const ProductChoice& choice) {
  try {
    synchronize_device();
  } catch (const Error& failure) {
    throw DeviceFailed(fmt::format("while cuBLASLt's algorithm {} was tried for {}: {}; {}", print_choice(choice),
                                   key_of(product), problem.what(), failure.what()));
  }
}

// The proposals that run and compute what the first of them does; `rejected` counts those that run and do not.
std::vector<ProductChoice> right_ones(std::vector<ProductChoice> proposals, const NeededProduct& needed,
                                      const Operands& at, Blas& blas, Stream stream, int& rejected) {
  const Product& product = needed.product;
  Judge judge({at.out, at.aux, at.bias_gradient}, tolerance_of(product), stream);
  bool has_reference = false;
  std::erase_if(proposals, [&](const ProductChoice& choice) {
    bool agrees = false;
    try {
      const Blas::Run run = blas.prepare(product, at, choice);
      if (!has_reference) judge.set_reference(run);
      has_reference = true;
      agrees = judge.agrees(run);
      rejected += agrees ? 0 : 1;
    } catch (const Error& e) {
      throw_if_device_failed(e, product, choice);
    }
    return !agrees;
  });
  if (!has_reference) fail("no algorithm of cuBLASLt runs for {}", key_of(product));
  if (proposals.empty()) fail("no algorithm of cuBLASLt computes the same twice for {}", key_of(product));
  return proposals;
}

ProductChoice fastest(const NeededProduct& needed, Blas& blas, Timer& timer, std::int64_t l2_bytes, double limit_s,
                      int most_rounds) {
  const Rotation rotation(needed, 2 * l2_bytes);
  rotation.fill(timer.stream());
  const Operands& at = rotation.operands().front();
  int rejected = 0;
  std::vector<ProductChoice> choices =
      right_ones(blas.candidates(needed.product, at, most_proposals), needed, at, blas, timer.stream(), rejected);
  std::vector<std::vector<Blas::Run>> runs;
  for (const ProductChoice& choice : choices) runs.push_back(rotation.runs(needed.product, blas, choice));
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

std::vector<NeededProduct> needed_products(const program::Program& program, bool tf32) {
  const program::Arena arena = program::plan_arena(program);
  const auto buffer = [&](const program::View& v) -> const program::Buffer& { return program.buffers.at(v.buffer); };
  const auto alignment = [&](const program::View& v) {
    if (!v.present()) return 256;
    return alignment_of(arena.offset_bytes[v.buffer] + v.offset * program::size_of(buffer(v).type));
  };
  std::vector<NeededProduct> needed;
  std::set<std::string> seen;
  for (const program::Operation& operation : program.step) {
    const auto* op = std::get_if<program::Matmul>(&operation.action);
    if (op == nullptr) continue;
    const int aligned = std::min({alignment(op->a), alignment(op->b), alignment(op->out), alignment(op->add),
                                  alignment(op->aux), alignment(op->bias), alignment(op->bias_gradient)});
    Product product = product_of(*op, buffer(op->a).type, buffer(op->b).type, buffer(op->out).type, tf32, aligned);
    product.block_scales = op->a_scale.present() && program::are_of_blocks(buffer(op->a_scale).type);
    if (seen.insert(key_of(product)).second) needed.push_back({product, *op});
  }
  return needed;
}

Rotation::Rotation(const NeededProduct& needed, std::int64_t at_least_bytes) {
  const Product& p = needed.product;
  const program::Matmul& op = needed.operation;
  // Every operand lies as badly as the worst of the real ones: the library asks addresses for their alignment.
  const std::int64_t skew = p.alignment_bytes % 256;
  const auto bytes = [&](std::int64_t count, program::DType type) {
    return (skew + count * program::size_of(type) + 255) / 256 * 256;
  };
  const std::int64_t a = bytes(p.m * p.k, p.a.type), b = bytes(p.k * p.n, p.b.type), out = bytes(p.m * p.n, p.out.type);
  const std::int64_t aux = op.aux.present() ? out : 0, add = p.add ? out : 0,
                     vector = bytes(std::max(p.m, p.n), program::DType::f32);
  const std::int64_t scratch = bytes(Blas::scratch_floats(p), program::DType::f32);
  const program::DType scale = p.block_scales ? program::DType::e8m0 : program::DType::f32;
  const std::int64_t a_scales = p.block_scales ? block_scales(p.m, p.k) : 1,
                     b_scales = p.block_scales ? block_scales(p.n, p.k) : 1;
  const bool scaled = program::is_fp8(p.a.type);
  const std::int64_t scales = scaled ? bytes(a_scales, scale) + bytes(b_scales, scale) : 0;
  const std::int64_t set_bytes = a + b + out + aux + add + 2 * vector + scratch + scales;
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
    if (scaled) {
      o.a_scale = take(bytes(a_scales, scale), scale, a_scales);
      o.b_scale = take(bytes(b_scales, scale), scale, b_scales);
    }
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
    for (const backend::Tensor& t : {o.a_scale, o.b_scale}) {
      if (t) run(stream, backend::Bound<program::Fill>{t, 1});
    }
  }
}

std::vector<Blas::Run> Rotation::runs(const Product& product, Blas& blas, const ProductChoice& choice) const {
  std::vector<Blas::Run> runs;
  for (const Operands& o : operands_) runs.push_back(blas.prepare(product, o, choice));
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

void Judge::set_reference(const Blas::Run& run) {
  compute(run);
  for (const Kept& k : kept_) copy_within(stream_, k.reference.data(), k.result.data, k.result.bytes());
  synchronize(stream_);
}

bool Judge::agrees(const Blas::Run& run) {
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
  // A part is held against the mean part: of few numbers, all may happen to be small. Rounding scatters over parts.
  constexpr double scatter = 2;
  return std::sqrt(apart) <= tolerance_ * std::sqrt(norm) &&  // false for a NaN
         std::sqrt(worst) <= scatter * tolerance_ * std::sqrt(norm / count);
}

backend::Tuning tune_products(const program::Program& program, bool tf32, const backend::Tuning& known,
                              std::int64_t l2_bytes, const Effort& effort) {
  std::vector<NeededProduct> unknown = needed_products(program, tf32);
  std::erase_if(unknown, [&](const NeededProduct& n) { return known.contains(key_of(n.product)); });
  double flop = 0;
  for (const NeededProduct& n : unknown) flop += n.product.flop();
  backend::Tuning found;
  Blas blas;
  Timer timer;
  bool warm = false;
  for (const NeededProduct& needed : unknown) {
    try {
      if (!warm) warm_up(needed, blas, timer, l2_bytes, effort.warm_up_s);
      warm = true;
      const double its_limit_s = effort.limit_s * needed.product.flop() / flop;
      found[key_of(needed.product)] = print_choice(fastest(needed, blas, timer, l2_bytes, its_limit_s, effort.rounds));
    } catch (const OutOfMemory&) {  // even with nothing else in it: the library's first proposal serves
    }
  }
  return found;
}

double measure_products(config::Precision precision, double seconds) {
  constexpr std::int64_t n = 8192;
  const program::DType type = config::storage_of(precision);
  const bool fp8 = config::has_fp8_products(precision);
  const program::DType factor = fp8 ? program::DType::e4m3 : type;
  NeededProduct needed;
  needed.operation.m = needed.operation.n = needed.operation.k = n;
  needed.operation.transpose_b = fp8;
  needed.product = product_of(needed.operation, factor, factor, type, precision == config::Precision::tf32, 256);
  needed.product.block_scales = precision == config::Precision::mxfp8;
  Blas blas;
  Timer timer;
  constexpr double limit_s = 5;
  const ProductChoice choice = fastest(needed, blas, timer, 0, limit_s, Effort{}.rounds);
  const Rotation rotation(needed, 0);
  rotation.fill(timer.stream());
  return needed.product.flop() / timer.sustained(rotation.runs(needed.product, blas, choice), seconds);
}

double measure_copies(double seconds) {
  constexpr std::int64_t bytes = std::int64_t{1} << 30;  // of which no L2 holds a notable part
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

namespace {

constexpr std::int64_t copy_bytes = 64 << 20;  // so much that starting a copy takes no notable part of it

// The memory that a copy in one direction reads and writes. The driver takes the host's part from the NUMA node that
// the worker is bound to.
struct Buffers {
  Memory host{Memory::Kind::pinned, copy_bytes, "copies between host and GPU"},
      device{Memory::Kind::device, copy_bytes, "copies between host and GPU"};
};

}  // namespace

machine::HostCopies measure_host_copies(double seconds) {
  const Buffers in, out;
  Timer timer;
  const OwnedStream other(Priority::normal);
  const OwnedEvent begun(OwnedEvent::Timing::off), ended(OwnedEvent::Timing::off);
  const auto to_device = [&](Stream s) { copy_in(s, in.device.data(), in.host.data(), copy_bytes); };
  const auto from_device = [&](Stream s) { copy_out(s, out.host.data(), out.device.data(), copy_bytes); };
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
