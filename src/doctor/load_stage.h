#pragma once

#include <limits>
#include <string>
#include <vector>

#include "config/hardware.h"
#include "doctor/node_pairs.h"
#include "doctor/stage.h"
#include "machine/conditions.h"
#include "machine/gpu_statistics.h"

namespace harness::doctor {

inline constexpr double load_limit_s = 60;

/// All ranks multiply matrices at once, and GPUs copy to and from their hosts; then the ranks of each node reduce
/// together, then those of pairs of nodes: blocks of the workloads `gemm` and `collective`, in processes of their own.
/// Says who is slower than the others, than `hardware` states (nullptr: not known), and than links carry.
std::vector<Said> run_load_stage(const Bench& bench, const config::Hardware* hardware, double limit_s = load_limit_s);

/// What the stage measured. NaN: not measured.
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
  machine::Conditions conditions;  // while all multiplied
};

/// Who is slow. `grid`: which ranks met in the rounds.
std::vector<Said> judge_load(const std::vector<Node>& nodes, const Load& load, const RankGrid& grid,
                             const config::Hardware* hardware);

/// The part of it that is about copies between hosts and GPUs.
std::vector<Said> judge_host_copies(const std::vector<Node>& nodes, const Load& load);
StageCheck host_copies_check();

/// What judge_load() looks at, for docs/doctor.md.
std::vector<StageCheck> load_checks();

}  // namespace harness::doctor
