#include "backend/cuda/tuner.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "backend/cuda/blas.h"
#include "backend/cuda/kernels/kernels.h"
#include "base/error.h"

namespace harness::cuda {
namespace {

constexpr int proposals = 24;  // per form
constexpr int finalists = 4;
constexpr double quick_s = 0.5e-3, careful_s = 4e-3;
constexpr std::int64_t max_memory = std::int64_t{8} << 30;

/// Random operands of a Product, several sets in turn.
class Rotation {
 public:
  Rotation(const NeededProduct& needed, std::int64_t at_least_bytes) {
    const program::Matmul& op = needed.operation;
    const Product& p = needed.product;
    // Every operand lies as badly as the worst of the real ones: the library asks addresses for their alignment.
    const std::int64_t skew = p.alignment_bytes % 256;
    const auto bytes = [&](std::int64_t count, program::DType type) {
      return (skew + count * program::size_of(type) + 255) / 256 * 256;
    };
    const std::int64_t a = bytes(p.m * p.k, p.a.type), b = bytes(p.k * p.n, p.b.type),
                       out = bytes(p.m * p.n, p.out.type);
    const std::int64_t aux = op.aux.present() ? out : 0, vector = bytes(std::max(p.m, p.n), program::DType::f32);
    const std::int64_t scratch = bytes(Blas::scratch_floats(p), program::DType::f32);
    const std::int64_t set_bytes = a + b + out + aux + 2 * vector + scratch;
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
      const backend::Tensor first = take(vector, p.bias ? p.out.type : program::DType::f32, p.n);
      if (p.bias) o.bias = first;
      const backend::Tensor second = take(vector, program::DType::f32, p.m);
      if (p.bias_gradient) o.bias_gradient = second;
      o.scratch = take(scratch, program::DType::f32, 0).f32();
      operands_.push_back(o);
    }
  }

  void fill(Stream stream) const {
    std::uint64_t seed = 1;
    for (const Operands& o : operands_) {
      for (const backend::Tensor& t : {o.a, o.b, o.out, o.aux, o.bias}) {
        if (t) fill_random(stream, t, seed++);
      }
    }
  }
  const std::vector<Operands>& operands() const { return operands_; }

 private:
  Memory memory_;
  std::vector<Operands> operands_;
};

class Timer {
 public:
  /// Seconds of one call on average, of as many as fill `seconds`, going round the operands.
  double time(const std::vector<Blas::Run>& runs, double seconds) {
    for (const Blas::Run& run : runs) run(stream_.get());
    const double guess = measure(runs, 2);
    const double rounds = seconds / std::max(guess, 1e-7);
    return measure(runs, static_cast<int>(std::clamp(rounds, 3.0, 200.0)));
  }
  Stream stream() const { return stream_.get(); }

 private:
  double measure(const std::vector<Blas::Run>& runs, int calls) {
    spin(stream_.get(), 50e-6 + 5e-6 * calls);  // the device waits until the host has queued everything
    begin_.record(stream_.get());
    for (int i = 0; i < calls; ++i) runs[i % runs.size()](stream_.get());
    end_.record(stream_.get());
    synchronize(stream_.get());
    return end_.seconds_since(begin_) / calls;
  }
  OwnedStream stream_{Priority::normal};
  OwnedEvent begin_{OwnedEvent::Timing::on}, end_{OwnedEvent::Timing::on};
};

ProductChoice fastest(const NeededProduct& needed, Blas& blas, Timer& timer, std::int64_t l2_bytes) {
  const Rotation rotation(needed, 2 * l2_bytes);
  rotation.fill(timer.stream());
  const auto time = [&](const ProductChoice& choice, double seconds) {
    std::vector<Blas::Run> runs;
    for (const Operands& o : rotation.operands()) runs.push_back(blas.prepare(needed.product, o, choice));
    return timer.time(runs, seconds);
  };
  std::vector<ProductChoice> choices = blas.candidates(needed.product, rotation.operands().front(), proposals);
  std::vector<ProductChoice> timed;
  for (ProductChoice& choice : choices) {
    try {
      choice.seconds = time(choice, quick_s);
      timed.push_back(choice);
    } catch (const Error&) {  // a proposal may still refuse to run
    }
  }
  if (timed.empty()) fail("no algorithm runs");
  std::ranges::sort(timed, {}, &ProductChoice::seconds);
  timed.resize(std::min<std::size_t>(timed.size(), finalists));
  for (ProductChoice& choice : timed) choice.seconds = time(choice, careful_s);
  return *std::ranges::min_element(timed, {}, &ProductChoice::seconds);
}

// Calls f(product, operation) for every matrix product of the step, in order.
template <class F>
void over_products(const program::Program& program, bool tf32, F&& f) {
  const program::Arena arena = program::plan_arena(program);
  const auto buffer = [&](const program::View& v) -> const program::Buffer& { return program.buffers.at(v.buffer); };
  const auto alignment = [&](const program::View& v) {
    if (!v.present()) return 256;
    return alignment_of(arena.offset_bytes[v.buffer] + v.offset * program::size_of(buffer(v).type));
  };
  for (const program::Operation& operation : program.step) {
    const auto* op = std::get_if<program::Matmul>(&operation.action);
    if (op == nullptr) continue;
    const int aligned = std::min({alignment(op->a), alignment(op->b), alignment(op->out), alignment(op->aux),
                                  alignment(op->bias), alignment(op->bias_gradient)});
    f(product_of(*op, buffer(op->a).type, buffer(op->b).type, buffer(op->out).type, tf32, aligned), *op);
  }
}

}  // namespace

std::vector<NeededProduct> needed_products(const program::Program& program, bool tf32) {
  std::vector<NeededProduct> needed;
  std::set<std::string> seen;
  over_products(program, tf32, [&](const Product& product, const program::Matmul& op) {
    if (seen.insert(key_of(product)).second) needed.push_back({product, op});
  });
  return needed;
}

double tuned_seconds(const program::Program& program, bool tf32, const backend::Tuning& tuning) {
  double seconds = 0;
  bool all_known = true;
  over_products(program, tf32, [&](const Product& product, const program::Matmul&) {
    const auto it = tuning.find(key_of(product));
    const double once = it == tuning.end() ? 0 : parse_choice(it->second).seconds;
    all_known = all_known && once > 0;
    seconds += once;
  });
  return all_known ? seconds : 0;
}

backend::Tuning tune_products(const program::Program& program, bool tf32, const backend::Tuning& known,
                              std::int64_t l2_bytes) {
  backend::Tuning found;
  Blas blas;
  Timer timer;
  for (const NeededProduct& needed : needed_products(program, tf32)) {
    const std::string key = key_of(needed.product);
    if (known.contains(key)) continue;
    try {
      found[key] = print_choice(fastest(needed, blas, timer, l2_bytes));
    } catch (const Error&) {  // too large to be tried beside nothing else: the library's first proposal serves
    }
  }
  return found;
}

double measure_products(config::Precision precision, double seconds) {
  constexpr std::int64_t n = 8192;
  const program::DType type = precision == config::Precision::bf16 ? program::DType::bf16 : program::DType::f32;
  NeededProduct needed;
  needed.operation.m = needed.operation.n = needed.operation.k = n;
  needed.product = product_of(needed.operation, type, type, type, precision == config::Precision::tf32, 256);
  Blas blas;
  Timer timer;
  const ProductChoice choice = fastest(needed, blas, timer, 0);
  const Rotation rotation(needed, 0);
  rotation.fill(timer.stream());
  const std::vector<Blas::Run> runs{blas.prepare(needed.product, rotation.operands().front(), choice)};
  return needed.product.flop() / timer.time(runs, seconds);
}

double measure_copies(double seconds) {
  constexpr std::int64_t bytes = std::int64_t{1} << 30;  // of which no L2 holds a notable part
  const Memory from(Memory::Kind::device, bytes, "what a copy reads"), to(Memory::Kind::device, bytes, "a copy");
  Timer timer;
  fill_random(timer.stream(),
              backend::Tensor{from.data(), program::DType::f32, bytes / program::size_of(program::DType::f32)}, 1);
  const std::vector<Blas::Run> runs{[&](Stream s) { copy_within(s, to.data(), from.data(), bytes); }};
  return 2 * static_cast<double>(bytes) / timer.time(runs, seconds);
}

}  // namespace harness::cuda
