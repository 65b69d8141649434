#include "backend/cuda/tuner.h"

#include <algorithm>
#include <map>
#include <set>

#include "backend/cuda/kernels/kernels.h"
#include "base/error.h"

namespace harness::cuda {
namespace {

// Calls f(product, operation) for every matrix product of the step, in order; the operation's action is a Matmul.
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
    const int aligned = std::min({alignment(op->a), alignment(op->b), alignment(op->out), alignment(op->add),
                                  alignment(op->aux), alignment(op->bias), alignment(op->bias_gradient)});
    f(product_of(*op, buffer(op->a).type, buffer(op->b).type, buffer(op->out).type, tf32, aligned), operation);
  }
}

// Clocks climb from idle within a second or two. What is timed meanwhile looks slow, and may be dropped for it.
void warm_up(const NeededProduct& needed, Blas& blas, Timer& timer, std::int64_t l2_bytes, double seconds) {
  if (seconds <= 0) return;
  const Rotation rotation(needed.product, needed.operation, 2 * l2_bytes);
  rotation.fill(timer.stream());
  const ProductChoice choice = blas.default_choice(needed.product, rotation.operands().front());
  timer.sustained(runs_of(needed.product, rotation, blas, choice), seconds);
}

const char* form_of(const Product& product, const ProductChoice& choice) {
  if (!product.composite()) return "plain";
  return choice.fused ? "fused" : "separate";
}

}  // namespace

std::vector<NeededProduct> needed_products(const program::Program& program, bool tf32) {
  std::vector<NeededProduct> needed;
  std::set<std::string> seen;
  over_products(program, tf32, [&](const Product& product, const program::Operation& operation) {
    if (seen.insert(key_of(product)).second) {
      needed.push_back({product, std::get<program::Matmul>(operation.action)});
    }
  });
  return needed;
}

std::vector<backend::AloneTiming> time_products(const program::Program& program, bool tf32,
                                                const backend::Tuning& tuning, std::int64_t l2_bytes, double seconds) {
  const std::vector<NeededProduct> needed = needed_products(program, tf32);
  std::map<std::string, backend::AloneTiming> timed;  // by key
  Blas blas;
  Timer timer;
  for (const NeededProduct& n : needed) {
    const std::string key = key_of(n.product);
    const auto time = [&] {
      const Rotation rotation(n.product, n.operation, 2 * l2_bytes);
      rotation.fill(timer.stream());
      const auto tuned = tuning.find(key);
      const ProductChoice choice = tuned != tuning.end() ? parse_choice(tuned->second)
                                                         : blas.default_choice(n.product, rotation.operands().front());
      const double once = timer.sustained(runs_of(n.product, rotation, blas, choice), seconds / std::ssize(needed));
      timed[key] = {.seconds = once, .form = form_of(n.product, choice)};
    };
    survives(time, [&] { return "while " + key + " was timed alone"; });  // or it is too large beside what is in memory
  }
  std::vector<backend::AloneTiming> timings;
  over_products(program, tf32, [&](const Product& product, const program::Operation& operation) {
    const auto found = timed.find(key_of(product));
    if (found == timed.end()) return;
    timings.push_back(found->second);
    timings.back().operation = static_cast<program::OperationId>(&operation - program.step.data());
  });
  return timings;
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
      Effort its = effort;
      its.limit_s *= needed.product.flop() / flop;
      its.lasting_s = std::min(its.lasting_s, its.limit_s / 4 / (2 * its.lasting));
      found[key_of(needed.product)] =
          print_choice(fastest(needed.product, needed.operation, blas, timer, l2_bytes, its));
    } catch (const OutOfMemory&) {  // even with nothing else in it: the library's first proposal serves
    }
  }
  return found;
}

double measure_products(config::Precision precision, double seconds) {
  constexpr std::int64_t n = 8192;
  const program::DType type = config::storage_of(precision);
  NeededProduct needed;
  needed.operation.m = needed.operation.n = needed.operation.k = n;
  needed.product = product_of(needed.operation, type, type, type, precision == config::Precision::tf32, 256);
  Blas blas;
  Timer timer;
  constexpr Effort effort{.limit_s = 5};
  const ProductChoice choice = fastest(needed.product, needed.operation, blas, timer, 0, effort);
  const Rotation rotation(needed.product, needed.operation, 0);
  rotation.fill(timer.stream());
  const std::vector<Blas::Run> runs{blas.prepare(needed.product, rotation.operands().front(), choice)};
  return needed.product.flop() / timer.sustained(runs, seconds);
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

}  // namespace harness::cuda
