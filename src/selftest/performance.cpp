#include "selftest/performance.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "program/count.h"
#include "selftest/one_rank.h"

namespace harness::selftest {
namespace {

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Length of the union of intervals.
double covered_seconds(std::vector<backend::Interval> intervals) {
  std::ranges::sort(intervals, {}, &backend::Interval::start_s);
  double covered = 0, until = 0;
  for (const backend::Interval& i : intervals) {
    const double from = std::max(i.start_s, until);
    covered += std::max(0.0, i.end_s - from);
    until = std::max(until, i.end_s);
  }
  return covered;
}

void compare_with_roof(KindShare& k, const Roofs& roofs) {
  k.by_flop = k.flop > 0;
  const double work = k.by_flop ? k.flop : k.bytes;
  if (!(k.seconds > 0)) return;
  k.rate = work / k.seconds;
  k.roof = k.by_flop ? roofs.matmul_flops : roofs.copy_bytes_per_s;
  if (k.kind == program::Matmul::name && roofs.product_seconds > 0) k.roof = work / roofs.product_seconds;
  if (k.roof > 0) k.ratio = k.rate / k.roof;
}

}  // namespace

Split split_by_kind(const program::Program& program, const std::vector<backend::Interval>& intervals,
                    const Roofs& roofs) {
  Split split;
  std::map<std::string, KindShare> kinds;
  for (const backend::Interval& i : intervals) {
    const program::Action& action = program.step.at(i.operation).action;
    KindShare& k = kinds[std::string(program::name_of(action))];
    ++k.operations;
    k.seconds += i.end_s - i.start_s;
    k.flop += program::flop_of(action).model;
    k.bytes += program::needed_bytes(program, action);
    split.step_seconds = std::max(split.step_seconds, i.end_s);
  }
  split.busy_seconds = covered_seconds(intervals);
  split.idle_seconds = split.step_seconds - split.busy_seconds;
  for (auto& [name, k] : kinds) {
    k.kind = name;
    k.share = split.step_seconds > 0 ? k.seconds / split.step_seconds : 0;
    compare_with_roof(k, roofs);
    split.kinds.push_back(k);
  }
  std::ranges::stable_sort(split.kinds, std::greater<>(), &KindShare::seconds);
  return split;
}

Performance measure_performance(const backend::Backend& subject, const PerformanceOptions& options) {
  Performance p;
  p.options = options;
  config::Settings settings;
  settings.precision = options.precision;
  settings.global_batch_size = settings.micro_batch_size = options.micro_batch;
  OneRank job(subject, options.model, settings,
              {.seed = options.seed, .threads = options.threads, .timeout_s = 300, .tuned = true});
  if (options.warmup_steps > 0) static_cast<void>(job.run(options.warmup_steps));
  p.seconds = job.run(options.steps);
  if (p.seconds.empty()) fail("a step cannot be timed in {} steps", options.steps);
  p.median_s = median_of(p.seconds);
  p.fastest_s = *std::ranges::min_element(p.seconds);
  p.slowest_s = *std::ranges::max_element(p.seconds);
  p.tokens_per_s = static_cast<double>(options.micro_batch * options.model.sequence) / p.median_s;
  const program::Flop flop = program::total_flop(job.programs());
  p.model_flop = flop.model;
  p.noncausal_flop = flop.noncausal;
  if (options.peak_flops > 0) {
    p.mfu = flop.model / p.median_s / options.peak_flops;
    p.mfu_noncausal = flop.noncausal / p.median_s / options.peak_flops;
  }
  const std::vector<float> losses = job.losses();
  p.first_loss = losses.front();
  p.last_loss = losses.back();
  const std::vector<backend::Interval> intervals = job.run_profiled();
  // After the step, as warm as it left the device.
  p.roofs.product_seconds = subject.product_seconds(job.request());
  p.roofs.matmul_flops = subject.measure_matmul_flops(options.precision, job.request(), options.roof_seconds);
  p.roofs.copy_bytes_per_s = subject.measure_copy_bandwidth(job.request(), options.roof_seconds);
  p.split = split_by_kind(job.program(), intervals, p.roofs);
  p.warnings = job.warnings();
  return p;
}

CheckLine judge_performance(const Performance& p) {
  CheckLine line;
  line.check = "performance: " + p.options.model.name;
  line.cases = static_cast<int>(p.seconds.size());
  line.tolerance = 0.005;
  line.notes = p.warnings;
  double parts = p.split.idle_seconds;
  for (const KindShare& k : p.split.kinds) parts += k.seconds;
  judge(line, "the parts of the profiled step against the whole", std::abs(parts / p.split.step_seconds - 1));
  if (!std::isfinite(p.first_loss) || !std::isfinite(p.last_loss)) {
    line.outcome = Outcome::failed;
    line.failures.push_back(fmt::format("the loss went from {} to {}", p.first_loss, p.last_loss));
  }
  return line;
}

}  // namespace harness::selftest
