#pragma once

#include <vector>

#include "program/verify.h"

namespace harness::program {

/// Runs the communications of one list (init or step) of every role against each other, each role's in list order,
/// each waiting for all its partners, and reports what does not match or never ends.
///
/// Why roles suffice: all ranks of a role run the same list, so there is an execution in which they move in step; with
/// rendezvous semantics the outcome (ends or not) does not depend on the order in which enabled communications happen,
/// so that execution is as good as any. Within it a rank's partner of its own role is at the same place as itself.
void match_communication(const ProgramSet& set, std::vector<Operation> Program::*list, const char* which,
                         std::vector<Problem>& problems, std::size_t limit);

}  // namespace harness::program
