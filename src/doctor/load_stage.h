#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/hardware.h"
#include "config/settings.h"
#include "doctor/check.h"
#include "doctor/facts.h"
#include "doctor/stage.h"
#include "machine/conditions.h"
#include "program/layout.h"

namespace harness::doctor {

/// A round of pairwise measurements. Among `nodes` nodes from `first` on, each is paired with the node `distance` away,
/// all pairs at once. `nodes` is a multiple of twice the distance, so every node has a partner.
struct PairRound {
  int distance = 1, first = 0, nodes = 2;
  bool operator==(const PairRound&) const = default;
};
/// The first rounds pair every node once; further rounds pair it with others, near and far, so that a slow node can be
/// told from a slow link. At most six rounds.
std::vector<PairRound> pair_rounds(int nodes);

/// A block in which several groups communicate at once, each within itself.
struct Together {
  std::vector<int> ranks;  // ranks of the job, ascending
  program::Layout layout;
  config::CollectiveOver over{};
};

/// The first ranks of all nodes, equally many on each, numbered node by node, as a layout requires.
class RankGrid {
 public:
  /// nullopt if the launcher does not number ranks node by node.
  static std::optional<RankGrid> of(const std::vector<Node>& nodes);

  int nodes() const { return static_cast<int>(ranks_.size()); }
  int of_node() const { return static_cast<int>(ranks_.front().size()); }
  /// The job's number of the `local`-th rank on a node.
  int rank(int node, int local) const { return ranks_.at(node).at(local); }

  /// One group per node. Needs two ranks on each.
  Together in_nodes() const;
  /// One group for each rank and its counterpart on the partner node.
  Together in_pairs(const PairRound& round) const;
  /// The rank's number within such a block, whose first node is `first`: its index in the samples.
  std::size_t number(int node, int local, int first) const {
    const int place = (node - first) * of_node() + local;
    return static_cast<std::size_t>(place);
  }

 private:
  std::vector<int> chosen(int first, int count) const;

  std::vector<std::vector<int>> ranks_;  // by node, then by local rank
};

inline constexpr double load_limit_s = 60;

/// All ranks run matrix products at once, and GPUs copy to and from their hosts; then an all-reduce runs within each
/// node, then between pairs of nodes. These are blocks of the workloads `gemm` and `collective` in worker processes.
/// Reports who is slower than the others, than `hardware` states (nullptr: unknown), and than the links allow.
std::vector<StageFinding> run_load_stage(const Bench& bench, const config::Hardware* hardware);

/// The measurements of the stage. NaN: not measured.
struct Load {
  struct RankLoad {
    double product_flops = std::numeric_limits<double>::quiet_NaN();  // FLOP/s of the rank's own products
    machine::GpuStatistics gpu;                                       // during the products of all ranks
    std::string device;                                               // the GPU, as from Backend::device()
    machine::HostCopies host_copies;                                  // during the copies of all ranks
  };
  /// Two nodes that met, and the rates in one direction between their ranks, by local rank.
  struct Pair {
    int first = 0, second = 0;
    std::vector<double> bytes_per_s;
  };

  config::BackendKind backend{};
  config::Precision precision{};
  std::vector<RankLoad> ranks;                  // by rank of the job
  std::vector<double> node_reduce_bytes_per_s;  // by node: bus bandwidth of its all-reduce; empty: not measured
  std::vector<Pair> pairs;                      // round by round
};

/// Reports who is slow. `grid`: the ranks that the rounds paired.
std::vector<StageFinding> judge_load(const std::vector<Node>& nodes, const Load& load, const RankGrid& grid,
                                     const config::Hardware* hardware);

/// The checks of judge_load(), for docs/doctor.md.
std::vector<About> load_checks();

/// Limits below which a rate is slow, as shares of the fast group's rate. `fail_below` 0: never a failure. Below
/// `slow_anyway` a rate is slow even if rates scatter too widely for a separate slow group.
struct Tolerance {
  double warn_below = 0, fail_below = 0, slow_anyway = 0;
};

/// The share of the hardware's stated rate that sound hardware reaches. Matrix products reach 70 to 90 % of a GPU's
/// dense peak, rings and trees about 80 % of the NVLinks, a port more than 90 % of its rate, copies of pinned memory 75
/// to 90 % of a PCIe link.
inline constexpr double sound_share = 0.6;

struct Slow {
  std::size_t at = 0;  // index in the rates
  Verdict verdict{};
};

/// The comparison of rates that should be alike.
struct Likeness {
  double usual = 0;        // upper quartile of the fast group; NaN: there is none
  std::size_t lowest = 0;  // index of the lowest rate
  std::vector<Slow> slow;
};
/// Finds the slow ones, be they one, half or all but one. Ignores NaN and infinity (not measured).
///
/// Rates are split into a slow and a fast group if the distance between the means of their logarithms is large against
/// the scatter within the groups; the fast group is then split again in the same way. A rate is slow if it also lies
/// below its tolerance. The fast group keeps at least one rate in 32, so that a few rates that are too high do not make
/// all others slow.
///
/// Simulated with normal scatter (outliers_test.cpp): if some rates are lower by a tenth and all scatter by 1 %, fewer
/// than 1 of 200 sets is judged wrongly. Of healthy sets, fewer than 1 of 1000 has a finding at 1 % scatter, and 1 of
/// 30 at 2 %. At 3 % it is 1 of 500 from 16 rates on and 1 of 40 of eight, but 1 of 6 of up to four, whose scatter is
/// poorly known.
Likeness compare_rates(std::span<const double> rates, const Tolerance& tolerance);

}  // namespace harness::doctor
