#pragma once

#include <vector>

#include "backend/cuda/runtime.h"
#include "program/program.h"

namespace harness::cuda {

// How the streams of a Program share the GPU. Pure: it follows from the Program's streams and waits.

/// By operation of a list: the multiprocessors that it may take of `multiprocessors`, 0: all. Where a computation of
/// another stream may run beside one of the compute stream, it gets a few and the compute stream's leaves it those:
/// a product made for the whole GPU would wait for them as for a second round.
std::vector<int> shares_of(const std::vector<program::Operation>& list, std::size_t streams, int multiprocessors);

/// By stream: high for what communicates in the step, low for what computes beside the compute stream.
std::vector<Priority> priorities_of(const program::Program& program);

}  // namespace harness::cuda
