#include "selftest/performance.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <span>

#include "base/median.h"
#include "base/part.h"
#include "program/count.h"
#include "selftest/one_rank.h"

namespace harness::selftest {
namespace {

constexpr std::size_t edge_steps = 10;  // of which the first and last median are
constexpr double loss_range = 1.2;      // around the logarithm of the vocabulary

// FLOP/s of the step's own operations of a kind, each alone; 0: none was timed.
double own_roof(const program::Program& program, std::string_view kind, const Roofs& roofs) {
  double flop = 0, seconds = 0;
  for (const backend::AloneTiming& t : roofs.alone) {
    const program::Action& action = program.step.at(t.operation).action;
    if (program::name_of(action) != kind) continue;
    flop += program::flop_of(action).model;
    seconds += t.seconds;
  }
  return flop > 0 ? flop / seconds : 0;
}

void compare_with_roof(KindShare& k, const program::Program& program, const Roofs& roofs) {
  k.by_flop = k.flop > 0;
  const double work = k.by_flop ? k.flop : k.bytes;
  if (!(k.seconds > 0)) return;
  k.rate = work / k.seconds;
  k.roof = k.by_flop ? roofs.matmul_flops : roofs.copy_bytes_per_s;
  if (const double own = own_roof(program, k.kind, roofs); own > 0) k.roof = own;
  if (k.roof > 0) k.ratio = k.rate / k.roof;
}

// Sizes, and what the product asks the library to do in the same call.
std::string shape_of(const program::Action& action) {
  const auto* m = std::get_if<program::Matmul>(&action);
  if (m == nullptr) return {};
  std::string shape = fmt::format("{} x {} x {}", m->m, m->n, m->k);
  if (m->bias.present()) shape += ", bias";
  if (m->add.present()) shape += ", add";
  if (m->epilogue == program::Epilogue::gelu) shape += ", gelu";
  if (m->epilogue == program::Epilogue::gelu_backward) shape += ", gelu_backward";
  if (m->bias_gradient.present()) shape += ", bias_gradient";
  return shape;
}

// Sums of one line until its means are taken.
struct LineSums {
  LineShare line;
  double flop = 0, bytes = 0, alone_s = 0;
  std::int64_t timed_alone = 0;
};

std::vector<LineShare> lines_of(const program::Program& program, const std::vector<program::Interval>& intervals,
                                double step_seconds, const std::vector<backend::AloneTiming>& timings,
                                const std::vector<std::string>& kernels) {
  std::map<program::OperationId, const backend::AloneTiming*> alone;
  for (const backend::AloneTiming& t : timings) alone[t.operation] = &t;
  std::map<std::array<std::string, 4>, LineSums> sums;
  for (const program::Interval& i : intervals) {
    const program::Operation& op = program.step.at(i.operation);
    const std::string kind(program::name_of(op.action)), what(op.label.what), phase(name_of(op.label.phase));
    LineSums& s = sums[{what, phase, kind, shape_of(op.action)}];
    ++s.line.count;
    s.line.seconds += i.end_s - i.start_s;
    s.flop += program::flop_of(op.action).model;
    s.bytes += needed_bytes(program, op.action);
    if (const auto timing = alone.find(i.operation); timing != alone.end()) {
      ++s.timed_alone;
      s.alone_s += timing->second->seconds;
      s.line.form = timing->second->form;
    }
    if (s.line.kernels.empty() && !kernels.empty()) s.line.kernels = kernels.at(i.operation);
  }
  std::vector<LineShare> lines;
  for (auto& [key, s] : sums) {
    LineShare& l = s.line;
    l.what = key[0];
    l.phase = key[1];
    l.kind = key[2];
    l.shape = key[3];
    l.mean_s = l.seconds / static_cast<double>(l.count);
    l.share = step_seconds > 0 ? l.seconds / step_seconds : 0;
    l.by_flop = s.flop > 0;
    if (s.timed_alone > 0) l.alone_s = s.alone_s / static_cast<double>(s.timed_alone);
    if (l.seconds > 0) l.rate = (l.by_flop ? s.flop : s.bytes) / l.seconds;
    lines.push_back(l);
  }
  std::ranges::stable_sort(lines, std::greater<>(), &LineShare::seconds);
  return lines;
}

// Times the steps, with the device watched.
void time_steps(OneRank& job, Performance& p) {
  using Clock = std::chrono::steady_clock;
  const PerformanceOptions& o = p.options;
  if (o.warmup_steps > 0) static_cast<void>(job.run(o.warmup_steps));
  job.begin_watch();
  const auto began = Clock::now();
  p.seconds = job.run(o.steps);
  p.wall_s = std::chrono::duration<double>(Clock::now() - began).count();
  p.gpu = job.end_watch();
  if (p.seconds.empty()) fail("a step cannot be timed in {} steps", o.steps);
  p.median_s = median(p.seconds);
  p.fastest_s = *std::ranges::min_element(p.seconds);
  p.slowest_s = *std::ranges::max_element(p.seconds);
  const std::size_t edge = std::min(edge_steps, p.seconds.size());
  p.first_median_s = median(std::span(p.seconds).first(edge));
  p.last_median_s = median(std::span(p.seconds).last(edge));
  p.tokens_per_s = static_cast<double>(o.micro_batch * o.model.sequence) / p.median_s;
  const program::Flop flop = program::total_flop(job.programs());
  p.model_flop = flop.model;
  p.noncausal_flop = flop.noncausal;
  if (o.peak_flops > 0) {
    p.mfu = flop.model / p.median_s / o.peak_flops;
    p.mfu_noncausal = flop.noncausal / p.median_s / o.peak_flops;
  }
  const std::vector<float> losses = job.losses();
  p.first_loss = losses.front();
  p.last_loss = losses.back();
  p.warnings = job.warnings();
}

void profile_step(OneRank& job, const backend::Backend& subject, Performance& p) {
  const std::vector<program::Interval> intervals = job.run_profiled();
  p.options.stage("a step is profiled; measuring roofs");
  p.warnings = job.warnings();
  const std::vector<std::string> kernels = job.kernels();
  p.split = split_by_kind(job.program(), intervals, {}, kernels);
  // After the step, as warm as it left the device; their operands need its memory.
  job.end();
  p.roofs.alone = subject.time_alone(job.request(), p.options.roof_seconds);
  p.roofs.matmul_flops = subject.measure_matmul_flops(p.options.precision, job.request(), p.options.roof_seconds);
  p.roofs.copy_bytes_per_s = subject.measure_copy_bandwidth(job.request(), p.options.roof_seconds);
  p.split = split_by_kind(job.program(), intervals, p.roofs, kernels);
}

}  // namespace

double Roofs::alone_seconds() const {
  double seconds = 0;
  for (const backend::AloneTiming& t : alone) seconds += t.seconds;
  return seconds;
}

Split split_by_kind(const program::Program& program, const std::vector<program::Interval>& intervals,
                    const Roofs& roofs, const std::vector<std::string>& kernels) {
  Split split;
  std::map<std::string, KindShare> kinds;
  for (const program::Interval& i : intervals) {
    const program::Action& action = program.step.at(i.operation).action;
    KindShare& k = kinds[std::string(program::name_of(action))];
    ++k.operations;
    k.seconds += i.end_s - i.start_s;
    k.flop += program::flop_of(action).model;
    k.bytes += program::needed_bytes(program, action);
    split.step_seconds = std::max(split.step_seconds, i.end_s);
  }
  std::vector<Stretch> busy;
  for (const program::Interval& i : intervals) busy.push_back({std::max(i.start_s, 0.0), i.end_s});
  split.busy_seconds = length(united(std::move(busy)));
  split.idle_seconds = split.step_seconds - split.busy_seconds;
  for (const auto& [name, k] : kinds) split.overlap_seconds += k.seconds;
  split.overlap_seconds -= split.busy_seconds;
  for (auto& [name, k] : kinds) {
    k.kind = name;
    k.share = split.step_seconds > 0 ? k.seconds / split.step_seconds : 0;
    compare_with_roof(k, program, roofs);
    split.kinds.push_back(k);
  }
  std::ranges::stable_sort(split.kinds, std::greater<>(), &KindShare::seconds);
  split.lines = lines_of(program, intervals, split.step_seconds, roofs.alone, kernels);
  return split;
}

Performance measure_performance(const backend::Backend& subject, const PerformanceOptions& options) {
  Performance p;
  p.options = options;
  config::Settings settings;
  settings.precision = options.precision;
  settings.global_batch_size = settings.micro_batch_size = options.micro_batch;
  OneRank job(subject, options.model, settings,
              {.seed = options.seed,
               .threads = options.threads,
               .timeout_s = 300,
               .tuning_s = options.tuning_s,
               .known = options.known});
  p.tuning = job.tuning();
  options.stage(fmt::format("ready to step, {} choices tuned in {:.1f} s", p.tuning.size(), job.tuned_s()));
  time_steps(job, p);
  options.timed(p);
  try {
    profile_step(job, subject, p);
  } catch (const std::exception& e) {  // the times stand without it
    p.warnings.push_back(fmt::format("profiling the step ended early: {}", e.what()));
  }
  return p;
}

CheckLine judge_performance(const Performance& p) {
  CheckLine line;
  line.check = "performance: " + p.options.model.name;
  line.cases = static_cast<int>(p.seconds.size());
  line.notes = p.warnings;
  if (!p.split.kinds.empty()) {
    // A kernel that cuBLASLt launches programmatically begins while the one before it ends.
    line.tolerance = 0.05;
    judge(line, "the parts of the profiled step against the whole", p.split.overlap_seconds / p.split.step_seconds);
  }
  // Nothing can be learnt from random tokens. A loss outside this range means activations that grew or died, and such
  // numbers cost another power.
  const double expected = std::log(static_cast<double>(p.options.model.vocab));
  const auto in_range = [&](double loss) { return std::abs(loss - expected) <= loss_range; };  // not of a NaN
  if (!in_range(p.first_loss) || !in_range(p.last_loss)) {
    std::string words = fmt::format("the loss went from {} to {}, expected are {:.2f} to {:.2f}", p.first_loss,
                                    p.last_loss, expected - loss_range, expected + loss_range);
    if (std::isfinite(p.first_loss) && std::isfinite(p.last_loss)) {
      line.notes.push_back(std::move(words));
    } else {
      line.outcome = Outcome::failed;
      line.failures.push_back(std::move(words));
    }
  }
  return line;
}

}  // namespace harness::selftest
