#include "calibrate/laws.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "program/links.h"
#include "program/operation.h"
#include "sim/link_time.h"

namespace harness::calibrate {

bool moves_memory(const std::string& operation) {
  return operation != program::Matmul::name && operation != program::Attention::name &&
         operation != program::AttentionBackward::name;
}

namespace {

using config::CurvePoint;
using config::Precision;

constexpr double good_enough = 0.05;  // of a law: what is said worse is written as a curve

// The argument with the least value, on a grid that closes in on it three times; logarithmic, and with 0 in front where
// `zero` is set.
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

double error_of(double expected, double measured) {
  return std::abs(std::log(expected / measured));
}

template <class Points, class Expected>
double mean_error(const Points& points, Expected&& expected) {
  double sum = 0;
  for (const auto& p : points) sum += error_of(expected(p), p.seconds);
  return sum / static_cast<double>(points.size());
}

double bytes_of(const config::GemmShape& g, double element) {
  return element * static_cast<double>(g.m * g.k + g.k * g.n + g.m * g.n);
}

double flop_of(const config::GemmShape& g) {
  return 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
}

double element_bytes(Precision precision) {
  return static_cast<double>(program::size_of(config::storage_of(precision)));
}

double best_rate(const std::vector<CurvePoint>& points) {
  double best = 0;
  for (const CurvePoint& p : points) best = std::max(best, p.size / p.seconds);
  return best;
}

void fit_memory(const Measured& m, Laws& laws) {
  std::vector<CurvePoint> all;
  for (const auto& [key, curve] : m.computations) {
    if (moves_memory(key.second)) all.insert(all.end(), curve.points().begin(), curve.points().end());
  }
  if (all.empty()) fail("no operation that moves memory was measured");
  laws.memory_bytes_per_s = best_rate(all);
  const Line line = fit_line(all, laws.memory_bytes_per_s);
  laws.calibration.memory_share = line.rate / laws.memory_bytes_per_s;
  laws.calibration.software.kernel_s = line.start_s;
  laws.errors.push_back({"memory", static_cast<int>(all.size()),
                         mean_error(all, [&](const CurvePoint& p) { return line.seconds_at(p.size); })});
}

double products_error(const std::vector<ProductTime>& products, double element, const sim::Device& device,
                      const config::Calibration& c) {
  return mean_error(products, [&](const ProductTime& p) {
    return sim::product_seconds(p.shape.m, p.shape.n, p.shape.k, 1, bytes_of(p.shape, element), device, c);
  });
}

double attention_error(const std::vector<AttentionTime>& attentions, const sim::Device& device,
                       const config::Calibration& c) {
  return mean_error(attentions, [&](const AttentionTime& a) {
    return sim::attention_seconds(a.flop, a.shape.sequence, a.backward, device, c);
  });
}

// Repeated by itself, an operation shows how its speed depends on its shape. But its operands stay in the caches then,
// which on cores makes it a sixth quicker: how fast it is, steps say, where some were measured.
template <class Time>
const std::vector<Time>& decisive(const std::map<Precision, std::vector<Time>>& in_step, Precision precision,
                                  const std::vector<Time>& repeated) {
  const auto found = in_step.find(precision);
  return found == in_step.end() || found->second.empty() ? repeated : found->second;
}

// The share that suits these products best, with the ramp as it is.
void fit_product_share(const std::vector<ProductTime>& products, double element, const sim::Device& device,
                       config::Calibration& c) {
  constexpr double least_share = 0.02;
  c.product_share = least(least_share, 1, false, [&](double share) {
    c.product_share = share;
    return products_error(products, element, device, c);
  });
}

void fit_attention_shares(const std::vector<AttentionTime>& attentions, const sim::Device& device,
                          config::Calibration& c) {
  constexpr double least_share = 0.002;
  for (const bool backward : {false, true}) {
    std::vector<AttentionTime> of_pass = attentions;
    std::erase_if(of_pass, [&](const AttentionTime& a) { return a.backward != backward; });
    if (of_pass.empty()) continue;
    double& share = backward ? c.attention_backward : c.attention_forward;
    share = least(least_share, 1, false, [&](double s) {
      share = s;
      return attention_error(of_pass, device, c);
    });
  }
}

// Shares and ramps are those of the first precision. Another has the peak with which they say its products best; what
// that leaves wrong is its error.
void fit_computing(const Measured& m, Laws& laws) {
  config::Calibration& c = laws.calibration;
  bool first = true;
  for (const auto& [precision, of_precision] : m.products) {
    const std::vector<ProductTime>& products = decisive(m.products_in_step, precision, of_precision);
    double peak = 0;
    for (const ProductTime& p : of_precision) peak = std::max(peak, flop_of(p.shape) / p.seconds);
    if (!(peak > 0)) continue;
    const double element = element_bytes(precision);
    sim::Device device{peak, laws.memory_bytes_per_s, m.device.sms};
    config::Calibration own = c;
    if (first) {
      fit_products(of_precision, element, device, own);
      fit_product_share(products, element, device, own);
    } else {
      device.flops = least(peak / 8, peak * 8, false, [&](double flops) {
        device.flops = flops;
        return products_error(products, element, device, c);
      });
    }
    laws.peak_flops[precision] = device.flops;
    const std::string name = config::name_of(precision);
    laws.errors.push_back({"products, " + name, static_cast<int>(products.size()),
                           products_error(products, element, device, first ? own : c)});
    const auto found = m.attentions.find(precision);
    if (found != m.attentions.end() && !found->second.empty()) {
      const std::vector<AttentionTime>& attentions = decisive(m.attentions_in_step, precision, found->second);
      if (first) {
        fit_attention(found->second, device, own);
        fit_attention_shares(attentions, device, own);
      }
      laws.errors.push_back({"attention, " + name, static_cast<int>(attentions.size()),
                             attention_error(attentions, device, first ? own : c)});
    }
    if (first) c = own;
    first = false;
  }
  if (first) fail("no matrix product was measured");
}

// nccl-tests' bus bandwidth over its algorithm bandwidth.
double bus_factor(const std::string& operation, int ranks) {
  const double part = (ranks - 1.0) / ranks;
  if (operation == program::Send::name) return 1;
  return operation == program::AllReduce::name ? 2 * part : part;
}

// Predicts the time of a communication of all ranks by the law alone, without measured curves.
double law_seconds(const std::string& operation, double bytes, const sim::Spread& all, const sim::Network& network,
                   const config::Calibration& c) {
  if (operation == program::Send::name) return sim::message_seconds(bytes, all.nodes > 1 ? 1 : 0, {}, network, c);
  program::Collective kind = program::Collective::all_reduce;
  if (operation == program::AllGather::name) kind = program::Collective::all_gather;
  if (operation == program::ReduceScatter::name) kind = program::Collective::reduce_scatter;
  return sim::collective_seconds(kind, bytes, all, network, c);
}

// The law of a group's links: one for all operations, with the start and the rate of the all-reduce.
struct LinkLaw {
  double best = 0;   // bus bandwidth
  double share = 0;  // of it
  double start_s = 0, message_start_s = 0;
};
LinkLaw link_law(const std::map<std::string, config::Curve>& curves, int ranks) {
  std::map<std::string, Line> lines;
  LinkLaw law;
  for (const auto& [name, curve] : curves) {
    std::vector<CurvePoint> moved = curve.points();
    for (CurvePoint& p : moved) p.size *= bus_factor(name, ranks);
    law.best = std::max(law.best, best_rate(moved));
    lines[name] = fit_line(moved);
  }
  const Line& reduce = lines.at(std::string(program::AllReduce::name));
  law.best = std::max(law.best, reduce.rate);  // where even the largest message is mostly a start
  law.share = reduce.rate / law.best;
  law.start_s = reduce.start_s;
  law.message_start_s = lines.at(std::string(program::Send::name)).start_s;
  return law;
}

void fit_links(const Measured& m, Laws& laws) {
  if (m.communications.empty()) return;
  config::Calibration& c = laws.calibration;
  const bool one_node = m.nodes == 1;
  const auto& within = one_node ? m.communications : m.within_node;
  const int of_node = one_node ? m.ranks : m.ranks_of_node;
  sim::Network network;
  // Where nothing is known of the links within a node, the law of the network has nothing beside it.
  network.rank_bytes_per_s = std::numeric_limits<double>::infinity();
  if (!within.empty()) {
    const LinkLaw law = link_law(within, of_node);
    laws.link_bytes_per_s = network.rank_bytes_per_s = law.best;
    c.within_node = config::WithinNode{law.share, law.start_s, law.message_start_s};
  }
  if (!one_node) {
    const LinkLaw law = link_law(m.communications, m.ranks);
    // All of a node's, for a ring through all ranks enters and leaves each node once.
    laws.node_bytes_per_s = network.node_bytes_per_s = law.best;
    c.network_share = law.share;
    c.network_start_s = law.start_s;  // with its steps: one number of nodes was measured
    c.message_start_s = law.message_start_s;
  }
  const auto error_of = [&](const std::string& name, const config::Curve& curve, const sim::Spread& spread) {
    return mean_error(curve.points(),
                      [&](const CurvePoint& p) { return law_seconds(name, p.size, spread, network, c); });
  };
  decltype(c.measured.communications) kept;
  for (const auto& [name, curve] : within) {
    const double error = error_of(name, curve, {{of_node, 1, of_node}});
    laws.errors.push_back({one_node ? name : name + ", within a node", static_cast<int>(curve.points().size()), error});
    if (error > good_enough) kept[name] = curve;
  }
  if (!within.empty()) {
    c.measured.ranks = of_node;
    c.measured.communications = std::move(kept);
  }
  if (one_node) return;
  for (const auto& [name, curve] : m.communications) {
    const double error = error_of(name, curve, {{m.ranks, m.nodes, (m.ranks + m.nodes - 1) / m.nodes}});
    laws.errors.push_back({name, static_cast<int>(curve.points().size()), error});
  }
}

// An operation whose law is far off is written as it was measured.
void keep_curves(const Measured& m, Laws& laws) {
  config::Calibration& c = laws.calibration;
  for (const auto& [key, curve] : m.computations) {
    const config::Precision precision = key.first;
    const std::string& name = key.second;
    const auto law = std::ranges::find_if(laws.errors, [&](const LawError& e) {
      const char* kind = name == program::Matmul::name ? "products, " : "attention, ";
      return !moves_memory(name) && e.what == std::string(kind) + config::name_of(precision);
    });
    double error = law == laws.errors.end() ? good_enough * 2 : law->error;
    if (moves_memory(name)) {
      const sim::Device device{laws.peak_flops.at(precision), laws.memory_bytes_per_s, m.device.sms};
      error = mean_error(curve.points(), [&](const CurvePoint& p) { return sim::memory_seconds(p.size, device, c); });
    }
    if (error > good_enough) c.measured.computations[key] = curve;
  }
}

}  // namespace

Line fit_line(const std::vector<CurvePoint>& points, double most) {
  double shortest_s = std::numeric_limits<double>::infinity(), fastest = 0, slowest = shortest_s;
  for (const CurvePoint& p : points) {
    shortest_s = std::min(shortest_s, p.seconds);
    fastest = std::max(fastest, p.size / p.seconds);
    slowest = std::min(slowest, p.size / p.seconds);
  }
  const double high = most > 0 ? most : fastest * 4;
  const auto rate_for = [&](double start_s) {
    return least(std::min(slowest, high / 2), high, false, [&](double rate) {
      return mean_error(points, [&](const CurvePoint& p) { return start_s + p.size / rate; });
    });
  };
  const double start_s = least(shortest_s * 1e-3, shortest_s * 2, true, [&](double start) {
    const double rate = rate_for(start);
    return mean_error(points, [&](const CurvePoint& p) { return start + p.size / rate; });
  });
  return {start_s, rate_for(start_s)};
}

double fit_products(const std::vector<ProductTime>& products, double element, const sim::Device& device,
                    config::Calibration& c) {
  constexpr double least_ramp = 1, most_ramp = 8192;
  const auto error = [&](double ramp) {
    c.product_ramp = ramp;
    fit_product_share(products, element, device, c);
    return products_error(products, element, device, c);
  };
  return error(least(least_ramp, most_ramp, true, error));
}

double fit_attention(const std::vector<AttentionTime>& attentions, const sim::Device& device, config::Calibration& c) {
  constexpr double least_ramp = 1, most_ramp = 8192;
  const auto error = [&](double ramp) {
    c.attention_ramp = ramp;
    fit_attention_shares(attentions, device, c);
    return attention_error(attentions, device, c);
  };
  return error(least(least_ramp, most_ramp, true, error));
}

Laws fit(const Measured& m) {
  constexpr double least_share = 0.01;  // that a file can say
  Laws laws;
  laws.calibration.backend = m.backend;
  // Where no attention was measured: as fast as products, which says so.
  laws.calibration.attention_forward = laws.calibration.attention_backward = 1;
  laws.calibration.attention_ramp = 0;
  fit_memory(m, laws);
  fit_computing(m, laws);
  fit_links(m, laws);
  keep_curves(m, laws);
  config::Calibration& c = laws.calibration;
  c.software.hop_s = m.hop_s;
  c.software.step_s = m.step_s;
  c.taken_by_communication = std::max(least_share, 1 - 1 / m.slowed_computing);
  c.kept_by_communication = std::max(least_share, 1 / m.slowed_communicating);
  return laws;
}

}  // namespace harness::calibrate
