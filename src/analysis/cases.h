#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/settings.h"
#include "program/links.h"
#include "store/result.h"

namespace harness::analysis {

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
