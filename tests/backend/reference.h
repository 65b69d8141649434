#pragma once

#include "backend/on_host.h"

namespace harness::test {

/// Computes every operation in double precision, in plain loops and by the words of program/operation.h alone: what
/// kernels are held against. Results are rounded when they are stored, as those of a kernel are.
const backend::Backend& reference();

}  // namespace harness::test
