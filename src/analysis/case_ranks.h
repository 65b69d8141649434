#pragma once

#include <cstdint>
#include <vector>

#include "program/placement.h"
#include "store/result.h"

namespace harness::analysis {

/// The ranks of a case by what they do, from the roles that the result gives them (store/roles.h).
class CaseRanks {
 public:
  using Ranks = std::vector<std::int32_t>;  // ascending

  CaseRanks(const store::Result& result, std::int32_t case_index);

  std::int32_t count() const { return static_cast<std::int32_t>(role_of_.size()); }
  /// The ranks that run the same Program as this one, which is among them. None, if the case has no such rank.
  const Ranks& of_same_role(std::int32_t rank) const;
  bool same_role(std::int32_t a, std::int32_t b) const {
    return a >= 0 && a < count() && b >= 0 && b < count() && role_of_[a] == role_of_[b];
  }
  /// The sets of ranks that do as much work as each other: of one pipeline stage.
  const std::vector<Ranks>& alike() const { return alike_; }
  bool has_stages() const { return alike_.size() > 1; }
  /// Whether a stage has more than one rank.
  bool has_stage_mates() const { return role_of_.size() > alike_.size(); }

 private:
  std::vector<std::int32_t> role_of_;  // by rank
  std::vector<Ranks> by_role_, alike_;
};

/// Over how many nodes the groups of a case spread (program/placement.h). Nothing where the job has one node.
program::Spans spans_of_case(const store::Result& result, std::int32_t case_index);

}  // namespace harness::analysis
