#pragma once

#include <string>

#include "machine/conditions.h"

namespace harness::sweep {

/// A line for whoever starts a sweep on a machine that others use: processes besides the job's own kept more than 10 %
/// of a node's cores busy, or its host gave more than 2 % of its CPU time to other guests. "" on a quiet machine, and
/// where the kernel does not tell.
std::string busy_machine(const machine::Conditions& conditions);

}  // namespace harness::sweep
