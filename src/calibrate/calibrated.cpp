#include "calibrate/calibrated.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "program/operation.h"

namespace harness::calibrate {
namespace {

using config::CurvePoint;
using config::Precision;

// The argument in [low, high] with the least value, on a logarithmic grid that closes in on it; 0 is tried as well
// where `zero` is set.
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

config::Curve stretched(const config::Curve& curve, double factor) {
  std::vector<CurvePoint> points = curve.points();
  for (CurvePoint& p : points) p.seconds *= factor;
  return config::Curve(std::move(points));
}

void take_computing(const Measured& m, Calibrated& found) {
  config::Calibration& c = found.calibration;
  for (const auto& [precision, products] : m.products) {
    double best = 0;
    for (const ProductTime& p : products) best = std::max(best, p.flop() / p.seconds);
    if (best > 0) found.peak_flops[precision] = best;
  }
  if (found.peak_flops.empty()) fail("no matrix product was measured");

  std::vector<CurvePoint> moving;
  double shortest_s = std::numeric_limits<double>::infinity();
  for (const auto& [key, curve] : m.computations) {
    const auto& [precision, name] = key;
    if (moves_memory(name)) {
      moving.insert(moving.end(), curve.points().begin(), curve.points().end());
      for (const CurvePoint& p : curve.points()) shortest_s = std::min(shortest_s, p.seconds);
    }
    // The step of one layer leaves a GPU enough idle time to stay at burst clocks, which no step of a whole model keeps
    // at the power limit: no product there is quicker than the best that ran again and again. (H200: 790 TFLOP/s in a
    // layer's step, 685 again and again, 669 in steps of 24 layers.)
    const auto peak = found.peak_flops.find(precision);
    const bool is_product = name == program::Matmul::name && peak != found.peak_flops.end();
    const double burst = is_product ? std::max(1.0, best_rate(curve.points()) / peak->second) : 1;
    c.measured.computations[key] = stretched(curve, burst);
  }
  if (moving.empty()) fail("no operation that moves memory was measured");
  found.memory_bytes_per_s = best_rate(moving);
  c.software.kernel_s = shortest_s;
  c.product_share = c.memory_share = c.attention_forward = c.attention_backward = 1;
}

// nccl-tests' bus bandwidth over its algorithm bandwidth.
double bus_factor(std::string_view operation, int ranks) {
  const double part = (ranks - 1.0) / ranks;
  if (operation == program::Send::name) return 1;
  return operation == program::AllReduce::name ? 2 * part : part;
}

// The law of a group's links: one for all operations, with the start and the rate of the all-reduce.
struct LinkLaw {
  double best = 0;   // bus bandwidth
  double share = 0;  // of it
  double start_s = 0, message_start_s = 0;
};
LinkLaw link_law(const std::map<std::string, config::Curve>& curves, int ranks) {
  LinkLaw law;
  double reduce_rate = 0;
  for (const auto& [name, curve] : curves) {
    std::vector<CurvePoint> moved = curve.points();
    for (CurvePoint& p : moved) p.size *= bus_factor(name, ranks);
    law.best = std::max(law.best, best_rate(moved));
    if (name != program::AllReduce::name && name != program::Send::name) continue;
    const Line line = fit_line(moved);
    if (name == program::Send::name) {
      law.message_start_s = line.start_s;
    } else {
      law.start_s = line.start_s;
      reduce_rate = line.rate;
    }
  }
  law.best = std::max(law.best, reduce_rate);  // where even the largest message is mostly a start
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
    // All of a node's, for a ring through all ranks enters and leaves each node once.
    found.node_bytes_per_s = law.best;
    c.network_share = law.share;
    c.network_start_s = law.start_s;  // with its steps: one number of nodes was measured
    c.message_start_s = law.message_start_s;
  }
}

}  // namespace

bool moves_memory(const std::string& operation) {
  return operation != program::Matmul::name && operation != program::Attention::name &&
         operation != program::AttentionBackward::name;
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
  constexpr double least_share = 0.01;  // that a file can say
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

}  // namespace harness::calibrate
