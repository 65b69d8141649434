#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>

#include "base/median.h"
#include "base/text.h"
#include "base/units.h"
#include "doctor/load_stage.h"

// Judges the measurements of the load stage: ranks that are slower than others, and rates far below the hardware's.

namespace harness::doctor {
namespace {

const About products_check{"load.products", "are all ranks equally quick at matrix products, all at once",
                           "workload gemm, the products' own time on each rank", "docs/doctor.md", Verdict::fail},
    clocks_check{"load.clocks", "what slows the GPUs down while all multiply", "NVML, every 100 ms of it",
                 "docs/doctor.md", Verdict::fail},
    node_check{"load.node_all_reduce", "is the all-reduce equally quick within every node",
               "workload collective, all nodes at once", "docs/doctor.md", Verdict::fail},
    copies_check{"load.host_copies", "do all GPUs copy to and from their hosts equally quickly",
                 "copies of pinned memory, all ranks at once", "docs/doctor.md", Verdict::fail},
    pairs_check{"load.pairs", "are links between nodes equally quick, each rank with its like on another node",
                "workload collective, pairs of nodes at once, in rounds", "docs/doctor.md", Verdict::fail};

// The scatter of devices by kind. CPUs are shared: other processes may take half of the speed.
struct Tolerances {
  Tolerance products, node_reduce, link;
};
Tolerances tolerances_for(config::BackendKind backend) {
  if (config::traits_of(backend).ranks_are_gpus) return {{0.97, 0.92, 0.84}, {0.9, 0.75, 0.75}, {0.85, 0.6, 0.6}};
  return {{0.5, 0, 0.25}, {0.5, 0, 0.25}, {0.5, 0, 0.25}};
}

// Half of the lanes, or a slower generation, halve the rate: below 70 % of the usual rate, a link is faulty. Memory of
// another NUMA node or an IOMMU that translates costs less.
constexpr Tolerance copies_tolerance{0.85, 0.7, 0.7};

struct CopyWay {
  std::string_view words;
  double machine::HostCopies::*of_rank;
  std::vector<double> rates = {};  // by rank
  Likeness likeness = {};
};

// Empty if not all rates were measured.
std::vector<CopyWay> measured_ways(const Load& load) {
  std::vector<CopyWay> ways{{"to the GPU", &machine::HostCopies::to_device_bytes_per_s},
                            {"from the GPU", &machine::HostCopies::from_device_bytes_per_s},
                            {"both ways at once", &machine::HostCopies::both_bytes_per_s}};
  for (CopyWay& way : ways) {
    for (const Load::RankLoad& rank : load.ranks) way.rates.push_back(rank.host_copies.*way.of_rank);
    if (way.rates.empty() || std::ranges::any_of(way.rates, [](double rate) { return !(rate > 0); })) return {};
    way.likeness = compare_rates(way.rates, copies_tolerance);
  }
  return ways;
}

std::string numbers_in_words(const std::vector<Node>& nodes, const std::vector<CopyWay>& ways) {
  std::vector<std::string> usual;
  for (const CopyWay& way : ways) usual.push_back(fmt::format("{} {}", show_bandwidth(median(way.rates)), way.words));
  const CopyWay& first = ways.front();
  const std::size_t slowest = first.likeness.lowest;
  return fmt::format("host and GPU copy, on all ranks at once: {}; slowest: {} with {} {}", join(usual, ", "),
                     name_of_rank(nodes, static_cast<int>(slowest)), show_bandwidth(first.rates[slowest]), first.words);
}

// The rate of a node's active ports, as far as its ranks can use them: one port each, but EFA's plug-in joins several
// for a GPU. 0: unknown.
double port_bytes_per_s(const Node& node, std::size_t ranks) {
  std::vector<double> rates;
  for (const Port& port : ports_of(node.facts)) {
    const bool is_used = is_efa(node.facts, port) || may_take(node, port);
    if (is_used && is_active(node.facts, port))
      rates.push_back(node.facts.number(port.key + "rate").value_or(0) * 1e9 / 8);
  }
  std::ranges::sort(rates, std::greater<>());
  if (!has_efa(node.facts)) rates.resize(std::min(rates.size(), ranks));
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

class Judge {
 public:
  Judge(const std::vector<Node>& nodes, const Load& load, const RankGrid& grid, const config::Hardware* hardware)
      : nodes_(nodes), load_(load), grid_(grid), hardware_(hardware), limits_(tolerances_for(load.backend)) {}

  std::vector<StageFinding> all() {
    products();
    clocks();
    host_copies();
    node_reduce();
    links();
    return std::move(said_);
  }

 private:
  void say(const About& check, Verdict verdict, std::string evidence, std::string remedy = "",
           const std::string& host = "") {
    said_.push_back({check.id, {verdict, std::move(evidence), std::move(remedy)}, host});
  }
  // Reports the job as a whole. `low`: all are slow.
  void say_numbers(const About& check, const std::string& numbers, bool low, const std::string& remedy) {
    say(check, low ? Verdict::warn : Verdict::info, numbers, low ? remedy : "");
  }
  // ", 85 % of h100-sxm's peak"; "" if the hardware file states none (0).
  std::string share_of(double rate, double stated, std::string_view what) const {
    return stated > 0 ? fmt::format(", {} of {}'s {}", percent(rate / stated, 0), hardware_->name, what) : "";
  }
  std::string host_of(std::size_t rank) const { return host_of_rank(nodes_, static_cast<int>(rank)); }

  void products() {
    std::vector<double> rates;
    for (const Load::RankLoad& rank : load_.ranks) rates.push_back(rank.product_flops);
    const Likeness likeness = compare_rates(rates, limits_.products);
    if (std::isnan(likeness.usual)) return;
    for (const Slow& slow : likeness.slow) {
      const int rank = static_cast<int>(slow.at);
      say(products_check, slow.verdict,
          fmt::format("rank {} reaches {} in matrix products, the fast ones {}", rank, show_flops(rates[slow.at]),
                      show_flops(likeness.usual)),
          "see what else runs there, what load.clocks and gpu.slowed say; if it stays slow, leave the node out",
          host_of(slow.at));
    }
    const double peak = hardware_ == nullptr ? 0 : hardware_->peak_flops(load_.precision);
    say_numbers(
        products_check,
        fmt::format("products of {}: {} each{}; slowest: {} with {}", plural(std::ssize(rates), "rank"),
                    show_flops(likeness.usual), share_of(likeness.usual, peak, "peak"),
                    name_of_rank(nodes_, static_cast<int>(likeness.lowest)), show_flops(rates[likeness.lowest])),
        likeness.usual < sound_share * peak,
        "most GPUs are slow: look at power limits, at the clocks that somebody set, and at the temperature of "
        "the room");
  }

  // The power cap alone is normal during matrix products.
  void clocks() {
    std::vector<double> clocks;
    bool told = false;
    for (std::size_t rank = 0; rank < load_.ranks.size(); ++rank) {
      const machine::GpuStatistics& gpu = load_.ranks[rank].gpu;
      clocks.push_back(gpu.mean_sm_clock_hz);
      told = told || gpu.samples > 0;
      const std::uint64_t bits = gpu.throttle_reasons;
      const std::string state = fmt::format("the GPU of rank {}, at {:.0f} °C and {:.0f} W, is slowed down: {}", rank,
                                            gpu.max_temperature_c, gpu.max_power_w, machine::harmful_throttling(bits));
      if ((bits & machine::throttled_by_hardware) != 0) {
        say(clocks_check, Verdict::fail, state, "look at its power cables, its fans or its water", host_of(rank));
      } else if ((bits & machine::throttled_by_heat) != 0) {
        say(clocks_check, Verdict::warn, state, "look at the temperature of the air or water", host_of(rank));
      } else if ((bits & machine::throttled_by_setting) != 0) {
        say(clocks_check, Verdict::warn, fmt::format("somebody has capped the clocks of the GPU of rank {}", rank),
            "`nvidia-smi -rac`, `nvidia-smi -rgc`", host_of(rank));
      }
    }
    if (!told) return;
    const Likeness likeness = compare_rates(clocks, {0.97, 0, 0.84});
    for (const Slow& slow : likeness.slow) {
      say(clocks_check, slow.verdict,
          fmt::format("the GPU of rank {} runs at {:.0f} MHz under load, the fast ones at {:.0f}", slow.at,
                      clocks[slow.at] / 1e6, likeness.usual / 1e6),
          "look at its power limit and its temperature beside those of its neighbours", host_of(slow.at));
    }
    if (!std::isnan(likeness.usual))
      say(clocks_check, Verdict::info, fmt::format("the GPUs run at {:.0f} MHz under load", likeness.usual / 1e6));
  }

  void host_copies() {
    const std::vector<CopyWay> ways = measured_ways(load_);
    if (ways.empty()) return;
    std::map<std::size_t, Finding> slow;  // by rank
    for (const CopyWay& way : ways) {
      for (const Slow& one : way.likeness.slow) {
        Finding& finding = slow.try_emplace(one.at, Finding{Verdict::pass, "", ""}).first->second;
        finding.verdict = std::min(finding.verdict, one.verdict);
        finding.evidence +=
            fmt::format("{}{} {} (the fast ones {})", finding.evidence.empty() ? "" : ", ",
                        show_bandwidth(way.rates[one.at]), way.words, show_bandwidth(way.likeness.usual));
      }
    }
    for (const auto& [rank, finding] : slow) {
      const std::string& device = load_.ranks[rank].device;                   // "0000:1B:00.0 NVIDIA H100 80GB HBM3"
      const std::string address = lower(device.substr(0, device.find(' ')));  // as in /sys
      say(copies_check, finding.verdict, fmt::format("rank {} with GPU {} copies {}", rank, address, finding.evidence),
          "look at pcie.width of this GPU, at topo.numa and rank.near_gpu for the memory that it copies, and at "
          "pcie.iommu",
          host_of(rank));
    }
    say(copies_check, Verdict::info, numbers_in_words(nodes_, ways));
  }

  void node_reduce() {
    const std::vector<double>& rates = load_.node_reduce_bytes_per_s;
    const Likeness likeness = compare_rates(rates, limits_.node_reduce);
    if (std::isnan(likeness.usual)) return;
    for (const Slow& slow : likeness.slow) {
      say(node_check, slow.verdict,
          fmt::format("the all-reduce within the node reaches {}, the fast ones {}", show_bandwidth(rates[slow.at]),
                      show_bandwidth(likeness.usual)),
          "look at gpu.nvlink, gpu.fabric, pcie.width and nccl.peers of this node", nodes_[slow.at].host);
    }
    const double nvlink = hardware_ == nullptr ? 0 : hardware_->nvlink_bytes_per_s;
    say_numbers(node_check,
                fmt::format("all-reduce of {} within a node: bus bandwidth {}{}", plural(grid_.of_node(), "rank"),
                            show_bandwidth(likeness.usual), share_of(likeness.usual, nvlink, "NVLinks")),
                likeness.usual < sound_share * nvlink,
                "look at nccl.peers, nccl.nvls and at settings of NCCL that are left on");
  }

  // If a rank is slow with every partner, its link is slow. If a pair is slow although both ranks are fast with others,
  // the path between them is slow.
  void links() {
    if (load_.pairs.empty()) return;
    std::vector<double> best(load_.ranks.size(), std::numeric_limits<double>::quiet_NaN()), every;  // best: by rank
    for (const Load::Pair& pair : load_.pairs) {
      for (int local = 0; local < grid_.of_node(); ++local) {
        every.push_back(pair.bytes_per_s[local]);
        for (const int node : {pair.first, pair.second}) {
          double& of_rank = best[grid_.rank(node, local)];
          of_rank = std::fmax(of_rank, every.back());
        }
      }
    }
    const Likeness likeness = compare_rates(best, limits_.link);
    std::vector<bool> is_slow(best.size(), false);
    for (const Slow& slow : likeness.slow) {
      is_slow[slow.at] = true;
      say(pairs_check, slow.verdict,
          fmt::format("rank {} reaches {} to every other node it met, the fast ones {}", slow.at,
                      show_bandwidth(best[slow.at]), show_bandwidth(likeness.usual)),
          "look at ib.pcie, ib.rate, pcie.width and topo.nearest of this node: the adapter nearest to this rank",
          host_of(slow.at));
    }
    const Likeness ways = compare_rates(every, limits_.link);
    std::size_t i = 0;
    for (const Load::Pair& pair : load_.pairs) {
      const std::string &first = nodes_[static_cast<std::size_t>(pair.first)].host,
                        &second = nodes_[static_cast<std::size_t>(pair.second)].host;
      std::vector<double> slow_ways;
      Verdict verdict = Verdict::warn;
      for (int local = 0; local < grid_.of_node(); ++local, ++i) {
        const auto found = std::ranges::find(ways.slow, i, &Slow::at);
        const auto is_of_slow_rank = [&](int node) { return is_slow[grid_.rank(node, local)]; };
        if (found == ways.slow.end() || is_of_slow_rank(pair.first) || is_of_slow_rank(pair.second)) continue;
        slow_ways.push_back(every[i]);
        verdict = std::min(verdict, found->verdict);
      }
      if (slow_ways.empty()) continue;
      say(pairs_check, verdict,
          fmt::format("{} of {} ranks reach {} between {} and {}, the fast ones {}", slow_ways.size(), grid_.of_node(),
                      show_bandwidth(median(slow_ways)), first, second, show_bandwidth(ways.usual)),
          "both are quick with others: look at the switches between them, and at what else uses them", first);
    }
    against_ports(likeness.usual);
  }

  void against_ports(double usual) {
    const auto ranks = static_cast<std::size_t>(grid_.of_node());
    double ports = std::numeric_limits<double>::infinity();
    bool complete = config::traits_of(load_.backend).ranks_are_gpus;  // one rank per GPU
    for (const Node& node : nodes_) {
      ports = std::min(ports, port_bytes_per_s(node, ranks));
      complete = complete && node.ranks.size() == std::max(ranks, node.facts.under("gpu").size());
    }
    const double of_node = usual * static_cast<double>(ranks);
    // What is faster than the ports went over NVLink, as between the trays of a rack.
    const bool known = complete && ports > 0 && of_node <= ports;
    const std::string numbers = fmt::format(
        "{} between two nodes, {} in one direction for each rank{}", show_bandwidth(of_node), show_bandwidth(usual),
        known ? fmt::format(": {} of what their ports carry", percent(of_node / ports, 0)) : std::string());
    say_numbers(pairs_check, numbers, known && of_node < sound_share * ports,
                "look at nccl.network, nccl.gpu_direct and nccl.rails");
  }

  const std::vector<Node>& nodes_;
  const Load& load_;
  const RankGrid& grid_;
  const config::Hardware* hardware_;
  Tolerances limits_;
  std::vector<StageFinding> said_;
};

// Prior for the relative scatter, and its weight in observations: two rates alone tell nothing about their scatter.
constexpr double expected_scatter = 0.015, worth = 4;
constexpr std::size_t smallest_fast_share = 32;

// The number of ascending values in the slow group; nullopt if all form one group. At least `fast` are not slow.
std::optional<std::size_t> slow_group(std::span<const double> logs, std::size_t fast) {
  const std::size_t n = logs.size();
  double sum = 0, squares = 0;
  for (const double x : logs) {
    sum += x - logs.back();
    squares += (x - logs.back()) * (x - logs.back());
  }
  double best = 0, slow_sum = 0, slow_squares = 0;
  std::size_t best_slow = 0;
  for (std::size_t slow = 1; slow + fast <= n; ++slow) {
    const double x = logs[slow - 1] - logs.back();
    slow_sum += x;
    slow_squares += x * x;
    const double slows = static_cast<double>(slow), fasts = static_cast<double>(n - slow);
    const double slow_mean = slow_sum / slows, fast_mean = (sum - slow_sum) / fasts;
    const double within = std::max(0.0, slow_squares - slows * slow_mean * slow_mean) +
                          std::max(0.0, squares - slow_squares - fasts * fast_mean * fast_mean);
    const double scatter =
        std::sqrt((worth * expected_scatter * expected_scatter + within) / (worth + static_cast<double>(n - 2)));
    const double distance = (fast_mean - slow_mean) / scatter;
    if (distance <= best) continue;
    best = distance;
    best_slow = slow;
  }
  // In standard deviations. More rates can be split in more places, but their scatter is better known; from ten rates
  // on, healthy ones hardly ever reach it.
  const double significant = std::min(5.8, 3.8 + 0.2 * static_cast<double>(n));
  return best >= significant ? std::optional(best_slow) : std::nullopt;
}

}  // namespace

std::vector<StageFinding> judge_load(const std::vector<Node>& nodes, const Load& load, const RankGrid& grid,
                                     const config::Hardware* hardware) {
  return Judge(nodes, load, grid, hardware).all();
}

std::vector<About> load_checks() {
  return {products_check, clocks_check, copies_check, node_check, pairs_check};
}

Likeness compare_rates(std::span<const double> rates, const Tolerance& tolerance) {
  std::vector<double> known;
  Likeness found;
  found.usual = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (!std::isfinite(rates[i])) continue;
    if (known.empty() || rates[i] < rates[found.lowest]) found.lowest = i;
    known.push_back(rates[i]);
  }
  if (known.empty()) return found;
  std::ranges::sort(known);
  constexpr double least_share = 1e-6;  // 0 has no logarithm
  std::vector<double> logs;
  for (const double rate : known) logs.push_back(std::log(std::max(rate, least_share * known.back())));
  std::size_t slow = 0;
  const std::size_t fast = (known.size() + smallest_fast_share - 1) / smallest_fast_share;
  while (known.back() > 0) {
    const auto more = slow_group(std::span(logs).subspan(slow), fast);
    if (!more) break;
    slow += *more;
  }
  const std::size_t last_fast = known.size() - slow - 1;
  found.usual = known[slow + (3 * last_fast + 2) / 4];
  const double slowest_fast = known[slow];
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (!std::isfinite(rates[i])) continue;
    const double share = rates[i] / found.usual;
    if (!(share < tolerance.warn_below) || (rates[i] >= slowest_fast && share >= tolerance.slow_anyway)) continue;
    found.slow.push_back({i, share < tolerance.fail_below ? Verdict::fail : Verdict::warn});
  }
  return found;
}

}  // namespace harness::doctor
