#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <tuple>
#include <variant>

#include "base/clock.h"
#include "base/median.h"
#include "base/part.h"
#include "base/text.h"
#include "base/units.h"
#include "calibrate/calibrate.h"
#include "program/count.h"
#include "program/operation.h"

namespace harness::calibrate {
namespace {

using config::CurvePoint;
using config::Precision;

// Operations of one kind, label and phase do the same work.
using Alike = std::tuple<std::string_view, std::string_view, program::Phase>;
Alike alike(const program::Operation& op) {
  return {program::name_of(op.action), op.label.what, op.label.phase};
}

double share_covered(const program::Interval& interval, const std::vector<Stretch>& by) {
  double covered = 0;
  for (const Stretch& s : by)
    covered += std::max(0.0, std::min(s.end_s, interval.end_s) - std::max(s.start_s, interval.start_s));
  return covered / std::max(interval.end_s - interval.start_s, 1e-12);
}

std::vector<Stretch> stretches_of(const ProfiledStep& step, bool communications) {
  std::vector<Stretch> found;
  for (const program::Interval& i : step.intervals) {
    if (program::is_communication(step.program.step[i.operation].action) == communications && i.end_s > i.start_s)
      found.push_back({i.start_s, i.end_s});
  }
  return united(std::move(found));
}

// Whether predictions time the operation by its bytes: true for all but products and attention.
bool moves_memory(const std::string& operation) {
  return operation != program::Matmul::name && operation != program::Attention::name &&
         operation != program::AttentionBackward::name;
}

// Returns the argument in [low, high] with the least value, on a logarithmic grid that is refined around the best
// point. Also tries 0 if `zero` is set.
template <class F>
double least(double low, double high, bool zero, F&& value) {
  constexpr int points = 25, rounds = 4;
  double best = zero ? 0 : low, best_value = value(best);
  for (int round = 0; round < rounds; ++round) {
    const double ratio = std::pow(high / low, 1.0 / (points - 1));
    for (int i = 0; i < points; ++i) {
      const double x = low * std::pow(ratio, i), v = value(x);
      if (v < best_value) {
        best = x;
        best_value = v;
      }
    }
    if (best == 0) break;
    const double first = low, last = high;
    low = std::max(first, best / ratio);
    high = std::min(last, best * ratio);
    if (!(high > low)) break;
  }
  return best;
}

double best_rate(const std::vector<CurvePoint>& points) {
  double best = 0;
  for (const CurvePoint& p : points) best = std::max(best, p.size / p.seconds);
  return best;
}

void take_computing(const Measured& m, Calibrated& found) {
  config::Calibration& c = found.calibration;
  if (m.peak_flops.empty()) fail("no matrix product was measured");
  std::vector<CurvePoint> moving;
  double shortest_s = std::numeric_limits<double>::infinity();
  for (const auto& [key, curve] : m.computations) {
    const auto& [precision, name] = key;
    if (moves_memory(name)) {
      moving.insert(moving.end(), curve.points().begin(), curve.points().end());
      for (const CurvePoint& p : curve.points()) shortest_s = std::min(shortest_s, p.seconds);
    }
    // The step of one layer leaves a GPU enough idle time to stay at burst clocks, which the step of a whole model at
    // the power limit does not. So no product is taken to be faster than the best sustained rate. (H200: 790 TFLOP/s in
    // a layer's step, 685 sustained, 669 in steps of 24 layers.)
    const auto peak = m.peak_flops.find(precision);
    const bool is_product = name == program::Matmul::name && peak != m.peak_flops.end();
    const double burst = is_product ? std::max(1.0, best_rate(curve.points()) / peak->second) : 1;
    std::vector<CurvePoint> points = curve.points();
    for (CurvePoint& p : points) p.seconds *= burst;
    c.measured.computations[key] = config::Curve(std::move(points));
  }
  if (moving.empty()) fail("no operation that moves memory was measured");
  found.memory_bytes_per_s = best_rate(moving);
  c.software.kernel_s = shortest_s;
  c.product_share = c.memory_share = c.attention_forward = c.attention_backward = 1;
}

// The law of a group's links: one for all operations, with the start and rate of the all-reduce.
struct LinkLaw {
  double best = 0;   // best bus bandwidth
  double share = 0;  // share of it that the all-reduce reaches
  double start_s = 0, message_start_s = 0;
};
LinkLaw link_law(const std::map<std::string, config::Curve>& curves, int ranks) {
  LinkLaw law;
  double reduce_rate = 0;
  for (const auto& [name, curve] : curves) {
    const bool sends = name == program::Send::name, reduces = name == program::AllReduce::name;
    const double bus_factor = sends ? 1 : (reduces ? 2 : 1) * (ranks - 1.0) / ranks;  // as nccl-tests has it
    std::vector<CurvePoint> moved = curve.points();
    for (CurvePoint& p : moved) p.size *= bus_factor;
    law.best = std::max(law.best, best_rate(moved));
    if (!reduces && !sends) continue;
    const Line line = fit_line(moved);
    if (sends) {
      law.message_start_s = line.start_s;
    } else {
      law.start_s = line.start_s;
      reduce_rate = line.rate;
    }
  }
  law.best = std::max(law.best, reduce_rate);  // in case even the largest message is mostly start-up
  law.share = reduce_rate / law.best;
  return law;
}

void take_links(const Measured& m, Calibrated& found) {
  if (m.communications.empty()) return;
  config::Calibration& c = found.calibration;
  const bool one_node = m.nodes == 1;
  const auto& within = one_node ? m.communications : m.within_node;
  const int of_node = one_node ? m.ranks : m.ranks_of_node;
  if (!within.empty()) {
    const LinkLaw law = link_law(within, of_node);
    found.link_bytes_per_s = law.best;
    c.within_node = config::WithinNode{law.share, law.start_s, law.message_start_s};
    c.measured.ranks = of_node;
    c.measured.communications = {within.begin(), within.end()};
  }
  if (!one_node) {
    const LinkLaw law = link_law(m.communications, m.ranks);
    // The rate of the whole node: a ring through all ranks enters and leaves each node once.
    found.node_bytes_per_s = law.best;
    c.network_share = law.share;
    c.network_start_s = law.start_s;  // includes the ring's steps: only one number of nodes was measured
    c.message_start_s = law.message_start_s;
  }
}

std::string source_of(const Measured& m) {
  return fmt::format("measured by harness calibrate on {}, {}: {} on {}, {} in {}", m.host, utc_text().substr(0, 10),
                     plural(m.ranks, "rank"), plural(m.nodes, "node"), plural(m.rounds, "round"),
                     show_seconds(m.took_s));
}

std::string quoted(std::string text) {
  std::erase(text, '"');
  return fmt::format("\"{}\"", text);
}

std::string share_text(double share) {
  return fmt::format("{:.4g} %", 100 * share);
}
std::string time_text(double seconds) {
  return fmt::format("{:.4g} us", 1e6 * seconds);
}

std::string curve_text(const config::Curve& curve, const char* size) {
  std::vector<std::string> points;
  for (const config::CurvePoint& p : curve.points())
    points.push_back(fmt::format("{{{}: {:.0f}, time: {}}}", size, p.size, time_text(p.seconds)));
  return fmt::format("[{}]", join(points, ",\n      "));
}

std::string measured_text(const config::MeasuredCurves& curves) {
  if (curves.computations.empty() && curves.communications.empty()) return "";
  std::string text = "# As measured, joined by straight lines on logarithmic axes.\nmeasured:\n";
  const config::Precision* last = nullptr;
  for (const auto& [key, curve] : curves.computations) {
    if (last == nullptr || *last != key.first) text += fmt::format("  {}:\n", config::name_of(key.first));
    last = &key.first;
    text += fmt::format("    {}: {}\n", key.second, curve_text(curve, moves_memory(key.second) ? "bytes" : "flop"));
  }
  if (curves.communications.empty()) return text;
  text += fmt::format("  ranks: {}\n  communications:\n", curves.ranks);
  for (const auto& [name, curve] : curves.communications)
    text += fmt::format("    {}: {}\n", name, curve_text(curve, "bytes"));
  return text;
}

}  // namespace

void StepSamples::take_computations(const ProfiledStep& step, Precision precision) {
  constexpr double hardly = 0.1, mostly = 0.8;
  const std::vector<Stretch> communicating = stretches_of(step, true), computing = stretches_of(step, false);
  std::map<Alike, std::pair<Samples, Samples>> seconds;  // alone, beside
  for (program::OperationId id = 0; std::cmp_less(id, step.program.step.size()); ++id) {
    const program::Operation& op = step.program.step[id];
    const program::Interval& interval = step.intervals[id];
    if (!program::is_communication(op.action)) {
      const double covered = share_covered(interval, communicating);
      if (covered > mostly) seconds[alike(op)].second.push_back(step.seconds(id));
      if (covered > hardly) continue;
      seconds[alike(op)].first.push_back(step.seconds(id));
      const auto attention = program::attention_of(op.action);
      if (attention && attention->unfused) continue;  // takes a different time for equal work
      const double work = program::work_of(step.program, op.action);
      if (work > 0)
        computations_[{{precision, std::string(program::name_of(op.action))}, work}].push_back(step.seconds(id));
    } else if (std::holds_alternative<program::AllReduce>(op.action) && share_covered(interval, computing) > mostly) {
      busy_communications_[program::message_bytes(step.program, op.action)].push_back(step.seconds(id));
    }
  }
  for (const auto& [what, both] : seconds) {
    if (!both.first.empty() && !both.second.empty()) slowed_.push_back(median(both.second) / median(both.first));
  }
}

// Measures only where the last dependency to finish is on another stream.
void StepSamples::take_hops(const ProfiledStep& step) {
  std::map<program::StreamId, double> stream_free_s;
  for (program::OperationId id = 0; std::cmp_less(id, step.program.step.size()); ++id) {
    const program::Operation& op = step.program.step[id];
    double waited_s = -1;
    for (const program::OperationId w : op.waits) waited_s = std::max(waited_s, step.intervals[w].end_s);
    const double start_s = step.intervals[id].start_s;
    if (waited_s >= 0 && waited_s > stream_free_s[op.stream]) hops_.push_back(std::max(0.0, start_s - waited_s));
    stream_free_s[op.stream] = std::max(stream_free_s[op.stream], step.intervals[id].end_s);
  }
}

void StepSamples::add_to(Measured& m) const {
  m.computations = curves_of(computations_);
  if (!hops_.empty()) m.hop_s = median(hops_);
  if (!slowed_.empty()) m.slowed_computing = std::max(1.0, median(slowed_));
  Samples slowed;
  for (const auto& [bytes, samples] : busy_communications_) {
    const auto alone = m.communications.find("all_reduce");
    if (alone != m.communications.end()) slowed.push_back(median(samples) / alone->second.seconds_at(bytes));
  }
  if (!slowed.empty()) m.slowed_communicating = std::max(1.0, median(slowed));
}

Line fit_line(const std::vector<CurvePoint>& points) {
  double shortest_s = std::numeric_limits<double>::infinity(), fastest = 0, slowest = shortest_s;
  for (const CurvePoint& p : points) {
    shortest_s = std::min(shortest_s, p.seconds);
    fastest = std::max(fastest, p.size / p.seconds);
    slowest = std::min(slowest, p.size / p.seconds);
  }
  const auto error = [&](double start_s, double rate) {
    double sum = 0;
    for (const CurvePoint& p : points) sum += std::abs(std::log((start_s + p.size / rate) / p.seconds));
    return sum;
  };
  const auto rate_for = [&](double start_s) {
    return least(slowest, fastest * 4, false, [&](double rate) { return error(start_s, rate); });
  };
  const double start_s =
      least(shortest_s * 1e-3, shortest_s * 2, true, [&](double start) { return error(start, rate_for(start)); });
  return {start_s, rate_for(start_s)};
}

Calibrated calibrated_by(const Measured& m) {
  constexpr double least_share = 0.01;  // smallest share that a file can express
  Calibrated found;
  config::Calibration& c = found.calibration;
  c.backend = m.backend;
  take_computing(m, found);
  take_links(m, found);
  c.software.hop_s = m.hop_s;
  c.software.step_s = m.step_s;
  c.taken_by_communication = std::max(least_share, 1 - 1 / m.slowed_computing);
  c.kept_by_communication = std::max(least_share, 1 / m.slowed_communicating);
  return found;
}

std::string hardware_text(const Measured& m, const Calibrated& found) {
  std::vector<std::string> peaks, node{fmt::format("gpus: {}", m.ranks_of_node)};
  for (const auto& [precision, flops] : m.peak_flops)
    peaks.push_back(fmt::format("{}: {:.4g} GFLOP/s", config::name_of(precision), flops / 1e9));
  std::string text = fmt::format(
      "# What all ranks reached at once. The peaks are those of the best product: nobody's data sheet.\n"
      "name: {}\nsource: {}\npeak_flops: {{{}}}\n",
      quoted(fmt::format("{} of {}", m.device.name, m.host)), quoted(source_of(m)), join(peaks, ", "));
  if (m.device.memory_bytes > 0) text += fmt::format("memory: {:.0f} B\n", m.device.memory_bytes);
  text += fmt::format("memory_bandwidth: {}    # the quickest operation that moves memory, from whatever cache\n",
                      show_bandwidth(found.memory_bytes_per_s));
  if (m.device.sms > 0) text += fmt::format("sms: {}\n", m.device.sms);
  if (const int capability = m.device.compute_capability; capability > 0)
    text += fmt::format("compute_capability: {}.{}\n", capability / 10, capability % 10);
  if (found.link_bytes_per_s > 0) {
    text += fmt::format("nvlink: {}    # whatever links the ranks of a node: the best bus bandwidth between them\n",
                        show_bandwidth(found.link_bytes_per_s));
  }
  if (found.node_bytes_per_s > 0) node.push_back("network: " + show_bandwidth(found.node_bytes_per_s));
  if (m.device.nvswitch) node.emplace_back("nvswitch: true");
  return text + fmt::format("node: {{{}}}    # ranks that were measured together\n", join(node, ", "));
}

std::string calibration_text(const Measured& m, const Calibrated& found, const Wanted& wanted,
                             const std::string& hardware) {
  const config::Calibration& c = found.calibration;
  std::string text =
      "# From micro-benchmarks alone: no step was compared with it, so nothing is known of its error. The shares are "
      "for what\n# no curve below covers.\n";
  text += fmt::format("name: {}\nsource: {}\nbackend: {}\n", quoted("measured on " + m.host), quoted(source_of(m)),
                      config::name_of(m.backend));
  text += fmt::format("products: {{share: {}, ramp: {:.4g}}}\nmemory: {{share: {}}}\n", share_text(c.product_share),
                      c.product_ramp, share_text(c.memory_share));
  text += fmt::format("attention: {{forward: {}, backward: {}, ramp: {:.4g}}}\n", share_text(c.attention_forward),
                      share_text(c.attention_backward), c.attention_ramp);
  if (c.within_node) {
    text += fmt::format("within_node: {{share: {}, start: {}, message: {}}}\n", share_text(c.within_node->share),
                        time_text(c.within_node->start_s), time_text(c.within_node->message_s));
  }
  if (c.network_share > 0) {
    text += fmt::format("network: {{share: {}, start: {}, hop: 0 s, message: {}}}    # steps are in the start\n",
                        share_text(c.network_share), time_text(c.network_start_s), time_text(c.message_start_s));
  }
  if (m.ranks == 1) {
    text +=
        "within_node: {share: 100 %, start: 0 s, message: 0 s}    # one rank was measured: of its links nothing is "
        "known\n";
  }
  text += fmt::format("overlap: {{taken: {}, kept: {}}}\n", share_text(c.taken_by_communication),
                      share_text(c.kept_by_communication));
  text += fmt::format("software: {{fused: backend, host: 0 s, kernel: {}, step: {}, hop: {}}}\n",
                      time_text(c.software.kernel_s), time_text(c.software.step_s), time_text(c.software.hop_s));
  text += measured_text(c.measured);
  const config::Model& model = wanted.layer;
  text += fmt::format(
      "calibrated:\n  gpus: [{}]\n  ranks: {} to {}\n  hidden: {} to {}\n  sequence: {} to {}\n  message_bytes: 1 to "
      "{}\n",
      quoted(hardware), m.ranks, m.ranks, model.hidden, model.hidden, model.sequence, model.sequence,
      std::max<std::int64_t>(4, m.largest_message_bytes));  // at least the closing all-reduce
  return text;
}

}  // namespace harness::calibrate
