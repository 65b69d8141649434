#pragma once

#include "program/program.h"

namespace harness::program {

/// An executed operation of a step, or one of the stretches in which it ran: those follow each other. Times in seconds
/// since the step began on its rank.
struct Interval {
  OperationId operation = 0;  // in the lowered step list
  StreamId stream = 0;
  double start_s = 0, end_s = 0;  // for a communication: from when its inputs were ready and its stream free
};

}  // namespace harness::program
