#pragma once

#include <string>

#include "program/program.h"

namespace harness::program {

/// "" if the views of an action have the sizes and element types that its parameters call for on this rank, else what
/// is wrong, for a person. Views must lie inside their buffers.
std::string check_shapes(const ProgramSet& set, const Program& program, int rank, const Action& action);

}  // namespace harness::program
