#pragma once

#include <span>
#include <vector>

#include "program/interval.h"

namespace harness::program {

/// How much of one communication a rank spent waiting for partners that came later. Who comes last waits for nobody, so
/// what a member's communication takes beyond the quickest member's is waiting: durations alone tell, and the ranks'
/// clocks need not agree. NaN: not known.
struct Waiting {
  float members_s = 0;  // for ranks on the own pipeline stage
  float stages_s = 0;   // then for other stages, the partner of a send or receive among them
};

/// The duration of each communication of a Program's step by this timeline, in the order of the list; NaN where the
/// timeline lacks it.
std::vector<float> communication_durations(const Program& program, std::span<const Interval> timeline);

/// By rank, then by communication as communication_durations() gives them. durations[rank] may be empty: not measured.
/// The set must be sound (verify()): the n-th communication of a rank in a group meets the others' n-th.
std::vector<std::vector<Waiting>> find_waiting(const ProgramSet& set, std::span<const std::vector<float>> durations);

}  // namespace harness::program
