#pragma once

#include <string>
#include <vector>

#include "program/program.h"

namespace harness::program {

/// One thing wrong with a job's Programs. `rank` is the lowest rank concerned, `operation` an index into its step (or
/// init) list, -1 when no single operation is to blame.
struct Problem {
  int rank = 0;
  OperationId operation = -1;
  std::string text;  // names rank and operation; complete sentence for a person
};

/// Checks the Programs of a job; an empty answer means that the step runs to its end on every machine that keeps
/// streams in order. Found are: views outside their buffer, element types or shapes that do not fit, waits that do not
/// point backwards, reads of memory nobody wrote, accesses of the same memory in no defined order, results of
/// a training step that nobody reads before they are overwritten or the step ends, and communication that does not
/// match, up to what the two ends of a message call it, or does not end. For the last the hard case is assumed: a rank
/// starts its communications one after the other in list order, a send waits for its receive, a collective for all its
/// members, and operations of one fused group start together.
///
/// Works on roles: a role's Program is checked once, whatever the number of ranks. At most `limit` problems.
std::vector<Problem> verify(const ProgramSet& set, std::size_t limit = 20);

}  // namespace harness::program
