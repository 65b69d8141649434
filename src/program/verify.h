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

// The parts of verify() that have files of their own: match.cpp and shapes.cpp.

/// Runs the communications of one list (init or step) of every role against each other, each role's in list order,
/// each waiting for all its partners, and reports what does not match or never ends.
///
/// Why roles suffice: all ranks of a role run the same list, so there is an execution in which they move in step; with
/// rendezvous semantics the outcome (ends or not) does not depend on the order in which enabled communications happen,
/// so that execution is as good as any. Within it a rank's partner of its own role is at the same place as itself.
void match_communication(const ProgramSet& set, std::vector<Operation> Program::*list, const char* which,
                         std::vector<Problem>& problems, std::size_t limit);

/// "" if the views of an action have the sizes and element types that its parameters call for on this rank, else what
/// is wrong, for a person. Views must lie inside their buffers.
std::string check_shapes(const ProgramSet& set, const Program& program, int rank, const Action& action);

}  // namespace harness::program
