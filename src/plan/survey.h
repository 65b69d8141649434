#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/backend.h"
#include "program/count.h"
#include "program/layout.h"
#include "program/lower.h"
#include "program/memory.h"
#include "workloads/workload.h"

namespace harness::plan {

struct PlannedCase;

/// Facts about a case before it runs. FLOPs are sums over all ranks for one step. roles is 0 where nothing is
/// known: the case is impossible, or was not surveyed. Tokens and FLOP leave padding out.
struct Survey {
  std::uint64_t program_hash = 0;
  std::int64_t roles = 0;
  program::AxisSet role_axes;  // ranks that agree on these have one role
  double tokens_per_step = 0;  // of a training step
  workloads::Rate rate;        // of one operation again and again
  program::Flop flop;
  double hardware_flop = 0;            // with recomputation, attention causal
  double goodput = 1;                  // tokens per position that a step computes
  std::vector<program::Count> counts;  // per role, of one step of one rank
  std::int64_t peak_bytes = 0;         // of the largest role
  int peak_role = 0;
};
/// The Programs of a case that a survey has built, lowered: the one or the other.
struct BuiltStep {
  std::optional<program::ProgramSet> whole;
  std::optional<program::FoldedStep> folded;
};
/// Facts that follow from lowered Programs alone.
Survey survey_of(const program::ProgramSet& step);
/// The same of a folded step: it has what its sample has, and more of the sample's middle micro-batch. Memory is that
/// of its fullest roles, lowered for a backend that declares `fused`.
Survey survey_of(const program::FoldedStep& step, program::FusedSet fused);

/// Surveys the cases of an experiment, with what they have in common done once: cases that differ in no more than
/// what a library reads from the worker's environment have the same Programs, and equal Programs the same survey.
class Surveyor {
 public:
  /// `model` must outlive it.
  Surveyor(const config::Model& model, config::BackendKind backend) : model_(model), backend_(backend) {}
  /// Builds the case's step as the backend runs it, verifies, counts and plans memory. Where the backend predicts, a
  /// long step is folded: program_hash is then that of the folded set. Throws Error naming rank and operation if
  /// verification fails.
  Survey survey(const PlannedCase& the_case);
  /// The Programs that the last survey() built for this case; nothing of one that an earlier case had the same Programs
  /// as.
  BuiltStep take_step() { return std::exchange(built_, {}); }

 private:
  const Survey& survey_step(const PlannedCase& the_case);

  const config::Model& model_;
  config::BackendKind backend_;
  std::map<std::string, Survey> by_settings_;
  std::map<std::pair<std::uint64_t, program::FusedSet>, Survey> by_programs_;
  BuiltStep built_;
};

}  // namespace harness::plan
