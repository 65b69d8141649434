#include "sim/collective_lines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace harness::sim {
namespace {

constexpr double us = 1e-6;

// The least of the lines that are added, at one size.
class Least {
 public:
  explicit Least(double bytes) : bytes_(bytes) {}
  void add(double start_s, double seconds_per_byte) {
    seconds_ = std::min(seconds_, start_s + bytes_ * seconds_per_byte);
  }
  double seconds() const { return seconds_; }

 private:
  double bytes_;
  double seconds_ = std::numeric_limits<double>::infinity();
};

// Ranks of one node do `passes` over NVLink, of (n - 1) / n of the bytes.
struct Inside {
  double n, passes, links;  // links: bytes per second of a rank's NVLinks, one direction
  double per_byte(double share) const { return passes * (n - 1) / n / (links * share); }
};

// By a share of what the links promise, as calibrated on the machine at hand.
double calibrated(double bytes, const Inside& in, const config::WithinNode& within) {
  constexpr double half_of_all_reduce = 0.6;
  return (in.passes > 1 ? 1 : half_of_all_reduce) * within.start_s + bytes * in.per_byte(within.share);
}

double without_switches_that_add(double bytes, const Inside& in) {
  constexpr double half_of_all_reduce = 0.6, ll_share = 0.16;
  struct Measured {
    double ranks, start_us, gb_per_s;
  };
  constexpr std::array<Measured, 3> of_a100{{{2, 55, 194}, {4, 65, 220}, {1e9, 90, 230}}};
  constexpr double links_of_a100 = 300;
  const Measured& row = *std::ranges::find_if(of_a100, [&](const Measured& m) { return in.n <= m.ranks; });
  const double start_s = row.start_us * us, share = row.gb_per_s / links_of_a100;
  Least least(bytes);
  least.add((in.passes > 1 ? 1 : half_of_all_reduce) * start_s, in.per_byte(share));
  least.add((7 + 1.2 * in.passes * (in.n - 1)) * us, in.per_byte(share * ll_share));
  return least.seconds();
}

double with_switches_that_add(double bytes, const Inside& in) {
  constexpr double one_board = 8;
  const bool all_reduce = in.passes > 1;
  Least least(bytes);
  least.add((13 + 0.4 * in.n) * us, in.per_byte(0.16));  // LL
  if (in.n <= one_board) {
    least.add((18 + 0.5 * in.n) * us, in.per_byte(0.55));  // LL128, NVLS of small messages
    least.add((50 + 0.5 * in.n) * us, in.per_byte(all_reduce && in.n > 4 ? 1.05 : 0.80));  // NVLS, Simple
  } else {
    least.add((25 + 0.5 * in.n) * us, in.per_byte(0.30));
    least.add((100 + 0.5 * in.n) * us, in.per_byte(0.70));
    least.add((560 + 0.5 * in.n) * us, in.per_byte(all_reduce ? 1.0 : 0.78));
  }
  return least.seconds();
}

double inside_seconds(double bytes, double ranks, double passes, const Network& network, const config::Calibration& c) {
  if (ranks <= 1) return 0;
  const Inside in{ranks, passes, network.rank_bytes_per_s};
  if (c.within_node) return calibrated(bytes, in, *c.within_node);
  return network.switches_reduce ? with_switches_that_add(bytes, in) : without_switches_that_add(bytes, in);
}

double between_seconds(double bytes, const Spread& spread, double passes, const Network& network,
                       const config::Calibration& c) {
  constexpr double most_of_nvlink = 0.75;
  const double n = spread.ranks, nodes = spread.nodes, g = spread.most_on_a_node, log_nodes = std::log2(nodes);
  const bool all_reduce = passes > 1, inside = g > 1 && network.rank_bytes_per_s > 0;
  const double adapters = network_rate(spread, network) * spread.network;
  double rate = adapters * network_share(network, c);
  if (inside) rate = std::min(rate, network.rank_bytes_per_s * most_of_nvlink);
  const double part = passes * (n - 1) / n;
  Least least(bytes);
  if (c.network_hop_s == 0) {  // measured on as many nodes: its start has all steps
    least.add(c.network_start_s, part / rate);
    return least.seconds();
  }
  least.add(c.network_start_s + passes * ((nodes - 1) * c.network_hop_s + (n - nodes) * 1.2 * us), part / rate);
  least.add(0.7 * c.network_start_s + passes * ((nodes - 1) * 0.6 * c.network_hop_s + (n - nodes) * 0.8 * us),
            part / (0.45 * rate));  // LL
  if (all_reduce) {
    least.add((15 + 2 * ((g - 1) * 0.6 + log_nodes * 6)) * us, 2 / (0.25 * rate));             // tree, LL
    least.add((45 + 24 * log_nodes) * us, 2 / (1.05 * rate * (spread.nodes == 2 ? 1 : 0.5)));  // tree, NVLSTree
    if (spread.nodes == 2 && network.switches_reduce && inside) {                              // each byte crosses once
      const double nvls = 2 * (n - 1) / n / (1.05 * network.rank_bytes_per_s);
      least.add(60 * us, std::max(1 / (0.93 * adapters), nvls));
    }
  } else if (spread.most_on_a_node == 1) {
    least.add((40 + 14 * std::log2(n)) * us, part / (0.85 * rate));  // PAT
  }
  return least.seconds();
}

}  // namespace

double lines_seconds(program::Collective kind, double bytes, const Spread& spread, const Network& network,
                     const config::Calibration& calibration) {
  if (spread.ranks <= 1) return 0;
  const double passes = kind == program::Collective::all_reduce ? 2 : 1;
  const bool linked = spread.nodes == 1 || network.rank_bytes_per_s > 0;
  const double inside = linked ? inside_seconds(bytes, spread.most_on_a_node, passes, network, calibration) : 0;
  if (spread.nodes == 1) return inside;
  return std::max(inside, between_seconds(bytes, spread, passes, network, calibration));
}

}  // namespace harness::sim
