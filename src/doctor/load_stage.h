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

/// A round of a tournament of nodes: of `nodes` nodes from `first` on, each meets the one `distance` further or before,
/// all at once. A multiple of twice the distance, so that nobody is left over.
struct PairRound {
  int distance = 1, first = 0, nodes = 2;
  bool operator==(const PairRound&) const = default;
};
/// The first rounds let every node meet one other; further ones let it meet others, near and far, so that a slow node
/// can be told from a slow link. At most six.
std::vector<PairRound> pair_rounds(int nodes);

/// One block whose groups communicate all at once, each on its own.
struct Together {
  std::vector<int> ranks;  // of the job, ascending
  program::Layout layout;
  config::CollectiveOver over{};
};

/// The first ranks of all nodes, as many on each, numbered node by node, so that a layout finds them.
class RankGrid {
 public:
  /// nullopt where a launcher numbers ranks in another way.
  static std::optional<RankGrid> of(const std::vector<Node>& nodes);

  int nodes() const { return static_cast<int>(ranks_.size()); }
  int of_node() const { return static_cast<int>(ranks_.front().size()); }
  /// The number in the job of the `local`-th rank on a node.
  int rank(int node, int local) const { return ranks_.at(node).at(local); }

  /// Each node's ranks are a group. Needs two on each.
  Together in_nodes() const;
  /// Each rank and the one of the same place on the other node of its pair are a group.
  Together in_pairs(const PairRound& round) const;
  /// The number that a rank has in such a block, whose first node is `first`: its place among the samples.
  std::size_t number(int node, int local, int first) const {
    const int place = (node - first) * of_node() + local;
    return static_cast<std::size_t>(place);
  }

 private:
  std::vector<int> chosen(int first, int count) const;

  std::vector<std::vector<int>> ranks_;  // by node, then by place on it
};

inline constexpr double load_limit_s = 60;

/// All ranks multiply matrices at once, and GPUs copy to and from their hosts; then the ranks of each node reduce
/// together, then those of pairs of nodes: blocks of the workloads `gemm` and `collective`, in processes of their own.
/// Says who is slower than the others, than `hardware` states (nullptr: not known), and than links carry.
std::vector<StageFinding> run_load_stage(const Bench& bench, const config::Hardware* hardware);

/// The measurements of the stage. NaN: not measured.
struct Load {
  struct RankLoad {
    double product_flops = std::numeric_limits<double>::quiet_NaN();  // FLOP/s of its products, by itself
    machine::GpuStatistics gpu;                                       // while all multiplied
    std::string device;                                               // its GPU, as Backend::device()
    machine::HostCopies host_copies;                                  // while all copied
  };
  /// A round: rates[pair][local] of the nodes first[pair] and second[pair], bytes/s in one direction.
  struct Round {
    PairRound round;
    std::vector<std::pair<int, int>> nodes;
    std::vector<std::vector<double>> bytes_per_s;
  };

  config::BackendKind backend{};
  config::Precision precision{};
  std::vector<RankLoad> ranks;                  // by rank of the job
  std::vector<double> node_reduce_bytes_per_s;  // by node: bus bandwidth of its all-reduce; empty: not measured
  std::vector<Round> rounds;
};

/// Who is slow. `grid`: which ranks met in the rounds.
std::vector<StageFinding> judge_load(const std::vector<Node>& nodes, const Load& load, const RankGrid& grid,
                                     const config::Hardware* hardware);

/// The checks of judge_load(), for docs/doctor.md.
std::vector<About> load_checks();

/// The limits below which a rate is slow, as shares of the rate of the fast ones. `fail_below` 0: never a failure.
/// Below `slow_anyway` a rate is slow even where rates scatter so widely that no group of slow ones stands apart.
struct Tolerance {
  double warn_below = 0, fail_below = 0, slow_anyway = 0;
};

/// The share of the hardware's stated rate that anything sound reaches. Products of a GPU reach 70 to 90 % of the dense
/// peak, rings and trees about 80 % of the NVLinks, a port more than 90 % of its rate, copies of pinned memory 75 to 90
/// % of a PCIe link.
inline constexpr double sound_share = 0.6;

struct Slow {
  std::size_t at = 0;  // in the rates
  Verdict verdict{};
};

/// Rates of things that should be alike.
struct Likeness {
  double usual = 0;        // what the fast ones reach: their upper quartile; NaN: there is none
  std::size_t lowest = 0;  // where the lowest is
  std::vector<Slow> slow;
};
/// Finds the slow ones, be they one, half or all but one. NaN and infinity: not measured, and left out.
///
/// Rates fall apart into a slow and a fast group where the distance between the means of their logarithms exceeds what
/// they scatter within the groups; of the fast group the same is asked again. The slow ones are then those below their
/// tolerance. A fast group has at least one of 32, so that a few measurements that are too good accuse nobody.
///
/// Simulated with normal scatter (outliers_test.cpp): if some are slower by a tenth and all scatter by 1 %, fewer than
/// 1 of 200 sets is judged wrongly. Of healthy sets, fewer than 1 of 1000 has a finding at 1 % scatter, and 1 of 30 at
/// 2 %. At 3 % it is 1 of 500 from 16 rates on and 1 of 40 of eight, but 1 of 6 of up to four: their scatter is hardly
/// known.
Likeness compare_rates(std::span<const double> rates, const Tolerance& tolerance);

}  // namespace harness::doctor
