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

/// The stages of doctor, in the order in which they run.
enum class Stage : std::uint8_t {
  facts,  // "static": facts from the kernel and the driver; starts no worker
  nccl,   // one communicator over all ranks, judged by NCCL's log
  load,   // products and copies on all ranks at once, collectives in each node and between pairs of nodes
};
/// Parses "static,nccl", in any order; duplicates count once. Throws Error that lists the allowed names.
std::vector<Stage> parse_stages(std::string_view text);
/// All stages, as parse_stages() reads them.
inline constexpr std::string_view all_stages = "static,nccl,load";

/// The job and the nodes for the stages that start workers.
struct Bench {
  job::Job& job;
  const std::vector<Node>& nodes;  // from examine()
  config::BackendKind backend{};
  std::string missing;  // why this program has no workers for that backend; "": it has
};

/// A finding about the job as a whole.
StageFinding of_job(const std::string& check, Verdict verdict, std::string evidence, std::string remedy = "");

/// Checks, before any worker is started, why workers cannot run on every rank; nullopt if they can. The verdict is
/// `info`: a stage that cannot run is never a failure.
std::optional<StageFinding> obstacle(const Bench& bench, const std::string& check);

/// The time limit of a stage; results obtained by then count.
class Limit {
 public:
  Limit(const Clock& clock, double limit_s) : clock_(clock), begin_s_(clock.seconds()), limit_s_(limit_s) {}
  double used_s() const { return clock_.seconds() - begin_s_; }
  double left_s() const { return limit_s_ - used_s(); }
  double limit_s() const { return limit_s_; }
  /// Whether there is time for a block, including its start.
  bool allows_block() const { return left_s() > 3 * step_s(); }
  /// Whether there is time for a block on running workers and for the last block on them, which always runs; both with
  /// their shortest deadlines.
  bool allows_two_more() const { return left_s() > 4 * step_s(); }
  /// The deadlines of a block that begins now, after one of the above allowed it. A block that hangs ends at the limit,
  /// or a few seconds later if a worker has to be killed. `share`: of the remaining time, if more blocks follow on the
  /// same workers. The step deadline is constant, because those blocks must agree on it.
  config::Deadlines deadlines(double share = 1) const {
    return {std::max(share * left_s() - step_s(), step_s()), step_s()};
  }

 private:
  double step_s() const { return 0.15 * limit_s_; }

  const Clock& clock_;
  double begin_s_, limit_s_;
};

/// A block of an operation; fault injection in tests refers to it by `name`.
job::BlockRequest stage_block(const Bench& bench, const std::string& name, const config::Settings& settings,
                              const program::Layout& layout, const job::Task& task, const Limit& limit);

/// The finding for a failed block, which would also stop a sweep. Blocks are small enough that a sound node never needs
/// the time that Limit allows. `what`: "products".
StageFinding failed_block(const Bench& bench, const std::string& check, const std::string& what,
                          const job::BlockOutcome& outcome);

/// The host of a rank; "" if it is unknown.
std::string host_of_rank(const std::vector<Node>& nodes, int rank);

/// "rank 3 on node1".
std::string name_of_rank(const std::vector<Node>& nodes, int rank);

/// Runs one all-reduce over all ranks in worker processes, with NCCL's log enabled, and reports NCCL's choices:
/// network, GPUDirect RDMA, adapters, interfaces, NVLS, versions.
std::vector<StageFinding> run_nccl_stage(const Bench& bench);

/// NCCL's log of one rank.
struct RankLog {
  int rank = 0;
  nccl::Observed seen;
};

/// Judges the logs. A node without a log is `unknown`.
std::vector<StageFinding> judge_nccl(const std::vector<Node>& nodes, const std::vector<RankLog>& logs);

/// The checks of judge_nccl(), for docs/doctor.md.
std::vector<About> nccl_checks();

}  // namespace harness::doctor
