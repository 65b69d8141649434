#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/check.h"
#include "job/job.h"
#include "nccl/log.h"

namespace harness::doctor {

/// The parts of doctor, in the order in which they run.
enum class Stage : std::uint8_t {
  facts,  // "static": what the kernel and the driver say; starts no worker
  nccl,   // one communicator over all ranks, and what NCCL's log says of it
  load,   // products and copies on all ranks at once, collectives in each node and between pairs of nodes
};
/// "static,nccl" in any order; each once. Throws Error that names what is allowed.
std::vector<Stage> parse_stages(std::string_view text);
/// All of them, as parse_stages() reads them.
inline constexpr std::string_view all_stages = "static,nccl,load";

/// The job and the nodes that the stages with workers run on.
struct Bench {
  job::Job& job;
  const std::vector<Node>& nodes;  // as examine() gives them
  config::BackendKind backend{};
  std::string missing;  // why this program has no workers on that backend; "": it has
};

/// Why workers cannot run on every rank, before any is started: nothing where they can. Skip where there is nothing to
/// run on, info where the launch is in the way; a stage that cannot run is never a failure.
std::optional<Finding> obstacle(const Bench& bench);

/// How long a stage may take; what it has by then counts.
class Limit {
 public:
  Limit(const Clock& clock, double limit_s) : clock_(clock), begin_s_(clock.seconds()), limit_s_(limit_s) {}
  double used_s() const { return clock_.seconds() - begin_s_; }
  double left_s() const { return limit_s_ - used_s(); }
  double limit_s() const { return limit_s_; }
  /// Whether there is time for a block, its start included.
  bool allows_block() const { return left_s() > 3 * step_s(); }
  /// Whether there is time for a block on workers that run already and for the last one on them, which always runs:
  /// for the least deadlines of both.
  bool allows_two_more() const { return left_s() > 4 * step_s(); }
  /// The deadlines of a block that begins now, once one of the above allowed it: where it hangs, it is ended by the
  /// limit, or a few seconds after it where a worker has to be killed. `share`: of the time left, where other blocks
  /// are to follow on the same workers. That of a step is always the same, as those blocks must agree in it.
  config::Deadlines deadlines(double share = 1) const {
    return {std::max(share * left_s() - step_s(), step_s()), step_s()};
  }

 private:
  double step_s() const { return 0.15 * limit_s_; }

  const Clock& clock_;
  double begin_s_, limit_s_;
};

/// A block of an operation, which a fault of the tests knows by `name`.
job::BlockRequest stage_block(const Bench& bench, const std::string& name, const config::Settings& settings,
                              const program::Layout& layout, const job::Task& task, const Limit& limit);

/// The finding for a block that failed: a fault that would stop a sweep too. No block is so large that a sound
/// node needs the time that Limit gives it. `what`: "products".
StageFinding failed_block(const Bench& bench, const std::string& check, const std::string& what,
                          const job::BlockOutcome& outcome);

/// By rank of the job: the place of its node in `nodes`.
std::vector<std::size_t> nodes_of_ranks(const std::vector<Node>& nodes);

/// "rank 3 on node1".
std::string name_of_rank(const std::vector<Node>& nodes, int rank);

/// Runs one all-reduce over all ranks, in processes of their own, with NCCL's log, and says what NCCL did: the network
/// that it took, GPUDirect RDMA, adapters, interfaces, NVLS, versions.
std::vector<StageFinding> run_nccl_stage(const Bench& bench);

/// NCCL's log of one rank.
struct RankLog {
  int rank = 0;
  nccl::Observed seen;
};

/// Judges the logs. A node without one is unknown.
std::vector<StageFinding> judge_nccl(const std::vector<Node>& nodes, const std::vector<RankLog>& logs);

/// The checks of judge_nccl(), for docs/doctor.md.
std::vector<About> nccl_checks();

}  // namespace harness::doctor
