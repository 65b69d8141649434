#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "doctor/facts.h"
#include "store/result.h"

namespace harness::doctor {

/// The sweep whose nodes are judged.
struct SweepToJudge {
  bool uses_gpus = true;     // else what is wrong with GPUs and NCCL's settings does not concern it
  bool shares_gpus = false;  // several ranks may use one GPU
  /// The environment that each case sets for its workers. The first is the baseline.
  std::vector<std::pair<std::int32_t, NameValues>> cases;
};

/// The part of an examination that a result keeps: failures, warnings, what could not be read and what is worth
/// knowing, as far as it concerns the sweep, with the facts. Load and steal time of a moment are left out: a sweep
/// watches it in every block. What a case sets is held against the nodes and against the rest of its environment; a
/// finding that the baseline has, too, is the baseline's alone.
store::DoctorRecord record_of(const std::vector<Node>& nodes, const SweepToJudge& sweep);

/// Failures of nodes, a line each; "" if there is none.
std::string failures_in_words(const store::DoctorRecord& record);
/// Failures, and the nodes that did not tell all in time: whether they are healthy is not known.
std::string not_healthy_in_words(const store::DoctorRecord& record);

}  // namespace harness::doctor
