#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "program/links.h"
#include "store/result.h"

namespace harness::analysis {

// The blocks of a result as evidence, and its cases: their settings, their ranks, and whether they train alike.

/// Abbreviates the long parts of a case's name: "TP2 PP2" for a layout, "NCCL_ALGO=Ring" for env={NCCL_ALGO: Ring},
/// "overlap_grad_reduce off" for overlap_grad_reduce=false; also within several changes joined by " + ".
std::string short_name(const std::string& case_name);

/// A finished block: when it ran, and the median of its timed steps.
struct FinishedBlock {
  std::size_t index = 0;  // index in Result::blocks
  std::int32_t case_index = 0, round = 0, session = 0;
  double steps_unix_s = 0;  // when its first step began
  double seconds = 0;
};
/// Whether some blocks share processes, as the sizes of an operation do.
bool shares_processes(const store::Result& result);

/// Whether a block is still to be measured: it was neither measured nor left out, and its case may run. A case can stop
/// running at any moment and leaves its blocks pending, so use this to ask how far a sweep is.
bool will_still_run(const store::Result& result, const store::ResultBlock& block);
/// Returns the first round with a block still to be measured; Result::rounds if there is none.
std::int32_t first_open_round(const store::Result& result);

/// Returns the blocks of all cases, or of one, in file order, without those that have no usable sample.
std::vector<FinishedBlock> finished_blocks(const store::Result& result, std::optional<std::int32_t> case_index = {});

/// Returns the median timed step of a block; nothing if the block did not finish or has no usable sample.
std::optional<double> block_median(const store::Result& result, std::size_t block);

/// Returns the blocks that ended well, among the first `rows`: those that a table with a row per block has.
std::vector<std::size_t> good_blocks(const store::Result& result, std::size_t rows);

/// Returns, ascending, the rounds with a block on throttled devices: NVML gave a reason other than the power limit
/// alone, or the mean clock was more than 5 % below the median of the case's blocks.
std::vector<std::int32_t> throttled_rounds(const store::Result& result);

/// How much longer than the median step of its block a case's slowest timed steps take. Each step is divided by the
/// median of its own block, so that a slow block is not counted twice.
struct Tails {
  double p95 = 1, p99 = 1;  // multiples of the median, by the nearest rank
};
/// Returns nothing below 100 steps: fewer cannot show one step in a hundred.
std::optional<Tails> tails_of(const store::Result& result, std::int32_t case_index);

/// The progress of a sweep, from its file.
struct HowFar {
  int rounds_done = 0, rounds = 0;          // rounds_done: no block of them will still run
  std::size_t blocks_done = 0, blocks = 0;  // blocks: those done and those that will still run
  /// Seconds until the last block ends, if no more blocks are left out. Nothing before the first block has ended, or
  /// when nothing is left.
  std::optional<double> remaining_s;
};

/// Estimates the remaining time from the mean duration of the blocks so far (from one start to the next in a session).
HowFar how_far(const store::Result& result);

/// Parses the settings that a case was measured with. Variables and values that this version does not know stay at
/// their defaults.
config::Settings settings_of(const store::Result& result, const store::ResultCase& of);

/// Returns the workload of the baseline; "gpt" where the file does not say.
std::string workload_of(const store::Result& result);

/// Returns the names that choose the result's cases with --only. The control, and a setting at another size, follow
/// from the others.
std::vector<std::string> names_to_choose(const store::Result& result);

/// The ranks of a case by what they run, from the roles in the result (store::roles_of()).
class CaseRanks {
 public:
  using Ranks = std::vector<std::int32_t>;  // ascending

  CaseRanks(const store::Result& result, std::int32_t case_index);

  std::int32_t count() const { return static_cast<std::int32_t>(role_of_.size()); }
  /// Returns the ranks that run the same Program as `rank`, itself included; none if the case has no such rank.
  const Ranks& of_same_role(std::int32_t rank) const;
  /// Sets of ranks that do equal work: one set per pipeline stage.
  const std::vector<Ranks>& alike() const { return alike_; }
  bool has_stages() const { return alike_.size() > 1; }
  /// Whether a stage has more than one rank.
  bool has_stage_mates() const { return role_of_.size() > alike_.size(); }

 private:
  std::vector<std::int32_t> role_of_;  // by rank
  std::vector<Ranks> by_role_, alike_;
};

/// Returns how many nodes each group of a case spans (program/links.h). Nothing where the job has one node.
program::Spans spans_of_case(const store::Result& result, std::int32_t case_index);

// Whether a case trains as the baseline does. A skipped reduction or a stale activation makes a step faster, and on
// random tokens the loss converges to ln V all the same. The gradients of the first step reveal it.

/// Whether the case asks for another training than the baseline: other batches, or a variable with
/// Mathematics::another. Its time is compared per unit of work, and it does not count as an improvement.
bool asks_for_another_training(const store::Result& result, std::int32_t case_index);

/// Compares the gradients of the first step, the loss of the third and the loss of the last with the baseline's.
/// Returns a sentence on the first that differs by more than summation order and the rounding of the precisions
/// explain. "": the case trains as the baseline does, as far as is known, or asks for another training.
std::string why_trains_differently(const store::Result& result, std::int32_t case_index);

}  // namespace harness::analysis
