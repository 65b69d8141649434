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

// The blocks of a result as evidence, and its cases: what they were measured with, on which ranks, and whether they
// train alike.

/// A finished block as evidence: when it ran, and the median of its timed steps.
struct FinishedBlock {
  std::size_t index = 0;  // of Result::blocks
  std::int32_t case_index = 0, round = 0, session = 0;
  double steps_unix_s = 0;  // when its first step began
  double seconds = 0;
};
/// Whether some blocks ran one after another in the same processes, as the sizes of an operation do.
bool shares_processes(const store::Result& result);

/// Whether a block was measured, well or not.
constexpr bool was_tried(const store::ResultBlock& block) {
  return block.status == store::BlockStatus::ok || block.status == store::BlockStatus::failed;
}
/// Whether a block is still to be measured: it was neither measured nor left out, and its case may run. A case can
/// cease to run at any moment and leaves its blocks as they are, so whoever asks how far a sweep is must ask this.
bool will_still_run(const store::Result& result, const store::ResultBlock& block);
/// The first round of which a block is still to be measured; Result::rounds if there is none.
std::int32_t first_open_round(const store::Result& result);

/// In the order of the file, of all cases or of one. Blocks without a usable sample are left out.
std::vector<FinishedBlock> finished_blocks(const store::Result& result, std::optional<std::int32_t> case_index = {});

/// The median timed step of a finished block; nothing if the block did not finish or has no usable sample.
std::optional<double> block_median(const store::Result& result, std::size_t block);

/// Rounds in which some block ran on throttled devices: by a reason that NVML gave, other than the power limit
/// alone, or because its mean clock was more than 5 % below the median of its case's blocks. Ascending.
std::vector<std::int32_t> throttled_rounds(const store::Result& result);

/// How much longer than the median step of its block the slowest timed steps of a case take. Each step counts over the
/// median of its own block, so that a slow block is not counted twice.
struct Tails {
  double p95 = 1, p99 = 1;  // times the median, by the nearest rank
};
/// Nothing below 100 steps: one step in a hundred cannot be seen in fewer.
std::optional<Tails> tails_of(const store::Result& result, std::int32_t case_index);

/// How far a sweep is, by its file.
struct HowFar {
  int rounds_done = 0, rounds = 0;          // rounds of which no block will still run
  std::size_t blocks_done = 0, blocks = 0;  // measured; those and what will still run
  /// Until the last block has ended, if none is left out any more; seconds. Nothing before the first block has ended,
  /// or when nothing is left.
  std::optional<double> remaining_s;
};

/// The remaining time: a block takes as long as blocks did so far (a mean, from one start to the next in a session).
HowFar how_far(const store::Result& result);

/// Parses the settings that a case was measured with. A variable or value that only another version knows is at its
/// default.
config::Settings settings_of(const store::Result& result, const store::ResultCase& of);

/// The workload of the baseline; "gpt" where the file does not say.
std::string workload_of(const store::Result& result);

/// The ranks of a case by what they do, from the roles that the result gives them (store::roles_of()).
class CaseRanks {
 public:
  using Ranks = std::vector<std::int32_t>;  // ascending

  CaseRanks(const store::Result& result, std::int32_t case_index);

  std::int32_t count() const { return static_cast<std::int32_t>(role_of_.size()); }
  /// The ranks that run the same Program as this one, which is among them. None, if the case has no such rank.
  const Ranks& of_same_role(std::int32_t rank) const;
  /// The sets of ranks that do as much work as each other: of one pipeline stage.
  const std::vector<Ranks>& alike() const { return alike_; }
  bool has_stages() const { return alike_.size() > 1; }
  /// Whether a stage has more than one rank.
  bool has_stage_mates() const { return role_of_.size() > alike_.size(); }

 private:
  std::vector<std::int32_t> role_of_;  // by rank
  std::vector<Ranks> by_role_, alike_;
};

/// Over how many nodes the groups of a case spread (program/links.h). Nothing where the job has one node.
program::Spans spans_of_case(const store::Result& result, std::int32_t case_index);

// Whether a case trains as the baseline does. A fault that leaves out a reduction or takes a stale activation makes a
// step faster, and on random tokens the loss comes to the same end with or without it: ln V. The gradients of the first
// step show it.

/// Whether the case asks for another training than the baseline: other batches, or a variable with
/// Mathematics::another. Its time compares per unit of work, and it is no better way to do the same.
bool asks_for_another_training(const store::Result& result, std::int32_t case_index);

/// Compares the gradients of the first step, the loss of the third and the loss of the last with the baseline's: a
/// sentence on the first that differs by more than the order of sums and the rounding of their precisions explain. "":
/// the case trains as the baseline does, as far as is known, or asks for another training.
std::string why_trains_differently(const store::Result& result, std::int32_t case_index);

}  // namespace harness::analysis
